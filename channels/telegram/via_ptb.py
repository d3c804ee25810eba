"""The Bot API through python-telegram-bot, over aiohttp.

Uses only the library's ``Bot``, with another transport: aiohttp needs a fifth of the default's CPU
time, and tells whether a request was certainly not sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

import telegram
from telegram.constants import ParseMode
from telegram.error import TelegramError
from telegram.request import BaseRequest, RequestData

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
from goclaw_py.core.errors import ChannelError
from goclaw_py.core.messages import FileKind

_WAYS = {
    FileKind.PHOTO: ("photo", "send_Photo"),
    FileKind.VOICE: ("voice", "send_Voice"),
}
_AS_DOCUMENT = ("document", "send_Document")
_Media = (
    telegram.InputMediaAudio
    | telegram.InputMediaDocument
    | telegram.InputMediaPhoto
    | telegram.InputMediaVideo
)
_MEDIA: Mapping[FileKind, type[_Media]] = {
    FileKind.PHOTO: telegram.InputMediaPhoto,
    FileKind.VIDEO: telegram.InputMediaVideo,
    FileKind.AUDIO: telegram.InputMediaAudio,
    FileKind.DOCUMENT: telegram.InputMediaDocument,
}
_NO_PREVIEW = {"is_disabled": True}
"""Not the library's class: that one would be converted for each message."""

_T = TypeVar("_T")


class _Failure(TelegramError):
    """Carries our error through the library, which passes only its own kind on."""

    def __init__(self, error: ChannelError) -> None:
        super().__init__(str(error))
        self.error = error


class _Transport(BaseRequest):
    """HTTP for the library. Raises ``_Failure``."""

    __slots__ = ("_pool",)

    def __init__(self, pool: HttpPool) -> None:
        self._pool = pool

    @property
    def read_timeout(self) -> float:
        """The default time limit of a response in seconds."""
        return self._pool.silence_s

    async def initialize(self) -> None:
        """Open the connection pool, if it is closed."""
        await self._pool.open()

    async def shutdown(self) -> None:
        """Close the connection pool."""
        await self._pool.close()

    async def do_request(  # noqa: PLR0913, PLR0917  the library's signature
        self,
        url: str,
        method: str,  # noqa: ARG002  the library fetches with GET only what it downloads itself
        request_data: RequestData | None = None,
        read_timeout: object = BaseRequest.DEFAULT_NONE,
        write_timeout: object = BaseRequest.DEFAULT_NONE,  # noqa: ARG002
        connect_timeout: object = BaseRequest.DEFAULT_NONE,  # noqa: ARG002
        pool_timeout: object = BaseRequest.DEFAULT_NONE,  # noqa: ARG002
    ) -> tuple[int, bytes]:
        """Make a call; return no refusals, except those that ``parse_json_payload`` raises."""
        request = request_data or RequestData()
        silence_s = read_timeout if isinstance(read_timeout, (int, float)) else None
        try:
            status, body = await self._pool.post(
                url, request.parameters, _files(request), silence_s=silence_s
            )
            if status != 200:
                read_answer(status, body)
        except ChannelError as error:
            raise _Failure(error) from None
        return status, body

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, object]:
        """Decode a response of ``do_request``. Raises ``_Failure`` for one without ``ok``."""
        try:
            return {"result": read_answer(200, payload)}
        except ChannelError as error:
            raise _Failure(error) from None


def _files(request: RequestData) -> dict[str, FormFile]:
    if not request.contains_files:
        return {}
    # ``PtbClient`` hands over open files only.
    return {
        field: FormFile(cast("BinaryIO", content), name, mime)
        for field, (name, content, mime) in request.multipart_data.items()
    }


async def _ours(call: Awaitable[_T]) -> _T:
    """Make a call of the library; raise our error instead of its carrier."""
    try:
        return await call
    except _Failure as failure:
        raise failure.error from None


