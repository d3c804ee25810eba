"""Records of claimed work: an execution in this process, and how its attempts end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from goclaw_py.model.ids import NodeId, RunId, SessionKey
from goclaw_py.model.messages import OutFile
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.model.run_events import Usage
from goclaw_py.ports.clock import Clock


class Superseded(Exception):
    """What was claimed was paused, deleted or changed before it began."""


class Next(StrEnum):
    """What follows an attempt that does not end its execution."""

    RETRY = "retry"
    RELEASE = "release"
    """Interrupted by a shutdown: the next free node claims it again."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """How one attempt ended.

    Args:
        error: The cause, for the log.
        friendly: The same for people, in one sentence.
        retryable: The cause may be gone in a moment.
        side_effects: A tool ran whose effects a second attempt would repeat.
        text: What was said.
        files: What is to be sent besides.
    """

    outcome: Outcome
    reason: Reason | None = None
    error: str = ""
    friendly: str = ""
    retryable: bool = False
    side_effects: bool = False
    text: str = ""
    usage: Usage | None = None
    files: tuple[OutFile, ...] = ()


NOTHING = Attempt(Outcome.REJECTED)
"""What is known of an attempt that never began."""


def failed_by(error: BaseException) -> Attempt:
    """An attempt that met this before it began."""
    return Attempt(Outcome.FAILED, error=f"{type(error).__name__}: {error}")


@dataclass(slots=True, eq=False, kw_only=True)
class Execution:
    """Work that this process has claimed and not ended.

    Args:
        node: The node that has claimed it, whatever this process is called by now.
        attempt: The number of the attempt that is under way, from 1.
        run: The run of the attempt.
        session: The conversation that it works in.
        looked_at: When it was last known to be wanted.
        waits: Nothing of it runs: it waits for its next attempt, or for its turn.
        stopped: It begins no more attempt.
        is_over: How it ends is decided, and being stored.
    """

    node: NodeId
    attempt: int = 0
    run: RunId | None = None
    session: SessionKey | None = None
    started_at: datetime | None = None
    looked_at: datetime | None = None
    waits: bool = False
    stopped: bool = False
    is_over: bool = False

    @property
    def id(self) -> str:
        """The id of the occurrence or of the heartbeat run."""
        raise NotImplementedError

    @property
    def context(self) -> dict[str, object]:
        """What log lines of all that it does say of it."""
        raise NotImplementedError

    @property
    def facts(self) -> dict[str, object]:
        """What log lines about it say of it."""
        of_run = {"attempt": self.attempt, "run_id": self.run, "session": self.session}
        return self.context | of_run

    async def until_due(self, clock: Clock) -> None:
        """Wait for its time, if it was claimed before that. Raises ``Superseded``."""
