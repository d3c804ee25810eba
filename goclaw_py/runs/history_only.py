"""A channel that sends nothing: answers are only in the history of their session."""

from __future__ import annotations

import asyncio
from typing import Final

from goclaw_py.chat.channel import InboundHandler, PlainChannel
from goclaw_py.core.ids import SessionKey
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.run_events import RunSignal
from goclaw_py.records import Place

PLACE: Final[Place] = ("api", "default")


def target_in(session: SessionKey) -> Target:
    """Return the target of a message whose answer is only in its session's history."""
    return Target(*PLACE, session)


def has_chat(target: Target) -> bool:
    """Return whether a target is a chat that people read."""
    return (target.channel, target.account) != PLACE


class HistoryOnly(PlainChannel):
    """Implements ``Channel`` without sending, so that sessions without chat need no exceptions.

    The supervisor does not know it, and operators do not see it.
    """

    name = PLACE[0]
    account = PLACE[1]
    lease: str | None = None
    trusted = True
    handle: str | None = None

    def reaches(self, chat: str) -> bool:  # noqa: ARG002
        """Return True: messages to it, such as errors, are accepted at once."""
        return True

    def parts(self, text: str) -> list[str]:  # noqa: ARG002
        """Return nothing to send."""
        return []

    async def receive(self, intake: InboundHandler) -> None:  # noqa: ARG002
        """Wait forever: nothing is received."""
        await asyncio.Event().wait()

    async def send(self, message: OutboundMessage) -> str:  # noqa: ARG002
        """Do nothing."""
        return ""

    def signal(self, signal: RunSignal) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""
