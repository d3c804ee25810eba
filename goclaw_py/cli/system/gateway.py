"""``goclaw run``, ``status`` and ``stop``: run the gateway, show it, stop runs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from goclaw_py.cli.context import AsJson, Asks, SessionName, Watch, cli, look
from goclaw_py.cli.output import duration, plain, show_facts, show_json, show_table
from goclaw_py.common.text import count
from goclaw_py.ports.control import Control
from goclaw_py.scheduler.texts import taken_text, waits_for
from goclaw_py.scheduler.views import Backlog, GatewayStatus, StopReport


def run(
    ctx: typer.Context,
    *,
    console: Annotated[
        bool | None,
        typer.Option(
            "--console/--no-console",
            help="Also open a chat in this terminal (default: when stdin is a terminal).",
        ),
    ] = None,
    migrate: Annotated[
        bool,
        typer.Option(
            "--migrate/--no-migrate",
            help="Apply pending database migrations, or refuse to start if there are any.",
        ),
    ] = True,
) -> None:
    """Run the gateway until Ctrl-C or SIGTERM."""
    settings = cli(ctx).settings()
    from goclaw_py.cli import composition  # noqa: PLC0415

    if console is None:
        console = sys.stdin.isatty() and sys.stdout.isatty()
    from goclaw_py.cli.chats.chat import CONSOLE_CHAT, LocalChat  # noqa: PLC0415

    front = LocalChat(CONSOLE_CHAT) if console else None
    code = composition.run_gateway(settings, say=say, front=front, may_migrate=migrate)
    raise typer.Exit(code)


def say(line: str) -> None:
    """Print a line on standard error, apart from the output of a chat."""
    typer.echo(line, err=True)


def status(ctx: typer.Context, *, watch: Watch = None, as_json: AsJson = False) -> None:
    """Show the state of the gateway.

    Lists lanes, runs, channels, other nodes and the backlog of messages.
    """

    async def ask(control: Control) -> GatewayStatus:
        return await control.status()

    def show(asks: Asks) -> None:
        found = asks.ask(ask)
        if as_json:
            show_json(GatewayStatus, found)
        else:
            _show_status(found)

    look(ctx, show, watch, as_json=as_json, live=True)


def _show_status(status: GatewayStatus) -> None:

    up = duration((status.now - status.started_at).total_seconds())
    show_facts(
        [
            ("gateway", f"release {status.release}, pid {status.pid}, node {status.node}, up {up}"),
            ("state", "draining: accepts no new messages" if status.draining else "running"),
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


def _show_peers(status: GatewayStatus) -> None:
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
        f"{backlog.inbox} incoming and {backlog.outbox} outgoing messages waiting, "
        f"{backlog.dead} undeliverable, {backlog.unanswered} failed"
    )


def stop(
    ctx: typer.Context,
    session: SessionName,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Stop all runs and drop all waiting messages.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Stop the oldest run of a session."""

    async def ask(control: Control) -> StopReport:
        found = await control.session(session)
        return await control.stop(found.key, everything=everything)

    report = cli(ctx).ask(ask)
    if as_json:
        show_json(StopReport, report)
        return
    typer.echo(words(report))


def words(report: StopReport) -> str:
    """Return what a stop did, in words."""
    parts = ["already stopping"] if report.already_stopping else []
    if report.stopped:
        parts.append(f"stopped {', '.join(report.stopped)}")
    if report.dropped:
        parts.append(f"dropped {len(report.dropped)} waiting")
    if report.unsent:
        parts.append(f"dropped {count(report.unsent, 'unsent part')} of an answer")
    return "; ".join(parts) or "nothing was running"
