"""Updates from polls and webhooks: parsed, committed, and presses answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from channels.telegram.client import Bot, BotClient
from channels.telegram.fields import object_or_empty, whole_number
from channels.telegram.identity import named
from channels.telegram.inbound.reader import Malformed, parse_update, press_of, update_id
from goclaw_py.chat.channel import InboundHandler
from goclaw_py.core.chat_commands import toast
from goclaw_py.core.containers import LruCache
from goclaw_py.core.errors import ChannelError
from goclaw_py.core.messages import Inbound, InboundMessage, PeerKind

_log = logging.getLogger("channels.telegram")

_TRIES = 3
_APART_S = 0.5
_NAME_EVERY_S = 290.0
_LAST_S = 2.0
"""Seconds that answers to presses may take at the end."""

IsRedelivered = Callable[[int | None, InboundMessage], bool]
"""Whether an earlier process may have seen a message, by the id of its update (CMD-1)."""


class Updates:
    """Handles the updates of a bot."""

    def __init__(
        self,
        client: BotClient,
        bot: Bot,
        account: str,
        forums: LruCache[int, None] | None = None,
    ) -> None:
        """``forums`` gets the ids of groups with topics that messages come from."""
        self._forums = forums if forums is not None else LruCache[int, None](1)
        self._client = client
        self._bot = bot
        self._account = account
        self._answers: set[asyncio.Task[None]] = set()
        self._closed = False

    async def commit(
        self, updates: Sequence[object], intake: InboundHandler, is_redelivered: IsRedelivered
    ) -> None:
        """Commit updates in one batch. Raises ``StoreUnavailable``."""
        batch = self._read(updates, is_redelivered)
        if batch:
            await intake.accept(batch)
        for update in updates:
            press = press_of(update)
            if press is None or self._closed or (text := toast(press[1])) is None:
                continue
            # Also if it was known: an earlier process may have died before it could answer.
            task = asyncio.create_task(self._answer(press[0], text), name="telegram press")
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)

    async def follow_name(self, changed: Callable[[Bot], None]) -> None:
        """Ask for the bot's name every few minutes; it can be changed while the bot runs."""
        while True:
            await asyncio.sleep(_NAME_EVERY_S)
            with suppress(ChannelError):
                bot = await self._client.get_me()
                if bot.username != self._bot.username:
                    facts = {"account": self._account, "handle": bot.username}
                    _log.info("bot_renamed", extra=facts)
                    self._bot = bot
                    changed(bot)

    async def close(self) -> None:
        """Answer no more presses, after those in progress."""
        self._closed = True
        if self._answers:
            await asyncio.wait(self._answers, timeout=_LAST_S)
        for task in self._answers:
            task.cancel()
        if self._answers:
            await asyncio.wait(self._answers)

    def _read(self, updates: Sequence[object], is_redelivered: IsRedelivered) -> list[Inbound]:
        batch: list[Inbound] = []
        for update in updates:
            number = update_id(update)
            try:
                told = parse_update(update, account=self._account, bot=self._bot)
            except Malformed as error:
                _log.warning(
                    "update_malformed",
                    extra={"account": self._account, "update_id": number, "error": str(error)},
                )
                continue
            if isinstance(told, InboundMessage):
                if told.peer is PeerKind.GROUP:
                    self._note_forum(update)
                told = named(self._bot.id, told)
                if is_redelivered(number, told):
                    told = replace(told, redelivered=True)
            if told is not None:
                batch.append(told)
            else:
                kind = next((key for key in object_or_empty(update) if key != "update_id"), "")
                facts = {"account": self._account, "update_id": number, "kind": kind}
                _log.debug("update_ignored", extra=facts)
        return batch

    def _note_forum(self, update: object) -> None:
        message = object_or_empty(object_or_empty(update).get("message"))
        chat = object_or_empty(message.get("chat"))
        number = whole_number(chat.get("id"))
        if number is None:
            return
        if chat.get("is_forum") is True:
            self._forums[number] = None
        else:
            self._forums.pop(number, None)

    async def _answer(self, press: str, text: str) -> None:
        """Confirm a button press, and show what the button does."""
        for attempt in range(1, _TRIES + 1):
            try:
                await self._client.answer_press(press, text)
            except ChannelError as error:
                if not error.retryable or attempt == _TRIES:
                    _log.debug("button_press_not_answered", extra={"error": str(error)})
                    return
                await asyncio.sleep(error.retry_after_s or _APART_S)
            else:
                return
