"""The emulator over HTTP."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

from aiohttp import web

from tests.botapi import wire
from tests.botapi.faults import DOWNLOAD, FaultKind, Faults
from tests.botapi.knobs import Knobs
from tests.botapi.methods import METHODS
from tests.botapi.polling import Polls
from tests.botapi.records import Bell, Call, Delivery, Transcript
from tests.botapi.routes import control
from tests.botapi.rules import Json, Parameters, Refusal, Upload
from tests.botapi.site import HOST, Site
from tests.botapi.updates import Pending
from tests.botapi.webhook import Courier
from tests.botapi.world import World

TOKEN = "4242:AAtest-token_for-the-emulator-only12"
_WELL_FORMED_TOKEN = re.compile(r"\d+:[A-Za-z0-9_-]{10,}")
_NAMES = {name.lower(): name for name in (*METHODS, "getUpdates")}
_HOOKED = frozenset(["setWebhook", "deleteWebhook"])

T = TypeVar("T")


class BotApi(Knobs):
    """The server and its controls. Use as an asynchronous context manager."""

    def __init__(self, *, local: bool = False) -> None:
        self.token = TOKEN
        self.records = Transcript()
        self.faults = Faults()
        self.token_refused = False
        self.world = World(int(TOKEN.partition(":")[0]), "GoclawTestBot", self._clock, local)
        self.world.updates.on_new = self._told
        self.courier = Courier(self.world, self.faults, self._notify)
        self._bell = Bell()
        self._polls = Polls(self.world, self._bell)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._public = Site(self._handle)
        self._private = Site(partial(control, self))
        self._coming_back: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        await self._public.open()
        await self._private.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._coming_back is not None:
            self._coming_back.cancel()
            await asyncio.gather(self._coming_back, return_exceptions=True)
        await self._public.close()
        await self.courier.close()
        await self._private.close()

    @property
    def url(self) -> str:
        """The base URL, as a gateway's ``base_url`` wants it."""
        return f"http://{HOST}:{self._public.port}"

    @property
    def control_port(self) -> int:
        """Where the controls answer, also while the server has gone away."""
        return self._private.port

    def go_away(self, seconds: float) -> None:
        if not self._public.is_open:
            raise ValueError("the emulator is away already")
        self._public.go_away()
        self._coming_back = asyncio.ensure_future(self._come_back(seconds))

    async def _come_back(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._public.open()
        self._notify()

    async def until(self, look: Callable[[], T], *, timeout_s: float = 15) -> T:
        """Wait until ``look`` gives something. Raises ``TimeoutError``."""
        async with asyncio.timeout(timeout_s):
            while not (found := look()):
                await self._bell.next()
        return found

    async def wait_calls(
        self, method: str, count: int = 1, *, ok: bool = False, timeout_s: float = 15
    ) -> list[Call]:
        """Wait until ``method`` was called so often. Raises ``TimeoutError``."""
        await self.until(lambda: self.records.count(method, ok=ok) >= count, timeout_s=timeout_s)
        return self.transcript(method, ok=ok)

    async def wait_texts(self, chat_id: int, count: int = 1, *, timeout_s: float = 15) -> list[str]:
        """Wait until the bot has written so many messages in a chat. Raises ``TimeoutError``."""
        chats = self.world.chats
        await self.until(
            lambda: chat_id in chats and len(chats[chat_id].own) >= count, timeout_s=timeout_s
        )
        return self.texts(chat_id)

    async def wait_visible(self, chat_id: int, text: str, *, timeout_s: float = 15) -> None:
        """Wait until a message of the bot has exactly this text. Raises ``TimeoutError``."""
        await self.until(lambda: text in self.texts(chat_id), timeout_s=timeout_s)

    async def wait_confirmed(self, *, timeout_s: float = 15) -> None:
        """Wait until every update is confirmed. Raises ``TimeoutError``."""
        await self.until(lambda: not self.world.updates.waiting, timeout_s=timeout_s)

    async def wait_deliveries(
        self, count: int = 1, *, ok: bool = False, timeout_s: float = 15
    ) -> list[Delivery]:
        """Wait for attempts to reach the webhook; ``ok``: successful. Raises ``TimeoutError``."""

        def found() -> list[Delivery]:
            return [d for d in self.courier.deliveries if not (ok and d.error)]

        await self.until(lambda: len(found()) >= count, timeout_s=timeout_s)
        return found()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if path.startswith("/bot"):
            token, _, method = path[4:].partition("/")
            name = _NAMES.get(method.lower(), method)
            return await self._call(request, name, partial(self._answer, token, name))
        if path.startswith("/file/bot"):
            token, _, place = path[9:].partition("/")
            return await self._call(request, DOWNLOAD, partial(self._download, token, place))
        if path.startswith("/control"):
            return await control(self, request)
        return wire.answer(Refusal(404, "Not Found").body(), 404)

    async def _call(
        self,
        request: web.BaseRequest,
        method: str,
        answer: Callable[[Parameters], Awaitable[_Answer]],
    ) -> web.StreamResponse:
        try:
            values, uploads = await wire.read(request)
        except Refusal as refusal:
            return wire.answer(refusal.body(), refusal.code)
        chat = _number(values.get("chat_id"))
        fault = self.faults.take(method, chat)
        place = self.records.begin(
            Call(
                at=self._clock(),
                method=method,
                parameters=_recorded(request, values, uploads),
                status=None,
                result=None,
                fault=fault.kind if fault else None,
                chat=chat,
            )
        )
        self._notify()
        status, result = 0, None
        try:
            if fault is not None and fault.kind.before:
                return await wire.fail_before(request, fault)
            if fault is not None and fault.kind is FaultKind.DELAY:
                await asyncio.sleep(fault.seconds)
            try:
                good, result = await answer(Parameters(values, uploads))
            except Refusal as refusal:
                good, result = wire.answer(refusal.body(), refusal.code), refusal.description
            if fault is not None and fault.kind.after:
                return await wire.fail_after(request, fault, good)
            status = good.status
            return good
        finally:
            self.records.end(place, method, status, result)
            self._notify()

    async def _answer(self, token: str, method: str, call: Parameters) -> _Answer:
        self._check_token(token)
        result: object
        if method == "getUpdates":
            result = await self._polls.get_updates(call)
        elif method not in METHODS:
            raise Refusal(404, "Not Found: method not found")
        else:
            result = METHODS[method](self.world, call)
            if method in _HOOKED:
                self._hook_changed()
        good = wire.answer({"ok": True, "result": result})
        # A message may change later; what was answered does not.
        return good, dict(result) if isinstance(result, dict) else result

    async def _download(self, token: str, place: str, _call: Parameters) -> _Answer:
        self._check_token(token)
        file = self.world.files.at(place)
        headers = {"Content-Type": "application/octet-stream"}
        return web.Response(body=file.content, headers=headers), file.id

    def _check_token(self, token: str) -> None:
        if not _WELL_FORMED_TOKEN.fullmatch(token):
            raise Refusal(404, "Not Found")
        if token != self.token or self.token_refused:
            raise Refusal(401, "Unauthorized")

    def _clock(self) -> float:
        now = time.monotonic() if self._loop is None else self._loop.time()
        return now + self.world.skipped_s

    def _told(self, update: Pending) -> None:
        self.courier.take(update)
        self._notify()

    def _notify(self) -> None:
        if self.token_refused:
            self._polls.end(Refusal(401, "Unauthorized"))
        self._bell.ring()

    def _hook_changed(self) -> None:
        if self.world.hook.url:
            self._polls.webhook_set()
        self.courier.restart()


_Answer = tuple[web.Response, object]


def _recorded(
    request: web.BaseRequest, values: dict[str, object], uploads: Mapping[str, Upload]
) -> Mapping[str, object]:
    """The parameters for the transcript: of files only what can be told in JSON."""
    if request.path.startswith("/file/"):
        return {"path": request.path.partition("/file/bot")[2].partition("/")[2]}
    if not uploads:
        return values
    told: Json = {
        name: {"name": upload.name, "mime": upload.mime, "size": len(upload.content)}
        for name, upload in uploads.items()
    }
    return values | told


def _number(value: object) -> int | None:
    try:
        return int(str(value)) if value is not None else None
    except ValueError:
        return None
