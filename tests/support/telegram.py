"""The whole Telegram channel on a strict Bot API emulator: both libraries, both ways of receiving.

``telegram_fixtures`` has the fixtures. The libraries are imported only when a test uses them, once
in a process.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum

import aiohttp

from channels.telegram import factory
from channels.telegram.settings import Library
from channels.telegram.webhook import SECRET_HEADER, secret_of
from goclaw_py.chat.channel import Channel
from goclaw_py.core.errors import ChannelRefused, StoreUnavailable
from goclaw_py.core.messages import (
    ChatMigrated,
    ChatReached,
    Inbound,
    InboundMessage,
    OutboundMessage,
    Target,
)
from goclaw_py.web.hooks import HookApp, collect_hooks
from goclaw_py.web.server import HttpServer
from tests.botapi import BotApi
from tests.botapi.server import TOKEN

ANN = 7
BEN = 8
GROUP = -1001
TOPIC = 55
CHAT = Target("telegram", "default", str(ANN))
PATH = "/hooks/telegram"
LIMIT_S = 10.0


class Mode(StrEnum):
    """How updates come in."""

    POLLING = "polling"
    WEBHOOK = "webhook"


@dataclass(slots=True)
class Inbox:
    """An intake that keeps what it accepts and fails as a test says."""

    down: bool = False
    """The database is away."""
    bug: Exception | None = None
    """Raised by every offer."""
    takes_s: float = 0.0
    """How long a commit takes."""
    offered: list[Inbound] = field(default_factory=list)
    accepted: list[Inbound] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def accept(self, batch: Sequence[Inbound]) -> None:
        self.offered.extend(batch)
        self._changed.set()
        if self.bug is not None:
            raise self.bug
        if self.down:
            raise StoreUnavailable("the database does not answer")
        await asyncio.sleep(self.takes_s)
        self.accepted.extend(batch)
        self._changed.set()

    async def until(self, reached: Callable[[], object]) -> None:
        """Wait until something is so that depends on what came in. Raises ``TimeoutError``."""
        async with asyncio.timeout(LIMIT_S):
            while not reached():
                self._changed.clear()
                await self._changed.wait()

    async def until_offered(self, *texts: str) -> None:
        await self.until(lambda: set(texts) <= set(_texts(self.offered)))

    async def until_accepted(self, *texts: str) -> None:
        await self.until(lambda: set(texts) <= set(self.texts))

    @property
    def messages(self) -> list[InboundMessage]:
        return [one for one in self.accepted if isinstance(one, InboundMessage)]

    @property
    def texts(self) -> list[str]:
        return _texts(self.accepted)

    @property
    def moves(self) -> list[ChatMigrated]:
        return [one for one in self.accepted if isinstance(one, ChatMigrated)]

    @property
    def reached(self) -> list[ChatReached]:
        return [one for one in self.accepted if isinstance(one, ChatReached)]


def _texts(batch: Sequence[Inbound]) -> list[str]:
    return [one.text for one in batch if isinstance(one, InboundMessage)]


@dataclass(slots=True)
class Line:
    """A channel with its server, ready to receive."""

    api: BotApi
    channel: Channel
    library: Library
    mode: Mode
    inbox: Inbox = field(default_factory=Inbox)
    port: int = 0
    """Where the webhook is served."""

    @asynccontextmanager
    async def receiving(self, *, restart: bool = False) -> AsyncIterator[asyncio.Task[None]]:
        """Receive meanwhile; ``restart``: again and again when it breaks, as a gateway does."""
        work = self._receive_again() if restart else self.channel.receive(self.inbox)
        task = asyncio.create_task(work)
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def ready(self) -> None:
        """Return when what is said next comes in at once."""
        method = "getUpdates" if self.mode is Mode.POLLING else "setWebhook"
        count = 2 if self.mode is Mode.POLLING else 1
        await self.api.wait_calls(method, count)
        if self.mode is Mode.WEBHOOK:
            await self.api.wait_calls(method, ok=True)

    async def post(
        self, body: bytes, *, path: str = PATH, method: str = "POST", secret: str | None = None
    ) -> int:
        """Call the webhook as anybody might; by default with the right secret."""
        headers = {SECRET_HEADER: secret_of(TOKEN) if secret is None else secret}
        url = f"http://127.0.0.1:{self.port}{path}"
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, url, data=body, headers=headers) as answer,
        ):
            await answer.read()
            return answer.status

    async def _receive_again(self) -> None:
        while True:
            try:
                await self.channel.receive(self.inbox)
            except ChannelRefused:
                raise
            except ArithmeticError:  # what tests let an intake raise
                await asyncio.sleep(0.05)


@asynccontextmanager
async def connected(
    api: BotApi, library: Library, mode: Mode = Mode.POLLING, **options: object
) -> AsyncIterator[Line]:
    """A channel; at the end nothing of it may be left."""
    given: dict[str, object] = {
        "token": api.token,
        "base_url": api.url,
        "library": library.value,
        "send_timeout_s": 1,
        "connect_timeout_s": 5,
        **options,
    }
    async with contextlib.AsyncExitStack() as stack:
        line_port = 0
        listener = None
        if mode is Mode.WEBHOOK:
            listener = socket.create_server(("127.0.0.1", 0))
            line_port = listener.getsockname()[1]
            given.setdefault("webhook_url", f"http://127.0.0.1:{line_port}{PATH}")
        channel = factory.build("default", given)
        if listener is not None:
            await stack.enter_async_context(_served(channel, listener))
        try:
            yield Line(api, channel, library, mode, port=line_port)
        finally:
            async with asyncio.timeout(LIMIT_S):
                await channel.close()
            names = [task.get_name() for task in asyncio.all_tasks()]
            assert not [name for name in names if "telegram" in name or "draft" in name]


@asynccontextmanager
async def _served(channel: Channel, listener: socket.socket) -> AsyncIterator[None]:
    app = HookApp(collect_hooks([channel]))
    server = HttpServer(app, listener, strangers=True)
    serving = asyncio.create_task(server.run())
    try:
        yield
    finally:
        server.stop()
        await serving


async def eventually(reached: Callable[[], object]) -> None:
    """Wait for what nobody announces. Raises ``TimeoutError``."""
    async with asyncio.timeout(LIMIT_S):
        while not reached():
            await asyncio.sleep(0.01)


def reply(text: str = "hi", *, to: str | None = None, target: Target = CHAT) -> OutboundMessage:
    return OutboundMessage(target, text, reply_to=to)
