"""What was said in a group without a mention: context for the next message that has one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from goclaw_py.model.ids import RunId, SessionKey
from goclaw_py.model.messages import InboundMessage


@dataclass(frozen=True, slots=True)
class Unmentioned:
    """A message of an allowed group that is not for the agent; ``session`` is where it would be.

    ``keep`` is how many of its session are kept.
    """

    message: InboundMessage
    session: SessionKey
    keep: int


@dataclass(frozen=True, slots=True)
class UnmentionedRow:
    """A stored one. ``run_id`` is the run that it was given to, None while it waits for one."""

    id: int
    message: InboundMessage
    session: SessionKey
    received_at: datetime
    run_id: RunId | None


class BackgroundStore(Protocol):
    """Messages that do not mention the bot. None of them is an inbox row; no run answers them."""

    async def note_unmentioned(self, batch: Sequence[Unmentioned], *, now: datetime) -> None:
        """Keep some messages, the newest ``keep`` of each session; what is known stays as it is.

        One that ``edits`` another one replaces what that says, if that is kept, and is not kept.
        """

    async def take_unmentioned(
        self, session: SessionKey, run: RunId, *, until: datetime, now: datetime
    ) -> list[InboundMessage]:
        """Give a run that has begun what was said in its session since the last one, in order.

        Nothing sent after ``until``, nothing older than a day, and nothing that was given before,
        unless to a run that was cut by a crash or a shutdown. The same run gets the same again.
        """

    async def unmentioned(self, session: SessionKey) -> list[UnmentionedRow]:
        """What is kept of a session, given or not, the newest first."""

    async def find_unmentioned(
        self, channel: str, account: str, external_id: str
    ) -> UnmentionedRow | None:
        """One by the external id of its message, if it is kept."""
