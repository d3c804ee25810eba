"""What this process has claimed and not ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from goclaw_py.core.ids import OccurrenceId, RunId, SessionKey
from goclaw_py.core.jobs import WorkItem
from goclaw_py.core.messages import Target
from goclaw_py.core.occurrence import Claimed
from goclaw_py.core.policy import JobPolicy


@dataclass(slots=True, eq=False)
class Held:
    """An occurrence in hand.

    Args:
        policy: How its job behaves.
        attempt: The number of the attempt that is under way, from 1.
        waits: It waits for its next attempt, or for its turn after an outage of ours.
        run: The run of the attempt.
        session: The conversation that it works in.
        target: Where it tells its result, as far as that was known at its start.
        item: The work that it was given.
    """

    claimed: Claimed
    policy: JobPolicy
    attempt: int = 0
    waits: bool = False
    started_at: datetime | None = None
    run: RunId | None = None
    session: SessionKey | None = None
    target: Target | None = None
    item: WorkItem | None = None

    @property
    def id(self) -> OccurrenceId:
        """That of the occurrence."""
        return self.claimed.id
