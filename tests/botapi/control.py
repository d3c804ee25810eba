"""Driving an emulator that runs in another thread or process."""

from __future__ import annotations

import asyncio
import http.client
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, TypeVar, get_type_hints
from urllib.parse import urlsplit

from pydantic import TypeAdapter

from tests.botapi.knobs import Knobs
from tests.botapi.records import Call, Delivery
from tests.botapi.routes import controls, decoded, encoded
from tests.botapi.server import TOKEN, BotApi

C = TypeVar("C")


def _over_http(cls: type[C]) -> type[C]:
    """Replace every control of a class by one that asks the emulator."""
    for name, function in controls().items():
        setattr(cls, name, _asking(function))
    return cls


def _asking(function: Callable[..., object]) -> Callable[..., object]:
    signature = inspect.signature(function)
    var = next((p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD), "")

    @wraps(function)
    def ask(self: Control, /, *args: object, **kwargs: object) -> object:
        given = signature.bind(self, *args, **kwargs).arguments
        del given["self"]
        given.update(given.pop(var, {}))
        result = self._call(function.__name__, **given)
        return _reader(function).validate_python(result)

    return ask


@cache
def _reader(function: Callable[..., object]) -> TypeAdapter[object]:
    """What makes of JSON what a control returns."""
    return TypeAdapter(get_type_hints(function, include_extras=True)["return"])


@_over_http
class Control(Knobs):
    """The controls of ``BotApi`` over HTTP, synchronous. ``url`` is the emulator's base URL.

    Only methods work here; state such as ``world`` is in the emulator.
    """

    def __init__(self, url: str, token: str = TOKEN) -> None:
        self.url = url
        self.token = token
        self._place: tuple[str, int] | None = None

    @property
    def calls(self) -> list[Call]:
        return self.transcript()

    def wait_calls(
        self, method: str, count: int = 1, *, ok: bool = False, timeout_s: float = 50
    ) -> list[Call]:
        """Wait until ``method`` was called so often. Raises ``AssertionError``."""
        result = self._call("wait_calls", method=method, count=count, ok=ok, timeout_s=timeout_s)
        return TypeAdapter(list[Call]).validate_python(result)

    def wait_texts(self, chat_id: int, count: int = 1, *, timeout_s: float = 50) -> list[str]:
        """Wait until the bot has written so many messages. Raises ``AssertionError``."""
        result = self._call("wait_texts", chat_id=chat_id, count=count, timeout_s=timeout_s)
        return TypeAdapter(list[str]).validate_python(result)

    def wait_visible(self, chat_id: int, text: str, *, timeout_s: float = 50) -> None:
        """Wait until a message of the bot has exactly this text. Raises ``AssertionError``."""
        self._call("wait_visible", chat_id=chat_id, text=text, timeout_s=timeout_s)

    def wait_confirmed(self, *, timeout_s: float = 50) -> None:
        """Wait until every update is confirmed. Raises ``AssertionError``."""
        self._call("wait_confirmed", timeout_s=timeout_s)

    def wait_deliveries(
        self, count: int = 1, *, ok: bool = False, timeout_s: float = 50
    ) -> list[Delivery]:
        """Wait for attempts to reach the webhook; ``ok``: successful. Raises ``AssertionError``."""
        result = self._call("wait_deliveries", count=count, ok=ok, timeout_s=timeout_s)
        return TypeAdapter(list[Delivery]).validate_python(result)

    def _call(self, name: str, /, **arguments: object) -> object:
        """Raises ``AssertionError`` with the emulator's words if it refuses."""
        if self._place is None:
            # A port of its own, which still answers while the emulator has gone away.
            main = urlsplit(self.url)
            here = main.hostname or "", main.port or 80
            self._place = here[0], _ask(here, "", {})["port"]
        return _ask(self._place, name, arguments)


def _ask(place: tuple[str, int], name: str, arguments: dict[str, object]) -> Any:
    connection = http.client.HTTPConnection(*place, timeout=60)
    try:
        connection.request("POST", f"/control/{name}", encoded(arguments))
        answer = decoded(connection.getresponse().read())
    finally:
        connection.close()
    if "error" in answer:
        raise AssertionError(answer["error"])
    return answer["result"]


@contextmanager
def in_thread(*, local: bool = False) -> Iterator[Control]:
    """Run an emulator in a thread and drive it from here."""
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    stop = asyncio.Event()
    urls: list[str] = []

    async def serve() -> None:
        async with BotApi(local=local) as api:
            urls.append(api.url)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    try:
        if not ready.wait(10):
            raise TimeoutError("the emulator did not start")
        yield Control(urls[0])
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()
