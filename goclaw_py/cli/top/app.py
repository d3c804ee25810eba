"""The loop of ``goclaw top``: asks the gateway, shows what it answers, and acts on keys."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import typer

from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.cli.context import cli, waited_for
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.names import DisplayNames
from goclaw_py.cli.output import clock
from goclaw_py.cli.terminal import is_full_terminal, until_interrupted
from goclaw_py.cli.top.details import brief_log, details
from goclaw_py.cli.top.keys import Effect, Shown, TopState, TopTab, keys_of, pressed
from goclaw_py.cli.top.rates import Counts, Rate, rate_text
from goclaw_py.cli.top.screen import MOST_ENDED, TopView, screen
from goclaw_py.core.errors import GoclawError, NotFound
from goclaw_py.core.ids import RunId
from goclaw_py.core.outcomes import FAILURES
from goclaw_py.core.text import count, usd
from goclaw_py.core.time.machine_zone import machine_zone
from goclaw_py.observability.log_lines import LogFilter, LogTail
from goclaw_py.records import RunFilter, RunQuery, StoredRun
from goclaw_py.runs.usage_report import UsageQuery
from goclaw_py.web.api.wire import read
from goclaw_py.web.sockets import socket_path

if TYPE_CHECKING:
    from rich.console import Console

    from goclaw_py.config import Settings

_REFRESH_S: Final = 1.0
_TOTALS_S: Final = 5.0
"""How often usage and ended runs are read: the database counts them."""

_ESC_S: Final = 0.05
"""How long an escape character waits for the rest of a key."""

_MOST_LINES: Final = 500


def top(ctx: typer.Context) -> None:
    """Show lanes, runs and the log live; open and stop runs.

    The key ? lists the keys, q ends.
    """
    if not is_full_terminal():
        typer.echo("goclaw: top needs a terminal; in a pipe use: goclaw status --watch", err=True)
        raise typer.Exit(ExitCode.USAGE)
    settings = cli(ctx).settings()
    with until_interrupted():
        waited_for(_watch(settings))


async def _watch(settings: Settings) -> None:
    from rich.console import Console  # noqa: PLC0415

    console = Console(highlight=False)
    async with RemoteControl(socket_path(settings.state_folder)) as control:
        # Ask before the screen is cleared: there may be no gateway.
        viewer = _Viewer(control, TopView(await control.lanes.status()))
        with _own_terminal(console, viewer.changed.set), _keys(viewer.press):
            refresh = asyncio.create_task(viewer.refresh())
            refresh.add_done_callback(lambda _: viewer.changed.set())
            try:
                await viewer.show(console, refresh)
            finally:
                refresh.cancel()


class _Viewer:
    """What a person sees; ``changed`` is set when the screen is out of date."""

    def __init__(self, control: RemoteControl, view: TopView) -> None:
        self._control = control
        self._view = view
        self._state = TopState()
        self._shown = Shown()
        self._messages = Rate()
        self._started, self._cost = "", ""
        self._totals_at = -_TOTALS_S
        self._is_over = False
        self._wanted = asyncio.Event()
        self._stops: set[asyncio.Task[None]] = set()
        self.changed = asyncio.Event()

    def press(self, key: str) -> None:
        """Act on a key; "" is the end of input."""
        before = self._state
        self._state, effect = pressed(before, key, self._shown) if key else (before, Effect.QUIT)
        if effect is Effect.QUIT:
            self._is_over = True
        elif effect is Effect.STOP and before.stopping is not None:
            task = asyncio.get_running_loop().create_task(self._stop(before.stopping))
            self._stops.add(task)
            task.add_done_callback(self._stops.discard)
        if before.subject != self._state.subject:
            self._view = replace(self._view, ended=(), details=(), log=())
            self._totals_at = -_TOTALS_S
            self._wanted.set()
        self.changed.set()

    async def show(self, console: Console, refresh: asyncio.Task[None]) -> None:
        """Fill the screen until a person quits. Raises what ends the task ``refresh``."""
        from rich.console import ConsoleDimensions, Group  # noqa: PLC0415
        from rich.live import Live  # noqa: PLC0415

        with Live(console=console, screen=True, auto_refresh=False) as live:
            while not self._is_over:
                self.changed.clear()
                # Not $COLUMNS, which does not follow the window. A terminal may not know its size.
                columns, rows = os.get_terminal_size(sys.stdout.fileno())
                console.size = ConsoleDimensions(columns or 80, rows or 24)
                lines, self._shown = screen(self._view, self._state, *console.size)
                live.update(Group(*lines), refresh=True)
                await self.changed.wait()
                if refresh.done():
                    refresh.result()

    async def refresh(self) -> None:
        """Ask the gateway every second, also while it is away; ends only when it is cancelled."""
        while True:
            self._wanted.clear()
            wanted = self._state.subject
            try:
                found = await self._latest()
                if self._state.subject == wanted:
                    self._view = found
            except GoclawError as error:
                self._view = replace(self._view, problem=str(error))
            self.changed.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(_REFRESH_S):
                    await self._wanted.wait()

    async def _latest(self) -> TopView:
        state, now_s = self._state, asyncio.get_running_loop().time()
        status = await self._control.lanes.status()
        ended = self._view.ended
        if now_s - self._totals_at >= _TOTALS_S:
            self._totals_at = now_s
            used = (await self._control.usage.report(UsageQuery(days=1))).total
            self._messages.add(Counts(now_s, (used.received or 0) + (used.sent or 0)))
            begun = RunQuery(since=status.now - timedelta(minutes=1))
            started = sum((await self._control.runs.counts(begun)).values())
            self._started = rate_text("runs", started)
            self._cost = "" if used.cost_usd is None else f"  {usd(used.cost_usd)} today"
            if state.tab in (TopTab.ENDED, TopTab.FAILED):
                ended = await self._ended(state.tab)
        keys = {run.session for run in status.runs} | {run.session for run in ended}
        view = TopView(
            status,
            await self._control.sessions.names(keys),
            totals=f"{rate_text('messages', self._messages.per_minute)}  "
            f"{self._started}{self._cost}",
            ended=ended,
        )
        if state.opened is not None:
            view = replace(view, details=await self._details(view, state.opened))
        elif state.tab is TopTab.LOG:
            view = replace(view, log=await self._log(state.log_of))
        return view

    async def _ended(self, tab: TopTab) -> list[StoredRun]:
        """Return the newest runs that have ended, or failed."""
        found: list[StoredRun] = []
        for outcome in FAILURES if tab is TopTab.FAILED else (None,):
            query = RunQuery(only=RunFilter(outcome=outcome), limit=MOST_ENDED)
            found += await self._control.runs.list(query)
        found.sort(key=lambda run: run.started_at, reverse=True)
        return [run for run in found if run.outcome is not None][:MOST_ENDED]

    async def _details(self, view: TopView, run: RunId) -> list[str]:
        live = next((one for one in view.status.runs if one.id == run), None)
        record = why = None
        with suppress(NotFound):
            record = await self._control.runs.record(run)
        with suppress(NotFound):
            why = await self._control.why(run, zone=machine_zone(os.environ))
        return details(record, live, why, DisplayNames(view.names))

    async def _log(self, run: RunId | None) -> list[str]:
        only = asdict(LogFilter(run=run or ""))
        params = {name: text for name, text in only.items() if text}
        found = await self._control.send(
            "GET", "/api/logs", params={**params, "limit": _MOST_LINES}
        )
        return brief_log(read(LogTail, found).lines, clock(self._view.status.now))

    async def _stop(self, run: RunId) -> None:
        found = next((one for one in self._view.status.runs if one.id == run), None)
        if found is None:
            notice = "This run has ended."
        else:
            try:
                report = await self._control.sessions.stop(found.session, everything=False, run=run)
                ended = len(report.stopped) + len(report.dropped)
                notice = (
                    f"Stopped {count(ended, 'run')}."
                    if ended
                    else "It is stopping already."
                    if report.already_stopping
                    else "This run has ended."
                )
            except GoclawError as error:
                notice = f"Not stopped: {error}"
        self._state = replace(self._state, notice=notice)
        self._wanted.set()
        self.changed.set()


@contextmanager
def _keys(press: Callable[[str], None]) -> Iterator[None]:
    """Call back for each key, with "" at the end of input."""
    loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()
    rest, timer = b"", None

    def pass_on(data: bytes, *, complete: bool) -> None:
        nonlocal rest, timer
        keys, rest = keys_of(rest + data, complete=complete)
        for key in keys:
            press(key)
        timer = loop.call_later(_ESC_S, flush) if rest else None

    def flush() -> None:
        pass_on(b"", complete=True)

    def read_keys() -> None:
        if timer is not None:
            timer.cancel()
        try:
            data = os.read(stdin, 1024)
        except OSError:
            data = b""  # the terminal is closed
        if not data:
            loop.remove_reader(stdin)
            press("")
            return
        pass_on(data, complete=False)

    loop.add_reader(stdin, read_keys)
    try:
        yield
    finally:
        loop.remove_reader(stdin)
        if timer is not None:
            timer.cancel()


@contextmanager
def _own_terminal(console: Console, changed: Callable[[], None]) -> Iterator[None]:
    """Read single keys meanwhile, except while the program is suspended with Ctrl-Z.

    Calls back when the screen must be drawn again: it has another size, or the program continues.
    """
    loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()
    before = termios.tcgetattr(stdin)

    def suspend() -> None:
        console.show_cursor(show=True)
        console.set_alt_screen(enable=False)
        termios.tcsetattr(stdin, termios.TCSADRAIN, before)
        os.kill(os.getpid(), signal.SIGSTOP)

    def resume() -> None:
        # The shell does not restore the modes of a program that it continues.
        tty.setcbreak(stdin)
        console.set_alt_screen(enable=True)
        console.show_cursor(show=False)
        changed()

    handlers = {signal.SIGTSTP: suspend, signal.SIGCONT: resume, signal.SIGWINCH: changed}
    tty.setcbreak(stdin)
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
        termios.tcsetattr(stdin, termios.TCSADRAIN, before)
