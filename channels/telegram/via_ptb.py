"""The Bot API through python-telegram-bot, over aiohttp.

Uses only the library's ``Bot``, with another transport: aiohttp needs a fifth of the default's CPU
time, and tells whether a request was certainly not sent.
"""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from types import ModuleType
from typing import Any, BinaryIO, ClassVar, TypeVar, cast

import orjson
import telegram
from telegram.constants import ParseMode
from telegram.error import TelegramError
from telegram.request import BaseRequest, RequestData
from telegram.warnings import PTBUserWarning

from channels.telegram.answers import AlreadySo, guarded, read_answer, required_fields, silence
from channels.telegram.client import Buttons, ChatPlace, Text
from channels.telegram.http import FormFile, HttpPool
from channels.telegram.library_client import LibraryClient
from channels.telegram.settings import TelegramSettings
from goclaw_py.core.errors import ChannelError

_REPLY = {"allow_sending_without_reply": True}
_NO_PREVIEW = {"is_disabled": True}

_T = TypeVar("_T")
_Call = TypeVar("_Call", bound=Awaitable[Any])


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

    async def do_request(  # noqa: PLR0917  the library's signature
        self,
        url: str,
        method: str,  # noqa: ARG002  the library fetches with GET only what it downloads itself
        request_data: RequestData | None = None,
        read_timeout: object = BaseRequest.DEFAULT_NONE,
        write_timeout: object = BaseRequest.DEFAULT_NONE,  # noqa: ARG002
        connect_timeout: object = BaseRequest.DEFAULT_NONE,  # noqa: ARG002
        pool_timeout: object = BaseRequest.DEFAULT_NONE,  # noqa: ARG002
    ) -> tuple[int, bytes]:
        """Make a call; return an answer with the required fields only, and no refusals."""
        request = request_data or RequestData()
        silence_s = read_timeout if isinstance(read_timeout, (int, float)) else None
        try:
            answer = await self._pool.post(
                url, request.parameters, _files(request), silence_s=silence_s
            )
            result = required_fields(url.rpartition("/")[2], read_answer(*answer))
        except ChannelError as error:
            raise _Failure(error) from None
        return 200, orjson.dumps({"result": result})

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, object]:
        """Decode what ``do_request`` has returned."""
        answer: dict[str, object] = orjson.loads(payload)
        return answer


def _files(request: RequestData) -> dict[str, FormFile]:
    if not request.contains_files:
        return {}
    # ``PtbClient`` gives the library open files only.
    return {
        field: FormFile(cast("BinaryIO", content), name, mime)
        for field, (name, content, mime) in request.multipart_data.items()
    }


async def _uncarried(call: Awaitable[_T]) -> _T:
    """Make a call of the library; raise our error instead of its carrier."""
    try:
        return await call
    except _Failure as failure:
        raise failure.error from None


class PtbClient(LibraryClient):
    """A bot. Create it with ``open``."""

    types: ClassVar[ModuleType] = telegram
    # The parameter is newer than the library.
    can_stop: ClassVar[Mapping[str, Any]] = {"api_kwargs": {"can_stop": True}}
    _bot: telegram.Bot

    def __init__(self, settings: TelegramSettings) -> None:
        silence("telegram", "httpx", "httpcore", "aiohttp")
        # What ``do_api_request`` says about methods that ``Bot`` has.
        warnings.filterwarnings("ignore", "Please use 'Bot", PTBUserWarning)
        super().__init__(settings)

    def _bot_over(self, pool: HttpPool, settings: TelegramSettings) -> telegram.Bot:
        transport = _Transport(pool)
        return telegram.Bot(
            settings.token,
            base_url=f"{settings.base_url}/bot",
            base_file_url=f"{settings.base_url}/file/bot",
            request=transport,
            get_updates_request=transport,
        )

    def _file(self, part: FormFile, *, in_album: bool = False) -> telegram.InputFile:
        file = telegram.InputFile(part.content, part.name, in_album, read_file_handle=False)
        file.mimetype = part.mime
        return file

    def _call(self, call: _Call) -> _Call:
        return _uncarried(call)  # type: ignore[return-value]  # awaited, it gives the same

    # The two calls of each answer are made unparsed: by ``Bot.send_message`` they take seven times
    # as long, most of it for a ``Message`` of which only the number is used (docs/adr/0048).

    @guarded(repeatable=False)
    async def send_message(
        self, place: ChatPlace, text: Text, *, reply_to: int | None = None, buttons: Buttons = ()
    ) -> int:
        """Send a text."""
        parameters = self._text_parameters(place.chat_id, text, buttons)
        if place.thread_id is not None:
            parameters["message_thread_id"] = place.thread_id
        if reply_to is not None:
            parameters["reply_parameters"] = _REPLY | {"message_id": reply_to}
        sent = await _uncarried(self._bot.do_api_request("sendMessage", parameters))
        number: int = sent["message_id"]
        return number

    @guarded()
    async def edit_message(
        self, chat_id: int, message_id: int, text: Text, *, buttons: Buttons = ()
    ) -> None:
        """Edit a message."""
        parameters = self._text_parameters(chat_id, text, buttons)
        parameters["message_id"] = message_id
        with suppress(AlreadySo):
            await _uncarried(self._bot.do_api_request("editMessageText", parameters))

    def _text_parameters(self, chat_id: int, text: Text, buttons: Buttons) -> dict[str, object]:
        parameters: dict[str, object] = {
            "chat_id": chat_id,
            "text": text.text,
            "link_preview_options": _NO_PREVIEW,
        }
        if text.html:
            parameters["parse_mode"] = ParseMode.HTML
        if buttons:
            parameters["reply_markup"] = self._keyboard(buttons)
        return parameters
