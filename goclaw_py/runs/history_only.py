"""A channel that sends nothing: its answers are only in the history of their session."""

from __future__ import annotations

import asyncio
from typing import Final

from goclaw_py.model.ids import SessionKey
from goclaw_py.model.messages import OutboundMessage, Target
from goclaw_py.model.run_events import RunSignal
from goclaw_py.ports.channel import InboundHandler, PlainChannel
from goclaw_py.ports.store import Place

PLACE: Final[Place] = ("api", "default")


def target_in(session: SessionKey) -> Target:
    """The target of a message whose answer is only in the history of its session."""
    return Target(*PLACE, session)


def has_chat(target: Target) -> bool:
    """Whether somebody reads what is sent there."""
    return (target.channel, target.account) != PLACE


class HistoryOnly(PlainChannel):
    """Implements ``Channel``: sends nothing, so that a session without a chat needs no exceptions.

    The supervisor does not know it: it is no channel that operators see.
    """

    name = PLACE[0]
    account = PLACE[1]
    lease: str | None = None
    trusted = True
    handle: str | None = None

    def reaches(self, chat: str) -> bool:  # noqa: ARG002
        """What was written for it, such as an error, is taken at once."""
        return True

    def parts(self, text: str) -> list[str]:  # noqa: ARG002
        """Nothing is sent of a reply."""
        return []

    async def receive(self, intake: InboundHandler) -> None:  # noqa: ARG002
        """Nothing comes in this way."""
        await asyncio.Event().wait()

    async def send(self, message: OutboundMessage) -> str:  # noqa: ARG002
        """Nobody is sent anything."""
        return ""

    def signal(self, signal: RunSignal) -> None:
        """Nobody watches."""

    async def close(self) -> None:
        """Nothing is open."""