class PtbClient:
    """A bot. Create it with ``open``."""

    def __init__(self, settings: TelegramSettings) -> None:
        silence("telegram", "httpx", "httpcore", "aiohttp")
        self.scrub = Scrubber(settings.token)
        self._files_url = f"{settings.base_url}/file/bot{settings.token}"
        self._pools = Pools(settings)
        self._bot = _bot(settings, self._pools.sending, self._pools.polling)
        self._actor = _bot(settings, self._pools.acting)
        self._carrier = _bot(settings, self._pools.files)

    @classmethod
    async def open(cls, settings: TelegramSettings) -> PtbClient:
        """Create the client of a bot, without using the network."""
        client = cls(settings)
        await client._pools.open()
        return client

    @guarded()
    async def get_me(self) -> Bot:
        """Return the bot of the token."""
        user = await _ours(self._bot.get_me())
        reads_groups = user.can_read_all_group_messages is not False
        return Bot(user.id, user.username or "", reads_groups)

    @guarded()
    async def get_updates(
        self, *, offset: int | None, wait_s: int, kinds: Sequence[str]
    ) -> list[object]:
        """Return raw updates: the library refuses a whole batch for one malformed update."""
        parameters = {"offset": offset, "timeout": wait_s, "allowed_updates": list(kinds)}
        return updates(
            await _raw(self._bot, "get_Updates", parameters, read_timeout=poll_timeout_s(wait_s))
        )

    @guarded(repeatable=False)
    async def send_message(
        self, place: ChatPlace, text: Text, *, reply_to: int | None = None, buttons: Buttons = ()
    ) -> int:
        """Send a text."""
        parameters = {
            "chat_id": place.chat_id,
            "text": text.text,
            "parse_mode": _mode(text),
            "message_thread_id": place.thread_id,
            "link_preview_options": _NO_PREVIEW,
            "reply_parameters": _reply(reply_to),
            "reply_markup": _keyboard(buttons),
        }
        return sent_id(await _raw(self._bot, "send_Message", parameters))

    @guarded()
    async def edit_message(
        self, chat_id: int, message_id: int, text: Text, *, buttons: Buttons = ()
    ) -> None:
        """Edit a message."""
        parameters = {
            "chat_id": chat_id,
            "message_id": message_id,
            "text": text.text,
            "parse_mode": _mode(text),
            "link_preview_options": _NO_PREVIEW,
            "reply_markup": _keyboard(buttons),
        }
        with suppress(AlreadySo):
            await _raw(self._bot, "edit_Message_Text", parameters)

    @guarded()
    async def edit_caption(self, chat_id: int, message_id: int, caption: Text | None) -> None:
        """Edit or remove a caption."""
        with suppress(AlreadySo):
            await _ours(
                self._bot.edit_message_caption(
                    chat_id,
                    message_id,
                    caption=caption.text if caption else None,
                    parse_mode=_mode(caption) if caption else None,
                )
            )

    @guarded(repeatable=False)
    async def set_buttons(self, chat_id: int, message_id: int, buttons: Buttons) -> bool:
        """Replace the buttons of a message."""
        try:
            await _ours(
                self._bot.edit_message_reply_markup(
                    chat_id, message_id, reply_markup=_keyboard(buttons)
                )
            )
        except AlreadySo:
            return False
        return True

    @guarded()
    async def remove_buttons(self, chat_id: int, message_id: int) -> None:
        """Remove the buttons of a message."""
        with suppress(AlreadySo, MessageGone):
            await _ours(self._bot.edit_message_reply_markup(chat_id, message_id))

    @guarded()
    async def delete_message(self, chat_id: int, message_id: int) -> None:
        """Delete a message."""
        with suppress(AlreadySo, MessageGone):
            await _ours(self._bot.delete_message(chat_id, message_id))

    @guarded()
    async def send_draft(self, place: ChatPlace, draft_id: int, text: Text) -> None:
        """Show a native draft."""
        await _ours(
            self._bot.send_message_draft(
                place.chat_id,
                draft_id,
                text.text,
                message_thread_id=place.thread_id,
                parse_mode=_mode(text),
                # Newer than the library.
                api_kwargs={"can_stop": True},
            )
        )

    @guarded(repeatable=False)
    async def send_file(
        self, place: ChatPlace, upload: Upload, *, caption: Text | None = None, reply_to: int | None
    ) -> int:
        """Send a file."""

        async def send(kind: FileKind, part: FormFile) -> int:
            field, method = _WAYS.get(kind, _AS_DOCUMENT)
            parameters = {
                "chat_id": place.chat_id,
                field: _input_file(part),
                "caption": caption.text if caption else None,
                "parse_mode": _mode(caption) if caption else None,
                "message_thread_id": place.thread_id,
                "reply_parameters": _reply(reply_to),
            }
            return sent_id(await _raw(self._carrier, method, parameters))

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
            media = [
                _MEDIA[upload.kind](
                    _input_file(part, attach=True),
                    caption=caption.text if caption else None,
                    parse_mode=_mode(caption) if caption else None,
                )
                for part, upload, caption in zip(parts, uploads, captions, strict=True)
            ]
            parameters = {
                "chat_id": place.chat_id,
                "media": media,
                "message_thread_id": place.thread_id,
                "reply_parameters": _reply(reply_to),
            }
            return sent_ids(await _raw(self._carrier, "send_Media_Group", parameters))

    @guarded()
    async def fetch_file(self, file_id: str, to: Path, *, limit_bytes: int) -> int:
        """Download a file."""
        # Not by ``get_file``: it takes a path that also exists here for a file of its server.
        found = await _raw(self._carrier, "get_File", {"file_id": file_id})
        path = file_path(found, limit_bytes=limit_bytes)
        pieces = self._pools.files.stream(f"{self._files_url}/{path}")
        return await save(pieces, to, limit_bytes=limit_bytes)

    @guarded()
    async def send_action(self, place: ChatPlace, action: str) -> None:
        """Show "typing…" or similar."""
        await _ours(self._actor.send_chat_action(place.chat_id, action, place.thread_id))

    @guarded()
    async def set_reaction(self, chat_id: int, message_id: int, emoji: str) -> None:
        """Set or remove a reaction."""
        await _ours(self._actor.set_message_reaction(chat_id, message_id, emoji or []))

    @guarded()
    async def answer_press(self, press_id: str, text: str = "") -> None:
        """Confirm a button press."""
        await _ours(self._actor.answer_callback_query(press_id, text or None))

    @guarded()
    async def administrators(self, chat_id: int) -> frozenset[int]:
        """Return the administrators of a group."""
        parameters = {"chat_id": chat_id}
        return member_ids(await _raw(self._actor, "get_Chat_Administrators", parameters))

    @guarded()
    async def set_commands(self, commands: Mapping[str, str]) -> None:
        """Publish the command menu."""
        await _ours(self._bot.set_my_commands(list(commands.items())))

    @guarded()
    async def webhook(self) -> WebhookState:
        """Return the present webhook."""
        found = await _ours(self._bot.get_webhook_info())
        # Many programs put the token into the path, as a secret.
        return WebhookState(
            self.scrub(found.url or ""),
            found.pending_update_count,
            self.scrub(found.last_error_message or ""),
        )

    @guarded()
    async def set_webhook(
        self, url: str, *, secret: str, kinds: Sequence[str], connections: int
    ) -> None:
        """Let the server send updates."""
        await _ours(
            self._bot.set_webhook(
                url,
                max_connections=connections,
                allowed_updates=list(kinds),
                drop_pending_updates=False,
                secret_token=secret,
            )
        )

    @guarded()
    async def delete_webhook(self) -> None:
        """Remove the webhook."""
        await _ours(self._bot.delete_webhook(drop_pending_updates=False))

    async def close(self) -> None:
        """Close all connections."""
        await self._pools.close()


