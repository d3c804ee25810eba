"""What was said in a group without a mention: context for the next message that has one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.messages import InboundMessage


@dataclass(frozen=True, slots=True)
class Unmentioned:
    """A message of an allowed group that does not mention the bot.

    ``keep`` is the number of such messages that are kept for ``session``.
    """

    message: InboundMessage
    session: SessionKey
    keep: int


@dataclass(frozen=True, slots=True)
class UnmentionedRow:
    """A stored message. ``run_id`` is the run that received it, None if none has yet."""

    id: int
    message: InboundMessage
    session: SessionKey
    received_at: datetime
    run_id: RunId | None


class BackgroundStore(Protocol):
    """Group messages that do not mention the bot: context for later runs, never answered."""

    async def note_unmentioned(self, batch: Sequence[Unmentioned], *, now: datetime) -> None:
        """Store messages, and keep the newest ``keep`` of each session; ignore duplicates.

        A message that ``edits`` another one replaces its text if that is stored, and is not stored
        itself.
        """

    async def claim_unmentioned(
        self, session: SessionKey, run: RunId, *, until: datetime, now: datetime
    ) -> list[InboundMessage]:
        """Give a started run the messages of its session since the last run, in order.

        Messages sent after ``until``, older than a day, or given to another run are excluded, but a
        run interrupted by a crash or a shutdown does not count. The same run gets the same
        messages again.
        """

    async def unmentioned(self, session: SessionKey) -> list[UnmentionedRow]:
        """Return the stored messages of a session, the newest first."""

    async def find_unmentioned(
        self, channel: str, account: str, external_id: str
    ) -> UnmentionedRow | None:
        """Return a message by its external id, or None if it is not stored."""
