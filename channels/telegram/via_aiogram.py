"""The Bot API through aiogram.

Uses its ``Bot`` and method classes with our own session: the library's session does not tell
whether a request was sent. Importing it takes seconds and 130 MB, so only a gateway whose settings
name it does so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import Any

import aiogram
from aiogram.client.session.base import BaseSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.enums import ParseMode
from aiogram.methods import (
    AnswerCallbackQuery,
    DeleteMessage,
    DeleteWebhook,
    EditMessageCaption,
    EditMessageReplyMarkup,
    EditMessageText,
    GetChatAdministrators,
    GetFile,
    GetMe,
    GetUpdates,
    GetWebhookInfo,
    SendChatAction,
    SendDocument,
    SendMediaGroup,
    SendMessage,
    SendMessageDraft,
    SendPhoto,
    SendVoice,
    SetMessageReaction,
    SetMyCommands,
    SetWebhook,
    TelegramMethod,
)
from aiogram.types import (
    BotCommand,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    InputMediaAudio,
    InputMediaDocument,
    InputMediaPhoto,
    InputMediaVideo,
    LinkPreviewOptions,
    ReactionTypeEmoji,
    ReplyParameters,
    User,
    WebhookInfo,
)

from channels.telegram.answers import (
    AlreadySo,
    Scrubber,
    file_path,
    guarded,
    member_ids,
    poll_timeout_s,
    read_answer,
    sent_id,
    sent_ids,
    silence,
    updates,
)
from channels.telegram.client import (
    Bot,
    Buttons,
    ChatPlace,
    MessageGone,
    Text,
    Upload,
    WebhookState,
)
from channels.telegram.http import FormFile, HttpPool, Pools, opened_together, save, send_opened
from channels.telegram.settings import TelegramSettings
from goclaw_py.core.messages import FileKind

_Media = InputMediaAudio | InputMediaDocument | InputMediaPhoto | InputMediaVideo
_MEDIA: Mapping[FileKind, type[_Media]] = {
    FileKind.PHOTO: InputMediaPhoto,
    FileKind.VIDEO: InputMediaVideo,
    FileKind.AUDIO: InputMediaAudio,
    FileKind.DOCUMENT: InputMediaDocument,
}
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)


class _File(InputFile):
    """An open file."""

    def __init__(self, part: FormFile) -> None:
        super().__init__(part.name)
        self.part = part

    async def read(self, bot: aiogram.Bot) -> AsyncGenerator[bytes, None]:  # noqa: ARG002
        """Yield the content in pieces."""
        while piece := await asyncio.to_thread(self.part.content.read, self.chunk_size):
            yield piece


class _Session(BaseSession):
    """HTTP for the library. Returns results unparsed, and raises ``ChannelError``.

    The methods below parse the few fields that they need: a sent message must not count as failed
    because the library finds something odd in its description.
    """

    def __init__(self, settings: TelegramSettings, pool: HttpPool) -> None:
        super().__init__(TelegramAPIServer.from_base(settings.base_url))
        self._pool = pool

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.close()

    async def make_request(
        self,
        bot: aiogram.Bot,
        method: TelegramMethod[Any],
        timeout: int | None = None,  # noqa: ASYNC109  the library's signature
    ) -> Any:
        """Make a call and return its result."""
        parameters: dict[str, object] = {}
        files: dict[str, FormFile] = {}
        # Not ``exclude_unset``: it would leave out what parts of a parameter say by default.
        told = method.model_dump(warnings=False, include=method.model_fields_set, exclude_none=True)
        for name, value in told.items():
            if isinstance(value, _File):
                files[name] = value.part
            else:
                # Plain values, not texts of JSON: they are written as JSON together.
                within: dict[str, Any] = {}
                parameters[name] = self.prepare_value(value, bot, within, _dumps_json=False)
                files |= {field: file.part for field, file in within.items()}
        status, body = await self._pool.post(
            self.api.api_url(bot.token, method.__api_method__),
            parameters,
            files,
            silence_s=timeout,
        )
        return read_answer(status, body)

    def stream_content(
        self,
        url: str,
        headers: dict[str, Any] | None = None,  # noqa: ARG002  the library's signature
        timeout: int = 30,  # noqa: ARG002
        chunk_size: int = 65536,  # noqa: ARG002
        raise_for_status: bool = True,  # noqa: ARG002, FBT001, FBT002
    ) -> AsyncGenerator[bytes, None]:
        """Download a file in pieces."""
        return self._pool.stream(url)


class AiogramClient:
    """A bot. Create it with ``open``."""

    def __init__(self, settings: TelegramSettings) -> None:
        silence("aiogram", "aiohttp")
        self.scrub = Scrubber(settings.token)
        self._pools = Pools(settings)
        self._bot = _bot(settings, self._pools.sending)
        self._poller = _bot(settings, self._pools.polling)
        self._actor = _bot(settings, self._pools.acting)
        self._carrier = _bot(settings, self._pools.files)

    @classmethod
    async def open(cls, settings: TelegramSettings) -> AiogramClient:
        """Create the client of a bot, without using the network."""
        client = cls(settings)
        await client._pools.open()
        return client

    @guarded()
    async def get_me(self) -> Bot:
        """Return the bot of the token."""
        user = User.model_validate(await _call(self._bot, GetMe()))
        reads_groups = user.can_read_all_group_messages is not False
        return Bot(user.id, user.username or "", reads_groups)

    @guarded()
    async def get_updates(
        self, *, offset: int | None, wait_s: int, kinds: Sequence[str]
    ) -> list[object]:
        """Return raw updates: the library refuses a whole batch for one malformed update."""
        poll = GetUpdates(offset=offset, timeout=wait_s, allowed_updates=list(kinds))
        return updates(await _call(self._poller, poll, silence_s=poll_timeout_s(wait_s)))

    @guarded(repeatable=False)
    async def send_message(
        self, place: ChatPlace, text: Text, *, reply_to: int | None = None, buttons: Buttons = ()
    ) -> int:
        """Send a text."""
        send = SendMessage(
            chat_id=place.chat_id,
            text=text.text,
            parse_mode=_mode(text),
            message_thread_id=place.thread_id,
            link_preview_options=_NO_PREVIEW,
            reply_parameters=_reply(reply_to),
            reply_markup=_keyboard(buttons),
        )
        return sent_id(await _call(self._bot, send))

    @guarded()
    async def edit_message(
        self, chat_id: int, message_id: int, text: Text, *, buttons: Buttons = ()
    ) -> None:
        """Edit a message."""
        edit = EditMessageText(
            text=text.text,
            chat_id=chat_id,
            message_id=message_id,
            parse_mode=_mode(text),
            link_preview_options=_NO_PREVIEW,
            reply_markup=_keyboard(buttons),
        )
        with suppress(AlreadySo):
            await _call(self._bot, edit)

    @guarded()
    async def edit_caption(self, chat_id: int, message_id: int, caption: Text | None) -> None:
        """Edit or remove a caption."""
        edit = EditMessageCaption(
            chat_id=chat_id,
            message_id=message_id,
            caption=caption.text if caption else None,
            parse_mode=_mode(caption) if caption else None,
        )
        with suppress(AlreadySo):
            await _call(self._bot, edit)

    @guarded(repeatable=False)
    async def set_buttons(self, chat_id: int, message_id: int, buttons: Buttons) -> bool:
        """Replace the buttons of a message."""
        edit = EditMessageReplyMarkup(
            chat_id=chat_id, message_id=message_id, reply_markup=_keyboard(buttons)
        )
        try:
            await _call(self._bot, edit)
        except AlreadySo:
            return False
        return True

    @guarded()
    async def remove_buttons(self, chat_id: int, message_id: int) -> None:
        """Remove the buttons of a message."""
        with suppress(AlreadySo, MessageGone):
            await _call(self._bot, EditMessageReplyMarkup(chat_id=chat_id, message_id=message_id))

    @guarded()
    async def delete_message(self, chat_id: int, message_id: int) -> None:
        """Delete a message."""
        with suppress(AlreadySo, MessageGone):
            await _call(self._bot, DeleteMessage(chat_id=chat_id, message_id=message_id))

    @guarded()
    async def send_draft(self, place: ChatPlace, draft_id: int, text: Text) -> None:
        """Show a native draft."""
        draft = SendMessageDraft(
            chat_id=place.chat_id,
            draft_id=draft_id,
            text=text.text,
            parse_mode=_mode(text),
            message_thread_id=place.thread_id,
            can_stop=True,
        )
        await _call(self._bot, draft)

    @guarded(repeatable=False)
    async def send_file(
        self, place: ChatPlace, upload: Upload, *, caption: Text | None = None, reply_to: int | None
    ) -> int:
        """Send a file."""

        async def send(kind: FileKind, part: FormFile) -> int:
            where: dict[str, Any] = {
                "chat_id": place.chat_id,
                "message_thread_id": place.thread_id,
                "caption": caption.text if caption else None,
                "parse_mode": _mode(caption) if caption else None,
                "reply_parameters": _reply(reply_to),
            }
            file = _File(part)
            method: TelegramMethod[Any]
            match kind:
                case FileKind.PHOTO:
                    method = SendPhoto(photo=file, **where)
                case FileKind.VOICE:
                    method = SendVoice(voice=file, **where)
                case _:
                    method = SendDocument(document=file, **where)
            return sent_id(await _call(self._carrier, method))

        return await send_opened(upload, send)

    @guarded(repeatable=False)
    async def send_album(
        self,
        place: ChatPlace,
        uploads: Sequence[Upload],
        *,
        captions: Sequence[Text | None],
        reply_to: int | None,
    ) -> list[int]:
        """Send files as an album."""
        with opened_together(uploads) as parts:
            album = SendMediaGroup(
                chat_id=place.chat_id,
                media=[
                    _MEDIA[upload.kind](
                        media=_File(part),
                        caption=caption.text if caption else None,
                        parse_mode=_mode(caption) if caption else None,
                    )
                    for part, upload, caption in zip(parts, uploads, captions, strict=True)
                ],
                message_thread_id=place.thread_id,
                reply_parameters=_reply(reply_to),
            )
            return sent_ids(await _call(self._carrier, album))

    @guarded()
    async def fetch_file(self, file_id: str, to: Path, *, limit_bytes: int) -> int:
        """Download a file."""
        found = await _call(self._carrier, GetFile(file_id=file_id))
        path = file_path(found, limit_bytes=limit_bytes)
        session = self._carrier.session
        pieces = session.stream_content(session.api.file_url(self._carrier.token, path))
        return await save(pieces, to, limit_bytes=limit_bytes)

    @guarded()
    async def send_action(self, place: ChatPlace, action: str) -> None:
        """Show "typing…" or similar."""
        show = SendChatAction(
            chat_id=place.chat_id, action=action, message_thread_id=place.thread_id
        )
        await _call(self._actor, show)

    @guarded()
    async def set_reaction(self, chat_id: int, message_id: int, emoji: str) -> None:
        """Set or remove a reaction."""
        reaction = SetMessageReaction(
            chat_id=chat_id,
            message_id=message_id,
            reaction=[ReactionTypeEmoji(emoji=emoji)] if emoji else [],
        )
        await _call(self._actor, reaction)

    @guarded()
    async def answer_press(self, press_id: str, text: str = "") -> None:
        """Confirm a button press."""
        await _call(self._actor, AnswerCallbackQuery(callback_query_id=press_id, text=text or None))

    @guarded()
    async def administrators(self, chat_id: int) -> frozenset[int]:
        """Return the administrators of a group."""
        return member_ids(await _call(self._actor, GetChatAdministrators(chat_id=chat_id)))

    @guarded()
    async def set_commands(self, commands: Mapping[str, str]) -> None:
        """Publish the command menu."""
        menu = [BotCommand(command=name, description=words) for name, words in commands.items()]
        await _call(self._bot, SetMyCommands(commands=menu))

    @guarded()
    async def webhook(self) -> WebhookState:
        """Return the present webhook."""
        found = WebhookInfo.model_validate(await _call(self._bot, GetWebhookInfo()))
        # Many programs put the token into the path, as a secret.
        return WebhookState(
            self.scrub(found.url),
            found.pending_update_count,
            self.scrub(found.last_error_message or ""),
        )

    @guarded()
    async def set_webhook(
        self, url: str, *, secret: str, kinds: Sequence[str], connections: int
    ) -> None:
        """Let the server send updates."""
        webhook = SetWebhook(
            url=url,
            max_connections=connections,
            allowed_updates=list(kinds),
            drop_pending_updates=False,
            secret_token=secret,
        )
        await _call(self._bot, webhook)

    @guarded()
    async def delete_webhook(self) -> None:
        """Remove the webhook."""
        await _call(self._bot, DeleteWebhook(drop_pending_updates=False))

    async def close(self) -> None:
        """Close all connections."""
        await self._pools.close()


def _bot(settings: TelegramSettings, pool: HttpPool) -> aiogram.Bot:
    return aiogram.Bot(settings.token, session=_Session(settings, pool))


async def _call(
    bot: aiogram.Bot, method: TelegramMethod[Any], *, silence_s: float | None = None
) -> object:
    """Make a call; return its result unparsed."""
    timeout = None if silence_s is None else ceil(silence_s)
    result: object = await bot(method, request_timeout=timeout)
    return result


def _mode(text: Text) -> ParseMode | None:
    return ParseMode.HTML if text.html else None


def _reply(reply_to: int | None) -> ReplyParameters | None:
    if reply_to is None:
        return None
    return ReplyParameters(message_id=reply_to, allow_sending_without_reply=True)


def _keyboard(buttons: Buttons) -> InlineKeyboardMarkup | None:
    if not buttons:
        return None
    return InlineKeyboardMarkup(
        inline_keyboard=[
            [InlineKeyboardButton(text=words, callback_data=data) for words, data in row]
            for row in buttons
        ]
    )
