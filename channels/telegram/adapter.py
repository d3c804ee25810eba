"""Telegram as a channel (SPEC CHAN-1, CHAN-2)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from channels.telegram.activity import TypingBoard
from channels.telegram.client import GENERAL_TOPIC, TEXT_LIMIT, BotClient, Place
from channels.telegram.inbound import CHANNEL
from channels.telegram.polling import Poller
from channels.telegram.settings import Settings
from goclaw_py.core.errors import ChannelRefused, NotSent, Undeliverable
from goclaw_py.core.events import RunEnded, RunSignal, RunStarted, RunText
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.text import split_text, well_formed
from goclaw_py.ports.channel import Intake

Connect = Callable[[Settings], Awaitable[BotClient]]


class TelegramChannel:
    """One bot. ``connect`` is called once, when the bot is first needed."""

    name = CHANNEL
    trusted = False

    def __init__(self, account: str, settings: Settings, connect: Connect) -> None:
        self.account = account
        self.lease: str | None = f"{CHANNEL}:{settings.bot_id}"
        self.handle: str | None = None
        self._settings = settings
        self._connect = connect
        self._connecting = asyncio.Lock()
        self._client: BotClient | None = None
        self._refused = False
        self._closed = False
        self._typing = TypingBoard(self._show_typing)

    def reaches(self, chat: str) -> bool:  # noqa: ARG002  every chat shares the bot's fate
        """False once the token was refused, until it is accepted again."""
        return not (self._refused or self._closed)

    def parts(self, text: str) -> list[str]:
        """Cut a reply at Telegram's limit (SPEC CHAN-3)."""
        return split_text(well_formed(text), TEXT_LIMIT)

    async def receive(self, intake: Intake) -> None:
        """Poll for messages until cancelled. Raises ``ChannelRefused`` for a wrong token."""
        client = await self._open()
        poller = Poller(client, account=self.account, wait_s=self._settings.poll_timeout_s)
        try:
            bot = await poller.identify()
            self.handle = bot.username or None
            self._refused = False
            menu = asyncio.create_task(poller.publish_commands(), name="telegram command menu")
            try:
                await poller.run(intake)
            finally:
                menu.cancel()
                await asyncio.wait({menu})
        except ChannelRefused:
            self._refused = True
            raise

    async def send(self, message: OutboundMessage) -> str:
        """Send one text of at most 4096 UTF-16 units; returns the message's number in its chat."""
        place = _place(message.target)
        if place is None:
            raise Undeliverable(f"{message.target.chat} is no Telegram chat")
        client = await self._open()
        try:
            number = await client.send_message(
                place, well_formed(message.text), reply_to=_number(message.reply_to)
            )
        except ChannelRefused:
            self._refused = True
            raise
        return str(number)

    def signal(self, signal: RunSignal) -> None:
        """Show "typing…" while a run works (SPEC CHAN-4)."""
        place = _place(signal.target)
        if place is None:
            return
        match signal:
            case RunStarted(run_id=run):
                self._typing.begin(run, place)
            case RunEnded(run_id=run):
                self._typing.end(run, place)
            case RunText():
                pass

    async def close(self) -> None:
        """Stop typing and give back connections. Call after ``receive`` has ended."""
        self._closed = True
        await self._typing.close()
        async with self._connecting:
            client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _open(self) -> BotClient:
        async with self._connecting:
            if self._closed:
                raise NotSent("the channel is closed")
            if self._client is None:
                self._client = await self._connect(self._settings)
            return self._client

    async def _show_typing(self, place: Place) -> None:
        await (await self._open()).send_typing(place)


def _place(target: Target) -> Place | None:
    chat, thread = _number(target.chat), _number(target.thread)
    if chat is None:
        return None
    return Place(chat, None if thread == GENERAL_TOPIC else thread)


def _number(text: str | None) -> int | None:
    """Telegram's ids are numbers; anything else is none of them."""
    digits = (text or "").removeprefix("-")
    return int(text or "") if digits.isascii() and digits.isdigit() else None
