"""``goclaw run``, ``status`` and ``stop``: the gateway itself."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from goclaw_py.cli.context import AsJson, Asks, SessionName, Watch, cli, look
from goclaw_py.cli.output import duration, plain, show_facts, show_json, show_table
from goclaw_py.common.text import count

if TYPE_CHECKING:
    from goclaw_py.ports.control import Control
    from goclaw_py.scheduler.views import Backlog, Status, StopReport


def run(
    ctx: typer.Context,
    *,
    console: Annotated[
        bool | None,
        typer.Option(
            "--console/--no-console",
            help="Chat here meanwhile. Default: if this is a terminal.",
        ),
    ] = None,
    migrate: Annotated[
        bool,
        typer.Option(
            "--migrate/--no-migrate",
            help="Bring the database up to this release, or refuse to start if it is older.",
        ),
    ] = True,
) -> None:
    """Run a gateway until Ctrl-C or SIGTERM."""
    settings = cli(ctx).settings()
    from goclaw_py.cli import composition  # noqa: PLC0415

    if console is None:
        console = sys.stdin.isatty() and sys.stdout.isatty()
    from goclaw_py.cli.chats.chat import CONSOLE_CHAT, Here  # noqa: PLC0415

    front = Here(CONSOLE_CHAT) if console else None
    code = composition.run_gateway(settings, say=say, front=front, may_migrate=migrate)
    raise typer.Exit(code)


def say(line: str) -> None:
    """Show a line to the person who started this, apart from what a chat prints."""
    typer.echo(line, err=True)


def status(ctx: typer.Context, *, watch: Watch = None, as_json: AsJson = False) -> None:
    """Show what the gateway is doing."""

    async def ask(control: Control) -> Status:
        return await control.status()

    def show(asks: Asks) -> None:
        found = asks.ask(ask)
        if as_json:
            from goclaw_py.scheduler.views import Status  # noqa: PLC0415

            show_json(Status, found)
        else:
            _show_status(found)

    look(ctx, show, watch, as_json=as_json, live=True)


def _show_status(status: Status) -> None:
    from goclaw_py.scheduler.texts import taken_text, waits_for  # noqa: PLC0415

    up = duration((status.now - status.started_at).total_seconds())
    show_facts(
        [
            ("gateway", f"release {status.release}, pid {status.pid}, node {status.node}, up {up}"),
            ("state", "draining: takes no new messages" if status.draining else "working"),
            ("database", status.database),
            ("backlog", _backlog(status.backlog)),
        ]
    )
    typer.echo()
    lanes = []
    for lane in status.lanes:
        counts = (lane.waiting, lane.started, lane.finished, lane.cancelled, lane.failed)
        lanes.append((lane.name, taken_text(lane), *map(str, counts)))
    columns = ("LANE", "ACTIVE", "WAITING", "STARTED", "FINISHED", "CANCELLED", "FAILED")
    show_table(columns, lanes, empty="no lanes")
    typer.echo()
    runs = [
        (r.id, r.session, r.lane, r.state.value, duration(r.for_s), waits_for(r))
        for r in status.runs
    ]
    about = ("RUN", "SESSION", "LANE", "STATE", "FOR", "WAITS FOR")
    show_table(about, runs, empty="nothing is running")
    typer.echo()
    channels = [(c.name, c.account, c.state, c.detail) for c in status.channels]
    show_table(("CHANNEL", "ACCOUNT", "STATE", "DETAIL"), channels, empty="no channels")
    if status.peers:
        typer.echo()
        _show_peers(status)
    for warning in status.warnings:
        typer.echo(f"\nwarning: {plain(warning)}")


def _show_peers(status: Status) -> None:
    rows = [
        (
            peer.id,
            plain(peer.machine),
            peer.health,
            str(peer.running),
            str(peer.waiting),
            ", ".join(map(plain, peer.receives)) or "nothing",
        )
        for peer in status.peers
    ]
    show_table(("OTHER NODE", "MACHINE", "STATE", "RUNNING", "WAITING", "RECEIVES"), rows, empty="")


def _backlog(backlog: Backlog | None) -> str:
    if backlog is None:
        return "unknown"
    return (
        f"{backlog.inbox} messages in, {backlog.outbox} out, {backlog.dead} dead, "
        f"{backlog.unanswered} not worked on"
    )


def stop(
    ctx: typer.Context,
    session: SessionName,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Every run and everything that waits.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Stop the oldest run of a session. Any unique part of its key names it."""

    async def ask(control: Control) -> StopReport:
        found = await control.session(session)
        return await control.stop(found.key, everything=everything)

    report = cli(ctx).ask(ask)
    if as_json:
        from goclaw_py.scheduler.views import StopReport  # noqa: PLC0415

        show_json(StopReport, report)
        return
    typer.echo(words(report))


def words(report: StopReport) -> str:
    """Say what a stop did."""
    parts = ["already stopping"] if report.already_stopping else []
    if report.stopped:
        parts.append(f"stopped {', '.join(report.stopped)}")
    if report.dropped:
        parts.append(f"dropped {len(report.dropped)} waiting")
    if report.unsent:
        parts.append(f"gave up {count(report.unsent, 'unsent part')} of an answer")
    return "; ".join(parts) or "nothing was running"
