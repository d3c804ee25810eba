"""The Bot API through aiogram.

Uses its ``Bot`` with our own session: the library's session does not tell whether a request was
sent. Importing it takes seconds and 130 MB, so only a gateway whose settings name it does so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from types import ModuleType
from typing import Any, ClassVar

import aiogram
from aiogram.client.session.base import BaseSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.methods import TelegramMethod
from aiogram.types import (
    ChatMemberMember,
    File,
    InputFile,
    MessageId,
    TelegramObject,
    User,
    WebhookInfo,
)

from channels.telegram.answers import read_answer, required_fields, silence
from channels.telegram.http import FormFile, HttpPool
from channels.telegram.library_client import LibraryClient
from channels.telegram.settings import TelegramSettings

_RESULTS: Mapping[str, type[TelegramObject]] = {
    "getMe": User,
    "getChatAdministrators": ChatMemberMember,
    "getFile": File,
    "getWebhookInfo": WebhookInfo,
}
"""The results that are no messages. A message is only a ``MessageId``: a ``Message``, with its 120
fields, takes four times as long to create."""


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
    """HTTP for the library. Raises ``ChannelError``."""

    def __init__(self, settings: TelegramSettings, pool: HttpPool) -> None:
        # Values stay as they are: all parameters are written as JSON together.
        super().__init__(
            TelegramAPIServer.from_base(settings.base_url), json_dumps=lambda value: value
        )
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
        """Make a call; return the required fields of its result."""
        files: dict[str, _File] = {}
        parameters: dict[str, object] = {}
        for name, value in method.model_dump(warnings=False, exclude_none=True).items():
            prepared = self.prepare_value(value, bot, files)
            if prepared is not None:
                parameters[name] = prepared
        name = method.__api_method__
        answer = await self._pool.post(
            self.api.api_url(bot.token, name),
            parameters,
            {field: file.part for field, file in files.items()},
            silence_s=timeout,
        )
        result = required_fields(name, read_answer(*answer))
        model = _RESULTS.get(name, MessageId)
        if isinstance(result, list):
            return [model.model_validate(one) for one in result]
        return True if result is True else model.model_validate(result)

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


class AiogramClient(LibraryClient):
    """A bot. Create it with ``open``."""

    types: ClassVar[ModuleType] = aiogram.types
    can_stop: ClassVar[Mapping[str, Any]] = {"can_stop": True}

    def __init__(self, settings: TelegramSettings) -> None:
        silence("aiogram", "aiohttp")
        super().__init__(settings)

    def _bot_over(self, pool: HttpPool, settings: TelegramSettings) -> aiogram.Bot:
        return aiogram.Bot(settings.token, session=_Session(settings, pool))

    def _file(self, part: FormFile, *, in_album: bool = False) -> InputFile:  # noqa: ARG002
        return _File(part)
