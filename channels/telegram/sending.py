"""Converts outgoing messages to Bot API calls."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from weakref import WeakValueDictionary

from channels.telegram.client import (
    CAPTION_LIMIT,
    GENERAL_TOPIC,
    TEXT_LIMIT,
    BotClient,
    Buttons,
    ChatPlace,
    MarkupRefused,
    MessageGone,
    Text,
    TextTooLong,
    Upload,
)
from channels.telegram.format import plain, render
from goclaw_py.core.chat_commands import stop_data
from goclaw_py.core.concurrency import in_thread_if_long
from goclaw_py.core.containers import LruCache
from goclaw_py.core.errors import ChannelError, MaybeSent, Undeliverable
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import FileKind, OutboundMessage, Target
from goclaw_py.core.text import split_text, well_formed

_log = logging.getLogger("channels.telegram")

_CLOSE_TRIES = 5
_CLOSE_APART_S = 2.0
_STOP = "⏹ Stop"
_GROWING = " …"
_NOTHING_YET = "…"
_ROOM = 16
"""The room in a draft for its last sign."""
_ROOM_FOR_MARK = 64
_DRAFTS = 1_000
"""The number of drafts whose text is stored."""
_NUMBER = re.compile(r"-?[0-9]{1,18}")

ALBUMS = {
    FileKind.PHOTO: "seen",
    FileKind.VIDEO: "seen",
    FileKind.AUDIO: "heard",
    FileKind.DOCUMENT: "documents",
}
"""The kinds of files that an album may contain together, by the Bot API."""


class MessageSender:
    """Sends through a client that is opened when it is first needed."""

    def __init__(
        self,
        client: Callable[[], Awaitable[BotClient]],
        on_sent: Callable[[ChatPlace], None] = lambda _: None,
    ) -> None:
        """``on_sent`` is called when a new message is in a chat."""
        self._on_sent = on_sent
        self._client = client
        self._shown: OrderedDict[tuple[int, int], tuple[Text, Buttons]] = OrderedDict()
        """The texts of drafts; one that is too long for a message does not change."""
        self._bare: LruCache[tuple[int, int], None] = LruCache(_DRAFTS)
        """Messages without buttons, because they were removed or an edit has left them out."""
        self._edits: WeakValueDictionary[tuple[int, int], asyncio.Lock] = WeakValueDictionary()

    async def send(self, message: OutboundMessage) -> str:
        place = place_or_raise(message.target)
        if message.file is not None:
            return str(await self._send_file(place, message))
        if message.draft is not None and not message.text:
            await self.delete_draft(message.target, message.draft)
            return message.draft
        text = _text(message)
        try:
            return await self._edit_or_post(place, message, text, buttons_of(message))
        except TextTooLong:
            return await self._send_in_pieces(place, message, text)

    async def _edit_or_post(
        self, place: ChatPlace, message: OutboundMessage, text: Text, buttons: Buttons
    ) -> str:
        """Edit the draft of a message, or post the message."""
        if message.draft is not None:
            try:
                await self._edit(place, message.draft, text, buttons)
            except MessageGone:
                pass  # somebody has deleted it, so nothing of it can be seen twice
            else:
                return message.draft
        return str(await self._post(place, text, message.reply_to, buttons))

    async def _send_in_pieces(self, place: ChatPlace, message: OutboundMessage, text: Text) -> str:
        """Send a text that is too long for the server in smaller pieces, without markup."""
        said = plain(text.text) if text.html else text.text
        first, *others = map(Text, split_text(said, TEXT_LIMIT // 2))
        buttons = buttons_of(message)
        number = await self._edit_or_post(place, message, first, () if others else buttons)
        for place_in_line, piece in enumerate(others, start=1):
            try:
                last = place_in_line == len(others)
                await self._post(place, piece, None, buttons if last else ())
            except ChannelError as error:
                # Another try repeats what is in the chat, and is marked for it.
                raise MaybeSent(
                    f"only the beginning of a long message was sent: {error}"
                ) from error
        return number

    async def show_as_written(self, message: OutboundMessage, sent: str) -> None:
        """Edit a sent message to its own text or caption. Raises ``ChannelError``."""
        place = place_or_raise(message.target)
        if message.file is not None:
            _, caption = _upload(message)
            await (await self._client()).edit_caption(place.chat_id, _message_id(sent), caption)
            return
        pressed = (place.chat_id, _message_id(sent)) in self._bare
        await self._edit(place, sent, _text(message), () if pressed else buttons_of(message))

    async def post_draft(self, beginning: OutboundMessage) -> str:
        place = place_or_raise(beginning.target)
        text = await format_draft(beginning.text)
        buttons = stop_button(beginning.run_id)
        number = await self._post(place, text, beginning.reply_to, buttons)
        self._remember((place.chat_id, number), text, buttons)
        return str(number)

    async def edit_draft(self, so_far: OutboundMessage) -> None:
        if so_far.draft is not None:
            place = place_or_raise(so_far.target)
            text = await format_draft(so_far.text)
            await self._edit(place, so_far.draft, text, stop_button(so_far.run_id))

    async def close_draft(self, target: Target, draft: str, shown: str, mark: str) -> None:
        """Mark an incomplete draft: its text stays, without the button.

        ``mark`` has no markup and at most 60 characters. Raises ``ChannelError``; a deleted draft
        is no error.
        """
        parts = render(shown, TEXT_LIMIT - _ROOM_FOR_MARK)
        text = Text(f"{parts[0]}\n\n{mark}", html=True) if parts else Text(mark)
        try:
            await self._edit(place_or_raise(target), draft, text, ())
        except MessageGone:
            return

    async def delete_draft(self, target: Target, draft: str) -> None:
        """Delete a draft. Raises ``ChannelError``; a deleted draft is no error."""
        client = await self._client()
        place = place_or_raise(target)
        await client.delete_message(place.chat_id, _message_id(draft))

    async def remove_buttons(self, target: Target, message: str) -> None:
        """Remove the buttons of a message, once. Raises ``ChannelError``.

        A second press, or an edit that shows the result, would be refused as no change.
        """
        place, number = place_or_raise(target), number_of(message)
        if number is None:
            return
        key = place.chat_id, number
        client = await self._client()
        async with self._edits.setdefault(key, asyncio.Lock()):
            if key not in self._bare:
                await client.remove_buttons(*key)
                self._bare[key] = None

    async def _post(
        self, place: ChatPlace, text: Text, reply_to: str | None, buttons: Buttons
    ) -> int:
        client = await self._client()
        reply = number_of(reply_to)
        try:
            number = await client.send_message(place, text, reply_to=reply, buttons=buttons)
        except MarkupRefused:
            if not text.html:
                raise
            text = _as_plain(text)
            number = await client.send_message(place, text, reply_to=reply, buttons=buttons)
        self._on_sent(place)
        return number

    async def _edit(self, place: ChatPlace, draft: str, text: Text, buttons: Buttons) -> None:
        client = await self._client()
        number = _message_id(draft)
        # One after the other: the server might else take the last edit before an earlier one.
        edits = self._edits.setdefault((place.chat_id, number), asyncio.Lock())
        key = place.chat_id, number
        async with edits:
            if self._shown.get(key) == (text, buttons):
                return
            self._shown.pop(key, None)  # until it is known whether this edit took effect
            try:
                await client.edit_message(*key, text, buttons=buttons)
            except MarkupRefused:
                if not text.html:
                    raise
                await client.edit_message(*key, _as_plain(text), buttons=buttons)
            self._remember(key, text, buttons)

    def _remember(self, message: tuple[int, int], text: Text, buttons: Buttons) -> None:
        if not buttons:  # it is complete: nothing more is shown in it
            self._bare[message] = None
        else:
            self._bare.pop(message, None)
            self._shown[message] = text, buttons
            if len(self._shown) > _DRAFTS:
                self._shown.popitem(last=False)

    async def send_album(self, messages: Sequence[OutboundMessage]) -> list[str]:
        client = await self._client()
        place, reply = place_or_raise(messages[0].target), number_of(messages[0].reply_to)
        uploads, captions = map(list, zip(*map(_upload, messages), strict=True))
        ids = await client.send_album(place, uploads, captions=captions, reply_to=reply)
        self._on_sent(place)
        return [str(number) for number in ids]

    async def _send_file(self, place: ChatPlace, message: OutboundMessage) -> int:
        client = await self._client()
        upload, caption = _upload(message)
        reply = number_of(message.reply_to)
        return await client.send_file(place, upload, caption=caption, reply_to=reply)


async def with_retries(close: Callable[[], Awaitable[None]]) -> None:
    """Change a message for the last time, with some retries."""
    for _ in range(_CLOSE_TRIES):
        try:
            await close()
        except ChannelError as error:
            if not error.retryable:
                _log.info("message_not_closed", extra={"error": str(error)})
                return
            await asyncio.sleep(error.retry_after_s or _CLOSE_APART_S)
        else:
            return


def _upload(message: OutboundMessage) -> tuple[Upload, Text | None]:
    """Return the file of a message, and its caption."""
    file = message.file
    assert file is not None
    short = split_text(well_formed(message.text), CAPTION_LIMIT)
    caption = Text(short[0]) if short else None
    return Upload(file.kind, Path(file.path), file.name, file.mime), caption


async def format_draft(markdown: str) -> Text:
    """Return ``draft_text`` without stopping the event loop for a long reply."""
    return await in_thread_if_long(2 * len(markdown), partial(draft_text, markdown))


def draft_text(markdown: str) -> Text:
    """Return the part of a streamed reply that fits into one message."""
    parts = render(markdown[: 2 * TEXT_LIMIT], TEXT_LIMIT - _ROOM)
    if not parts:
        return Text(_NOTHING_YET)
    return Text(parts[0] + _GROWING, html=True)


def place_of(target: Target) -> ChatPlace | None:
    """Return the chat of a target; None if it is not one of Telegram."""
    chat, thread = number_of(target.chat), number_of(target.thread)
    if chat is None:
        return None
    return ChatPlace(chat, None if thread == GENERAL_TOPIC else thread)


def place_or_raise(target: Target) -> ChatPlace:
    """Return the chat of a target. Raises ``Undeliverable``."""
    place = place_of(target)
    if place is None:
        raise Undeliverable(f"{target.chat} is not a Telegram chat")
    return place


@lru_cache(4096)
def number_of(text: str | None) -> int | None:
    """Return a Telegram id as a number; None if it is not one."""
    return int(text) if text and _NUMBER.fullmatch(text) else None


def _message_id(draft: str) -> int:
    number = number_of(draft)
    if number is None:
        raise MessageGone(f"{draft} is no message of Telegram")
    return number


def buttons_of(message: OutboundMessage) -> Buttons:
    """Return the buttons below a message."""
    return [[(button.text, button.data) for button in row] for row in message.buttons]


def stop_button(run_id: RunId | None) -> Buttons:
    """Return the button of a draft."""
    return () if run_id is None else [[(_STOP, stop_data(run_id))]]


def _text(message: OutboundMessage) -> Text:
    return Text(message.text, html=True) if message.rich else Text(well_formed(message.text))


def _as_plain(text: Text) -> Text:
    # Without its tags it may be longer: addresses of links are shown.
    parts = split_text(plain(text.text), TEXT_LIMIT)
    return Text(parts[0] if parts else _NOTHING_YET)
