"""The command line against a gateway that runs in a thread of the test."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from goclaw_py.app.log_ring import LogRing
from goclaw_py.chat.terminals import ChatEvent, TerminalMessage
from goclaw_py.cli import composition
from goclaw_py.cli.entry import run
from goclaw_py.config import Settings
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import RunEnded, RunStarted, RunText
from goclaw_py.operations.control import Control
from goclaw_py.runs.events.live import LiveEvent
from goclaw_py.web.api.routes import closing_of
from goclaw_py.web.server import HttpServer
from goclaw_py.web.sockets import listen_unix, socket_path
from tests.support.apps import lend_api
from tests.unit.cli.job_control import JobControl
from tests.unit.web import fakes
from tests.unit.web.fake_terminals import FakeTerminals
from tests.unit.web.fakes import FakeControl


@dataclass(frozen=True, slots=True)
class Done:
    """What a command left."""

    code: int
    out: str
    err: str


class Confirmations:
    """Answers questions in a terminal: the first one with no, others with yes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
        monkeypatch.setattr("goclaw_py.cli.context.is_agreed", self._is_agreed)

    def _is_agreed(self, question: str) -> bool:
        self.asked.append(question)
        return len(self.asked) > 1


class Shell:
    """Runs commands in this process, in a home folder of their own."""

    def __init__(self, home: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capture = capture

    def __call__(self, *arguments: str) -> Done:
        code = run(arguments)
        return Done(code, *self._capture.readouterr())

    def data(self, *arguments: str) -> Any:
        """What a command prints for programs."""
        return json.loads(self(*arguments, "--json").out)


def lines(text: str) -> list[str]:
    """Those of a table, with one blank between the cells."""
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("GOCLAW_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GOCLAW_HOME", str(tmp_path))
    monkeypatch.setenv("GOCLAW_PROGRESS", "off")
    return tmp_path


@pytest.fixture
def goclaw(home: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(home, capsys)


class Echo(FakeTerminals):
    """Answers every line by streaming it back."""

    async def say(self, chat: str, message_id: str, text: str, **more: Any) -> None:
        await super().say(chat, message_id, text, **more)
        for event in (
            RunStarted(fakes.RUN_ID, fakes.LOCAL),
            RunText(fakes.RUN_ID, fakes.LOCAL, "you said: "),
            RunText(fakes.RUN_ID, fakes.LOCAL, text),
            RunEnded(fakes.RUN_ID, fakes.LOCAL, Outcome.COMPLETED),
            TerminalMessage(message_id, f"you said: {text}", fakes.RUN_ID),
        ):
            self.events.put_nowait(event)


class ThreadGateway:
    """A gateway in a thread. Its fakes may be read at any time and changed before it starts."""

    def __init__(self, home: Path) -> None:
        self.control = FakeControl()
        self.terminals = Echo()
        self.logs = LogRing()
        self._path = socket_path(home / "state")
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        listener = listen_unix(self._path)
        app = lend_api(self.control, self.terminals, self.logs)
        self._server = HttpServer(app, listener.socket, on_stop=closing_of(app).set)
        self._ready.set()
        try:
            await self._server.run()
        finally:
            listener.close()

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        assert self._ready.wait(10)
        try:
            yield
        finally:
            self.stop()

    def tell(self, event: LiveEvent) -> None:
        """Something happens to a run."""
        self._loop.call_soon_threadsafe(self.control.events.put_nowait, event)

    def tell_chat(self, event: ChatEvent) -> None:
        """Something happens in the chat of the terminal."""
        self._loop.call_soon_threadsafe(self.terminals.events.put_nowait, event)

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._server.stop)
            self._thread.join(10)
        assert not self._thread.is_alive()


@pytest.fixture
def gateway(home: Path) -> Iterator[ThreadGateway]:
    made = ThreadGateway(home)
    with made.running():
        yield made


def give(monkeypatch: pytest.MonkeyPatch, control: Control) -> None:
    """Where no gateway runs, commands get this one."""

    @asynccontextmanager
    async def open_control(settings: Settings, *, create: bool) -> AsyncIterator[Control]:
        yield control

    monkeypatch.setattr(composition, "open_control", open_control)


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> FakeControl:
    """No gateway: what commands get instead."""
    control = FakeControl()
    control.gateway = False
    give(monkeypatch, control)
    return control


@pytest.fixture
def cron(monkeypatch: pytest.MonkeyPatch) -> JobControl:
    """No gateway, and a database with jobs."""
    control = JobControl()
    give(monkeypatch, control)
    return control
