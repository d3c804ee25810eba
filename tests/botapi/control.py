"""Driving an emulator that runs in another thread or process."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests.botapi.faults import Fault, FaultKind
from tests.botapi.rules import Json
from tests.botapi.server import TOKEN, BotApi, Call


class Control:
    """The controls of ``BotApi`` over HTTP, synchronous. ``url`` is the emulator's base URL."""

    def __init__(self, url: str, token: str = TOKEN) -> None:
        self.url = url
        self.token = token

    def say(self, user_id: int, text: str, **more: object) -> list[Json]:
        """Let a user write; ``more`` as in ``BotApi.say``."""
        return self._objects(self._call("say", user_id=user_id, text=text, **more))

    def press(self, user_id: int, message_id: int, data: str) -> str:
        return str(self._call("press", user_id=user_id, message_id=message_id, data=data))

    def push(self, update: Json) -> int:
        return int(str(self._call("push", update=update)))

    def add_group(self, chat_id: int, title: str, *, topics: Sequence[int] = ()) -> None:
        self._call("add_group", chat_id=chat_id, title=title, topics=list(topics))

    def block(self, user_id: int) -> None:
        self._call("block", user_id=user_id)

    def fault(self, fault: Fault) -> None:
        self._call(
            "fault",
            method=fault.method,
            kind=fault.kind.value,
            count=fault.count,
            seconds=fault.seconds,
            status=fault.status,
        )

    def clear_faults(self) -> None:
        self._call("clear_faults")

    def limit(self, per_second: int | None) -> None:
        self._call("limit", per_second=per_second)

    def set_webhook(self, url: str) -> None:
        self._call("set_webhook", url=url)

    def revoke(self) -> None:
        self._call("revoke")

    def renumber(self, last_update: int) -> None:
        self._call("renumber", last_update=last_update)

    def transcript(self, method: str | None = None, *, ok: bool = False) -> list[Call]:
        return self._calls(self._call("transcript", method=method, ok=ok))

    def texts(self, chat_id: int) -> list[str]:
        return self._strings(self._call("texts", chat_id=chat_id))

    def pending(self) -> int:
        return int(str(self._call("pending")))

    def wait_calls(
        self, method: str, count: int = 1, *, ok: bool = False, timeout_s: float = 5
    ) -> list[Call]:
        return self._calls(
            self._call("wait_calls", method=method, count=count, ok=ok, timeout_s=timeout_s)
        )

    def wait_texts(self, chat_id: int, count: int = 1, *, timeout_s: float = 5) -> list[str]:
        return self._strings(
            self._call("wait_texts", chat_id=chat_id, count=count, timeout_s=timeout_s)
        )

    def wait_confirmed(self, *, timeout_s: float = 5) -> None:
        self._call("wait_confirmed", timeout_s=timeout_s)

    def _call(self, name: str, /, **arguments: object) -> object:
        """Raises ``AssertionError`` with the emulator's words if it refuses."""
        place = urlsplit(self.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
        try:
            connection.request("POST", f"/control/{name}", json.dumps(arguments))
            answer = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        if "error" in answer:
            raise AssertionError(answer["error"])
        result: object = answer["result"]
        return result

    @staticmethod
    def _objects(result: object) -> list[Json]:
        assert isinstance(result, list)
        return result

    @staticmethod
    def _strings(result: object) -> list[str]:
        assert isinstance(result, list)
        return result

    @classmethod
    def _calls(cls, result: object) -> list[Call]:
        return [_call_of(entry) for entry in cls._objects(result)]


def _call_of(entry: Json) -> Call:
    at, status, fault = entry["at"], entry["status"], entry["fault"]
    parameters = entry["parameters"]
    assert isinstance(at, float)
    assert isinstance(parameters, dict)
    assert status is None or isinstance(status, int)
    return Call(
        at=at,
        method=str(entry["method"]),
        parameters=parameters,
        status=status,
        result=entry["result"],
        fault=None if fault is None else FaultKind(str(fault)),
    )


@contextmanager
def in_thread() -> Iterator[Control]:
    """Run an emulator in a thread and drive it from here."""
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    stop = asyncio.Event()
    urls: list[str] = []

    async def serve() -> None:
        async with BotApi() as api:
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
