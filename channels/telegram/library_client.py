"""The calls of a bot, which are the same over both libraries.

Both name methods, parameters and objects as the Bot API does. What differs (opening a bot, its
transport, files) is in ``via_ptb`` and ``via_aiogram``. Why polling passes by the libraries says
docs/adr/0048.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar
from urllib.parse import quote

from channels.telegram.answers import AlreadySo, Scrubber, guarded, read_answer, updates
from channels.telegram.client import (
    Bot,
    Buttons,
    ChatPlace,
    FileTooBig,
    MessageGone,
    Text,
    Upload,
    WebhookState,
)
from channels.telegram.http import FormFile, HttpPool, Pools, opened_together, save, send_opened
from channels.telegram.settings import TelegramSettings
from goclaw_py.core.errors import Undeliverable
from goclaw_py.core.messages import FileKind

if TYPE_CHECKING:
    import aiogram
    import telegram

    LibraryBot = telegram.Bot | aiogram.Bot

_POLL_MARGIN_S = 10.0
"""Seconds that a poll may take longer than requested before the connection counts as lost."""
_MEDIA = {
    FileKind.PHOTO: "InputMediaPhoto",
    FileKind.VIDEO: "InputMediaVideo",
    FileKind.AUDIO: "InputMediaAudio",
    FileKind.DOCUMENT: "InputMediaDocument",
}

_Call = TypeVar("_Call", bound="Awaitable[Any]")


class LibraryClient(ABC):
    """A bot. Create it with ``open``."""

    types: ClassVar[ModuleType]
    """The objects of the Bot API in the library: ``InlineKeyboardMarkup`` and the like."""
    can_stop: ClassVar[Mapping[str, Any]]
    """The parameter of drafts with a stop button."""

    def __init__(self, settings: TelegramSettings) -> None:
        self.scrub = Scrubber(settings.token)
        self._polls_url = f"{settings.base_url}/bot{settings.token}/getUpdates"
        self._files_url = f"{settings.base_url}/file/bot{settings.token}"
        self._no_preview = self.types.LinkPreviewOptions(is_disabled=True)
        self._pools = Pools(settings)
        self._bot = self._bot_over(self._pools.sending, settings)
        self._actor = self._bot_over(self._pools.acting, settings)
        self._carrier = self._bot_over(self._pools.files, settings)

    @classmethod
    async def open(cls, settings: TelegramSettings) -> Self:
        """Create the client of a bot, without using the network."""
        client = cls(settings)
        await client._pools.open()
        return client

    async def close(self) -> None:
        """Close all connections."""
        await self._pools.close()

    @abstractmethod
    def _bot_over(self, pool: HttpPool, settings: TelegramSettings) -> LibraryBot:
        """Create a bot of the library that uses the connections of a pool."""

    @abstractmethod
    def _file(self, part: FormFile, *, in_album: bool = False) -> Any:
        """Return an open file as the library sends it."""

    def _call(self, call: _Call) -> _Call:
        """Return a call of the library that raises ``ChannelError``."""
        return call

    # ------------------------------------------------------------------------ texts

    @guarded(repeatable=False)
    async def send_message(
        self, place: ChatPlace, text: Text, *, reply_to: int | None = None, buttons: Buttons = ()
    ) -> int:
        """Send a text."""
        sent = await self._call(
            self._bot.send_message(
                chat_id=place.chat_id,
                text=text.text,
                parse_mode=_mode(text),
                message_thread_id=place.thread_id,
                link_preview_options=self._no_preview,
                reply_parameters=self._reply(reply_to),
                reply_markup=self._keyboard(buttons),
            )
        )
        return sent.message_id

    @guarded()
    async def edit_message(
        self, chat_id: int, message_id: int, text: Text, *, buttons: Buttons = ()
    ) -> None:
        """Edit a message."""
        with suppress(AlreadySo):
            await self._call(
                self._bot.edit_message_text(
                    chat_id=chat_id,
                    message_id=message_id,
                    text=text.text,
                    parse_mode=_mode(text),
                    link_preview_options=self._no_preview,
                    reply_markup=self._keyboard(buttons),
                )
            )

    @guarded()
    async def edit_caption(self, chat_id: int, message_id: int, caption: Text | None) -> None:
        """Edit or remove a caption."""
        with suppress(AlreadySo):
            await self._call(
                self._bot.edit_message_caption(
                    chat_id=chat_id, message_id=message_id, **_caption(caption)
                )
            )

    @guarded(repeatable=False)
    async def set_buttons(self, chat_id: int, message_id: int, buttons: Buttons) -> bool:
        """Replace the buttons of a message."""
        try:
            await self._call(
                self._bot.edit_message_reply_markup(
                    chat_id=chat_id, message_id=message_id, reply_markup=self._keyboard(buttons)
                )
            )
        except AlreadySo:
            return False
        return True

    @guarded()
    async def remove_buttons(self, chat_id: int, message_id: int) -> None:
        """Remove the buttons of a message."""
        with suppress(AlreadySo, MessageGone):
            await self._call(
                self._bot.edit_message_reply_markup(chat_id=chat_id, message_id=message_id)
            )

    @guarded()
    async def delete_message(self, chat_id: int, message_id: int) -> None:
        """Delete a message."""
        with suppress(AlreadySo, MessageGone):
            await self._call(self._bot.delete_message(chat_id=chat_id, message_id=message_id))

    @guarded()
    async def send_draft(self, place: ChatPlace, draft_id: int, text: Text) -> None:
        """Show a native draft."""
        await self._call(
            self._bot.send_message_draft(
                chat_id=place.chat_id,
                draft_id=draft_id,
                text=text.text,
                message_thread_id=place.thread_id,
                parse_mode=_mode(text),
                **self.can_stop,
            )
        )

    # ------------------------------------------------------------------------ files

    @guarded(repeatable=False)
    async def send_file(
        self, place: ChatPlace, upload: Upload, *, caption: Text | None = None, reply_to: int | None
    ) -> int:
        """Send a file."""
        common: dict[str, Any] = {
            "chat_id": place.chat_id,
            "message_thread_id": place.thread_id,
            "reply_parameters": self._reply(reply_to),
            **_caption(caption),
        }

        async def send(kind: FileKind, part: FormFile) -> int:
            file, bot = self._file(part), self._carrier
            match kind:
                case FileKind.PHOTO:
                    sent = await self._call(bot.send_photo(photo=file, **common))
                case FileKind.VOICE:
                    sent = await self._call(bot.send_voice(voice=file, **common))
                case _:
                    sent = await self._call(bot.send_document(document=file, **common))
            return sent.message_id

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
                getattr(self.types, _MEDIA[upload.kind])(
                    media=self._file(part, in_album=True), **_caption(caption)
                )
                for part, upload, caption in zip(parts, uploads, captions, strict=True)
            ]
            sent = await self._call(
                self._carrier.send_media_group(
                    chat_id=place.chat_id,
                    media=media,
                    message_thread_id=place.thread_id,
                    reply_parameters=self._reply(reply_to),
                )
            )
        return [message.message_id for message in sent]

    @guarded()
    async def fetch_file(self, file_id: str, to: Path, *, limit_bytes: int) -> int:
        """Download a file."""
        found = await self._call(self._carrier.get_file(file_id=file_id))
        if found.file_size is not None and found.file_size > limit_bytes:
            raise FileTooBig(
                f"the file has {found.file_size} bytes, which is more than {limit_bytes}"
            )
        # python-telegram-bot puts the address of the server in front, except of a path that is also
        # one of a file here.
        path = (found.file_path or "").removeprefix(f"{self._files_url}/")
        if path.startswith("/"):
            raise Undeliverable("the Bot API server keeps files on its own disk (--local)")
        pieces = self._pools.files.stream(f"{self._files_url}/{quote(path)}")
        return await save(pieces, to, limit_bytes=limit_bytes)

    # ------------------------------------------------------------------------ signs

    @guarded()
    async def send_action(self, place: ChatPlace, action: str) -> None:
        """Show "typing…" or similar."""
        await self._call(
            self._actor.send_chat_action(
                chat_id=place.chat_id, action=action, message_thread_id=place.thread_id
            )
        )

    @guarded()
    async def set_reaction(self, chat_id: int, message_id: int, emoji: str) -> None:
        """Set or remove a reaction."""
        reaction = [self.types.ReactionTypeEmoji(emoji=emoji)] if emoji else []
        await self._call(
            self._actor.set_message_reaction(
                chat_id=chat_id, message_id=message_id, reaction=reaction
            )
        )

    @guarded()
    async def answer_press(self, press_id: str, text: str = "") -> None:
        """Confirm a button press."""
        await self._call(
            self._actor.answer_callback_query(callback_query_id=press_id, text=text or None)
        )

    # ------------------------------------------------------------------------ the bot

    @guarded()
    async def get_me(self) -> Bot:
        """Return the bot of the token."""
        user = await self._call(self._bot.get_me())
        return Bot(user.id, user.username or "", bool(user.can_read_all_group_messages))

    @guarded()
    async def administrators(self, chat_id: int) -> frozenset[int]:
        """Return the administrators of a group."""
        members = await self._call(self._actor.get_chat_administrators(chat_id=chat_id))
        return frozenset(member.user.id for member in members)

    @guarded()
    async def set_commands(
        self, commands: Mapping[str, str], *, chat_id: int | None = None
    ) -> None:
        """Publish the command menu of a chat, None for all others."""
        menu = [
            self.types.BotCommand(command=name, description=words)
            for name, words in commands.items()
        ]
        scope = None if chat_id is None else self.types.BotCommandScopeChat(chat_id=chat_id)
        await self._call(self._bot.set_my_commands(commands=menu, scope=scope))

    # ------------------------------------------------------------------------ updates

    @guarded()
    async def get_updates(
        self, *, offset: int | None, wait_s: int, kinds: Sequence[str]
    ) -> list[object]:
        """Return raw updates: the libraries refuse a whole batch for one malformed update."""
        parameters: dict[str, object] = {"timeout": wait_s, "allowed_updates": list(kinds)}
        if offset is not None:
            parameters["offset"] = offset
        answer = await self._pools.polling.post(
            self._polls_url, parameters, silence_s=wait_s + _POLL_MARGIN_S
        )
        return updates(read_answer(*answer))

    @guarded()
    async def webhook(self) -> WebhookState:
        """Return the present webhook."""
        found = await self._call(self._bot.get_webhook_info())
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
        await self._call(
            self._bot.set_webhook(
                url=url,
                max_connections=connections,
                allowed_updates=list(kinds),
                drop_pending_updates=False,
                secret_token=secret,
            )
        )

    @guarded()
    async def delete_webhook(self) -> None:
        """Remove the webhook."""
        await self._call(self._bot.delete_webhook(drop_pending_updates=False))

    # ------------------------------------------------------------------------ objects

    def _reply(self, reply_to: int | None) -> Any:
        if reply_to is None:
            return None
        return self.types.ReplyParameters(message_id=reply_to, allow_sending_without_reply=True)

    def _keyboard(self, buttons: Buttons) -> Any:
        if not buttons:
            return None
        button = self.types.InlineKeyboardButton
        return self.types.InlineKeyboardMarkup(
            inline_keyboard=[
                [button(text=words, callback_data=data) for words, data in row] for row in buttons
            ]
        )


def _mode(text: Text) -> str | None:
    return "HTML" if text.html else None


def _caption(caption: Text | None) -> dict[str, Any]:
    if caption is None:
        return {}
    return {"caption": caption.text, "parse_mode": _mode(caption)}
