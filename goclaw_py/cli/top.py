"""``goclaw top``: a live view of the gateway that fills the terminal (SPEC OPS-1)."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import typer

from goclaw_py.cli.context import cli, gateway_alone, waited_for
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.output import clock, one_line
from goclaw_py.cli.terminal import is_full_terminal, until_interrupted
from goclaw_py.core.display_names import SHORT_ID
from goclaw_py.core.text import count
from goclaw_py.core.time.texts import duration
from goclaw_py.scheduler.texts import used_text, waits_for
from goclaw_py.scheduler.views import Backlog, GatewayStatus, LaneView, RunState, RunView

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from goclaw_py.config import Settings

_REFRESH_S: Final = 1.0
_MAX_WARNINGS: Final = 3
_WIDE: Final = 110
"""From so many columns on, the model of a run is shown too."""

_LONGEST_TOOL: Final = 16

_WAITING: Final = (RunState.COLLECTING, RunState.QUEUED, RunState.READY)
_LANES: Final = ("LANE", "ACTIVE", "WAITING", "FINISHED", "CANCELLED", "FAILED")
_RUNNING: Final = ("RUNNING", "FOR", "SESSION", "PROMPT", "TOOL", "TOKENS", "MODEL")
_QUEUED: Final = ("WAITING", "FOR", "SESSION", "WAITS FOR")


def top(ctx: typer.Context) -> None:
    """Show lanes, runs, backlog and warnings live, until q."""
    if not is_full_terminal():
        typer.echo("goclaw: top needs a terminal; in a pipe use: goclaw status --watch", err=True)
        raise typer.Exit(ExitCode.USAGE)
    settings = cli(ctx).settings()
    with until_interrupted():
        waited_for(_watch(settings))


async def _watch(settings: Settings) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415

    console = Console(highlight=False)
    async with gateway_alone(settings) as control:
        # Ask before the screen is cleared: there may be no gateway.
        status = await control.lanes.status()
        with _keys() as quits, Live(console=console, screen=True, auto_refresh=False) as live:
            while not quits.is_set():
                names = await control.sessions.names({run.session for run in status.runs})
                live.update(screen(status, names, *console.size), refresh=True)
                try:
                    async with asyncio.timeout(_REFRESH_S):
                        await quits.wait()
                except TimeoutError:
                    status = await control.lanes.status()


@contextmanager
def _keys() -> Iterator[asyncio.Event]:
    """Yield an event that is set when q is pressed, or input ends."""
    loop, quits = asyncio.get_running_loop(), asyncio.Event()
    stdin = sys.stdin.fileno()
    before = termios.tcgetattr(stdin)

    def read() -> None:
        keys = os.read(stdin, 1024)
        if not keys or b"q" in keys.lower():
            quits.set()
            loop.remove_reader(stdin)

    tty.setcbreak(stdin)
    loop.add_reader(stdin, read)
    try:
        yield quits
    finally:
        loop.remove_reader(stdin)
        termios.tcsetattr(stdin, termios.TCSADRAIN, before)


def screen(status: GatewayStatus, names: dict[str, str], columns: int, rows: int) -> Group:
    """Return what fits: first warnings, then lanes, what is running, and what is waiting."""
    from rich.console import Group  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    up = duration((status.now - status.started_at).total_seconds())
    state = "draining" if status.draining else "running"
    nodes = f"  {len(status.peers) + 1} nodes" if status.peers else ""
    lines = [
        f"goclaw {status.release}{nodes}  {state}  up {up}  {clock(status.now)}  q to quit",
        f"database {status.database}  {_backlog(status.backlog)}",
    ]
    found = [one_line(str(warning), columns - 2) for warning in status.warnings]
    warnings = [text for text, *_ in _fitting([(text,) for text in found], _MAX_WARNINGS)]
    texts = [Text(line, no_wrap=True, overflow="ellipsis") for line in lines]
    texts += [Text(f"! {line}", "yellow", no_wrap=True, overflow="ellipsis") for line in warnings]

    running = [_running(run, names) for run in status.runs if run.state not in _WAITING]
    waiting = [_waiting(run, names) for run in status.runs if run.state in _WAITING]
    # Each of three tables has a blank line before it, and a head.
    room = rows - len(texts) - 6
    lanes = _fitting([_lane(lane) for lane in status.lanes], max(room // 3, 1))
    room -= len(lanes)
    running = _fitting(running, max(room - min(len(waiting) or 1, room // 3), 1))
    waiting = _fitting(waiting, max(room - (len(running) or 1), 1))
    tables = (
        _table(_LANES, lanes, "no lanes"),
        _table(_RUNNING if columns >= _WIDE else _RUNNING[:-1], running, "nothing is running"),
        _table(_QUEUED, waiting, "nothing is waiting"),
    )
    return Group(*texts, *(part for table in tables for part in ("", table)))


def _backlog(backlog: Backlog | None) -> str:
    if backlog is None:
        return "backlog unknown"
    return (
        f"in {backlog.inbox}  out {backlog.outbox}  undeliverable {backlog.failed}  "
        f"failed {backlog.unanswered}  {count(backlog.approvals, 'approval')}"
    )


def _lane(lane: LaneView) -> tuple[str, ...]:
    taken = used_text(lane) + (" closed" if lane.closed else "")
    return lane.name, taken, *map(str, (lane.waiting, lane.finished, lane.cancelled, lane.failed))


def _running(run: RunView, names: dict[str, str]) -> tuple[str, ...]:
    doing = run.activity
    # A run that is being stopped says so where its tool would be.
    state = "" if run.state is RunState.RUNNING else run.state.value
    return (
        run.id[:SHORT_ID],
        duration(run.for_s),
        names.get(run.session, run.session),
        doing.prompt if doing else "",
        state or (", ".join(doing.tools) if doing else ""),
        f"{doing.tokens:,}" if doing and doing.tokens else "",
        doing.model if doing else "",
    )


def _waiting(run: RunView, names: dict[str, str]) -> tuple[str, ...]:
    session = names.get(run.session, run.session)
    return run.id[:SHORT_ID], duration(run.for_s), session, waits_for(run)


def _fitting(rows: Sequence[tuple[str, ...]], room: int) -> list[tuple[str, ...]]:
    """Return the rows that fit; the last line counts the others."""
    if len(rows) <= room:
        return list(rows)
    return [*rows[: room - 1], (f"… and {len(rows) - room + 1} more",)]


def _table(columns: Sequence[str], rows: Sequence[tuple[str, ...]], empty: str) -> Table:
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for name in columns:
        # Prompts and names of sessions share what the others leave.
        ratio = {"PROMPT": 3, "WAITS FOR": 3, "SESSION": 2}.get(name)
        most = _LONGEST_TOOL if name == "TOOL" else None
        table.add_column(name, no_wrap=True, overflow="ellipsis", ratio=ratio, max_width=most)
    for row in rows or [(empty,)]:
        table.add_row(*(Text(one_line(cell, 200)) for cell in row[: len(columns)]))
    return table
