"""A whole gateway in this process, on the emulator and its own embedded database."""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import os
import random
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp.connector
import uvloop

from tests.botapi import BotApi
from tests.ledger.counters import PRODUCT, Counters, beside
from tests.ledger.loop import SteadyLoop
from tests.ledger.wire import Server, names

START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
PHASES = 10
WINDOW_S = 60.0 / PHASES
_BEGINNING_S = 0.1
_OFFSET_S = 0.77
"""Windows begin here, where no timer of the gateway is over."""
_SERVER = """
alter system set autovacuum = off;
alter system set full_page_writes = off;
alter system set fsync = off;
alter system set checkpoint_timeout = '1d';
alter system set max_wal_size = '2GB';
alter system set bgwriter_lru_maxpages = 0;
select pg_reload_conf()
"""
_SETTINGS = """
[agents.main]
model = "python:tests.ledger.agent:run"

[queue]
debounce_ms = 0

[lanes.main]
size = 20

[heartbeat]
interval = "6s"

[channels.telegram]
allow = ["1001"]

[log]
level = "info"
file = "{log}"
"""


@dataclass(frozen=True, slots=True)
class Window:
    """What was counted in a window. ``phase``: which one of a minute it was."""

    phase: int
    counts: Counter[str]


Act = Callable[["Bench"], Awaitable[None]]


class Missing(Exception):
    """The measured release, an older one, does not have it."""


class Bench:
    """What scenarios use: people, the web, and minutes that are counted."""

    def __init__(self, loop: SteadyLoop, api: BotApi, folder: Path, port: int) -> None:
        self.api = api
        self.folder = folder
        self._loop = loop
        self._port = port
        self._counters: Counters | None = None

    async def count(self, act: Act) -> Window:
        """Do something at the beginning of a window; what was counted until the end of it."""
        assert self._counters is not None
        if (self._loop.time() - _OFFSET_S) % WINDOW_S > _BEGINNING_S:
            await self.next_window()
        phase = int(self._loop.time() % 60 // WINDOW_S)
        self._counters.begin()
        try:
            await act(self)
            await self.next_window()
        finally:
            found = self._counters.end()
        return Window(phase, found)

    async def next_window(self) -> None:
        """Wait until the next window begins."""
        done = (self._loop.time() - _OFFSET_S + 1e-2) // WINDOW_S + 1
        await asyncio.sleep(done * WINDOW_S + _OFFSET_S - self._loop.time())
        while self._loop.network.is_busy():
            # Something of the gateway began at this very instant.
            await asyncio.sleep(0.001)

    def now(self) -> datetime:
        """Return the time of the gateway."""
        return START + timedelta(seconds=self._loop.time())

    async def come_up(self) -> None:
        """Wait until the gateway receives messages."""
        await self.api.wait_calls("getUpdates", timeout_s=3600)
        server = Server(self.folder / "state")
        for setting in _SERVER.split(";"):
            server.rows(setting)
        server.close()
        self._counters = Counters(
            self._loop, self.api, self.folder / "state", self.folder / "goclaw.log"
        )

    async def request(self, method: str, path: str, body: str = "") -> bytes:
        """Ask the gateway's web server, on a connection of its own."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(
            f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{self._port}\r\nconnection: close\r\n"
            f"sec-fetch-site: none\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body.encode())}\r\n\r\n{body}".encode()
        )
        answer = await reader.read()
        writer.close()
        if answer.startswith(b"HTTP/1.1 404"):
            raise Missing(f"{method} {path}")
        if not answer.startswith(b"HTTP/1.1 2"):
            raise RuntimeError(f"{method} {path}: {answer[:1000].decode(errors='replace')}")
        return answer


def run(folder: Path, work: Callable[[Bench], Coroutine[Any, Any, Any]]) -> Any:
    """Run a gateway in a folder until ``work`` is done; what it returns.

    Only once in a process.
    """
    loop = SteadyLoop()
    _set_clocks(loop)
    _set_dice()
    loop.network.names = names(PRODUCT / "goclaw_py")
    aside = contextvars.copy_context()
    aside.run(beside.set, True)
    api = BotApi()
    loop.run_until_complete(loop.create_task(api.__aenter__(), context=aside))
    port = _free_port()
    _set_up(folder, api, port)
    bench = Bench(loop, api, folder, port)
    outcome: list[Any] = []

    async def drive() -> None:
        try:
            await bench.come_up()
            outcome.append(await work(bench))
        except BaseException as error:
            outcome.append(error)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    loop.call_soon(lambda: outcome.append(loop.create_task(drive(), context=aside)), context=aside)
    uvloop.new_event_loop = lambda: loop  # type: ignore[assignment,return-value]
    from goclaw_py.cli import entry

    with redirect_stdout(sys.stderr):
        code = entry.run(["run", "--no-console"])
    if isinstance(outcome[-1], BaseException):
        raise outcome[-1]
    if code or len(outcome) < 2:
        raise RuntimeError(f"the gateway ended with {code}")
    return outcome[-1]


def _set_up(folder: Path, api: BotApi, port: int) -> None:
    for name in [name for name in os.environ if name.startswith(("GOCLAW_", "COVERAGE_"))]:
        del os.environ[name]
    os.environ |= {
        "HOME": str(folder),
        "GOCLAW_HOME": str(folder),
        "GOCLAW_TELEGRAM_TOKEN": api.token,
        "GOCLAW_CHANNELS__TELEGRAM__BASE_URL": api.url,
        "GOCLAW_CHANNELS__TELEGRAM__DIRECT": "open",
        "GOCLAW_CHANNELS__TELEGRAM__LIBRARY": "python-telegram-bot",
        "GOCLAW_WEB__PORT": str(port),
    }
    (folder / "goclaw.toml").write_text(_SETTINGS.format(log=folder / "goclaw.log"))


def _set_clocks(loop: SteadyLoop) -> None:
    """Let the gateway's clock and the emulator's be that of the loop."""

    def clock_s() -> float:
        return loop.virtual_now

    time.time = lambda: START.timestamp() + loop.virtual_now
    clock: Any = None
    for module in ("goclaw_py.core.time.clocks", "goclaw_py.runtime.clock"):
        with suppress(ModuleNotFoundError):
            clock = importlib.import_module(module)
    clock.SystemClock.now = lambda _clock: START + timedelta(seconds=loop.virtual_now)
    aiohttp.connector.monotonic = clock_s  # type: ignore[attr-defined]
    # The clock of the database is real: the gateway must not follow it.
    clock.SharedClock.read = lambda *_arguments: False


def _set_dice() -> None:
    """Let ids be the same in each process: they decide where rows are in indexes."""
    random.seed(0)
    dice = random.Random(0)
    os.urandom = dice.randbytes
    random._urandom = dice.randbytes  # type: ignore[attr-defined]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


__all__ = ["Bench", "run"]
