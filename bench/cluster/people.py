"""A channel that costs next to nothing: people at a desk, and the gateway's answers on it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from goclaw_py.chat.channel import InboundHandler, PlainChannel
from goclaw_py.core.ids import MAIN_AGENT, SessionKey
from goclaw_py.core.messages import InboundMessage, OutboundMessage, PeerKind, Sender, Target
from goclaw_py.core.session_keys import chat_session

CHANNEL: Final = "desk"
ACCOUNT: Final = "default"
BATCH: Final = 100
"""So many messages come at once, as from Telegram."""


class PeopleChannel(PlainChannel):
    """Implements ``Channel``: counts what is answered, and nothing else.

    Without a lease: several nodes may receive, as with webhooks.
    """

    name = CHANNEL
    account = ACCOUNT
    lease = None
    trusted = False
    handle = None

    def __init__(self) -> None:
        self.sent = 0
        self._intake: asyncio.Future[InboundHandler] = asyncio.get_running_loop().create_future()
        self._more = asyncio.Event()

    async def receive(self, intake: InboundHandler) -> None:
        """Let people write from now on."""
        if not self._intake.done():
            self._intake.set_result(intake)
        await asyncio.Event().wait()

    def reaches(self, chat: str) -> bool:
        """Always."""
        del chat
        return True

    def parts(self, text: str) -> list[str]:
        """In one piece."""
        return [text]

    async def send(self, message: OutboundMessage) -> str:
        """Count it."""
        del message
        self.sent += 1
        self._more.set()
        return str(self.sent)

    def signal(self, signal: object) -> None:
        """Nobody looks."""

    async def close(self) -> None:
        """Nothing is open."""

    # ------------------------------------------------------------------ people

    async def hand_in(self, messages: Sequence[InboundMessage]) -> None:
        """Give messages to the gateway, a batch at a time, as fast as it commits them."""
        intake = await self._intake
        for begin in range(0, len(messages), BATCH):
            await intake.accept(messages[begin : begin + BATCH])

    async def until_sent(self, total: int) -> None:
        """Wait until so many answers have come, all by now."""
        while self.sent < total:
            self._more.clear()
            await self._more.wait()


def said(chat: str, number: int, at: datetime) -> InboundMessage:
    """The nth message of somebody."""
    return InboundMessage(
        f"{chat}:{number}",
        Target(CHANNEL, ACCOUNT, chat),
        PeerKind.DIRECT,
        Sender(chat, f"Name {chat}"),
        f"Message {number}",
        at,
        str(number),
    )


def session_of(chat: str) -> SessionKey:
    """Where it belongs."""
    return chat_session(MAIN_AGENT, Target(CHANNEL, ACCOUNT, chat), PeerKind.DIRECT)