def _input_file(part: FormFile, *, attach: bool = False) -> telegram.InputFile:
    file = telegram.InputFile(part.content, part.name, attach, read_file_handle=False)
    file.mimetype = part.mime
    return file


def _bot(
    settings: TelegramSettings, pool: HttpPool, polling: HttpPool | None = None
) -> telegram.Bot:
    return telegram.Bot(
        settings.token,
        base_url=f"{settings.base_url}/bot",
        request=_Transport(pool),
        get_updates_request=_Transport(polling or pool),
    )


async def _raw(
    bot: telegram.Bot,
    method: str,
    parameters: Mapping[str, object],
    *,
    read_timeout: float | None = None,
) -> object:
    """Make a call whose result the library does not parse.

    Parsing a message is the slowest part of a call for it; and a sent message would count as failed
    if the library found something odd in its description.

    ``method`` is spelled like ``send_Message``: the library takes that for an unknown method, and
    returns the result without a warning. It calls ``sendMessage``.
    """
    result: object = await _ours(
        bot.do_api_request(method, api_kwargs=dict(parameters), read_timeout=read_timeout)
    )
    return result


def _mode(text: Text) -> str | None:
    return ParseMode.HTML if text.html else None


def _reply(reply_to: int | None) -> Mapping[str, object] | None:
    if reply_to is None:
        return None
    return {"message_id": reply_to, "allow_sending_without_reply": True}


def _keyboard(buttons: Buttons) -> telegram.InlineKeyboardMarkup | None:
    if not buttons:
        return None
    return telegram.InlineKeyboardMarkup(
        [
            [telegram.InlineKeyboardButton(words, callback_data=data) for words, data in row]
            for row in buttons
        ]
    )
