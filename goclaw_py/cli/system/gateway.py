"""``goclaw run``, ``status``, ``migrate``, ``version`` (SPEC OPS-1, DB-2)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from goclaw_py.cli.context import (
    AsJson,
    Watch,
    cli,
    look,
    waited_for,
    with_wide,
)
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.names import DisplayNames, with_names
from goclaw_py.cli.output import (
    Column,
    Columns,
    duration,
    plain,
    short_id,
    show_facts,
    show_json,
    show_table,
)
from goclaw_py.cli.progress import progress
from goclaw_py.core.text import count
from goclaw_py.scheduler.texts import taken_text, waits_for
from goclaw_py.scheduler.views import Backlog, GatewayStatus, RunView

if TYPE_CHECKING:
    from goclaw_py.operations.control import Control


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
    from goclaw_py.cli.chats.chat import LocalChat  # noqa: PLC0415

    front = LocalChat(settings.state_folder) if console else None
    code = composition.run_gateway(settings, front=front, may_migrate=migrate)
    raise typer.Exit(code)


_LANES: Columns = (
    *("LANE", "ACTIVE", "WAITING"),
    *(Column(count, drop=1) for count in ("STARTED", "FINISHED", "CANCELLED", "FAILED")),
)
_RUNS: Columns = (
    *("RUN", Column("SESSION", least=16), Column("LANE", drop=2), Column("STATE", state=True)),
    *(Column("FOR", drop=1), Column("WAITS FOR", least=16), Column("KEY", drop=9)),
)
_CHANNELS = ("CHANNEL", "ACCOUNT", Column("STATE", state=True), Column("DETAIL", least=24))
_PEERS: Columns = (
    *("OTHER NODE", Column("MACHINE", drop=1), Column("STATE", state=True)),
    *(Column("RUNNING", drop=2), Column("WAITING", drop=2), Column("RECEIVES", least=16)),
)


@with_wide
def status(ctx: typer.Context, *, watch: Watch = None, as_json: AsJson = False) -> None:
    """Show the state of the gateway.

    Lists lanes, runs, channels, other nodes and the backlog of messages.
    """

    async def ask(control: Control) -> GatewayStatus:
        return await control.status()

    def keys(found: GatewayStatus) -> list[str]:
        return [run.session for run in found.runs]

    question, output = with_names(ask, keys, GatewayStatus, _show_status, as_json)
    look(ctx, question, output, watch, live=True)


def _show_status(status: GatewayStatus, names: DisplayNames) -> None:
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
    show_table(_LANES, lanes, empty="no lanes")
    typer.echo()
    runs = [_run(one, names) for one in status.runs]
    show_table(_RUNS, runs, empty="nothing is running")
    typer.echo()
    channels = [(c.name, c.account, c.state, c.detail) for c in status.channels]
    show_table(_CHANNELS, channels, empty="no channels")
    if status.peers:
        typer.echo()
        _show_peers(status)
    for warning in status.warnings:
        typer.echo(f"\nwarning: {plain(warning)}")


def _run(run: RunView, names: DisplayNames) -> tuple[str, ...]:
    state, lasted = run.state.value, duration(run.for_s)
    name, key = names.of(run.session), run.session
    return short_id(run.id), name, run.lane, state, lasted, waits_for(run), key


def _show_peers(status: GatewayStatus) -> None:
    rows = [
        (
            short_id(peer.id),
            plain(peer.machine),
            peer.health,
            str(peer.running),
            str(peer.waiting),
            ", ".join(map(plain, peer.receives)) or "nothing",
        )
        for peer in status.peers
    ]
    show_table(_PEERS, rows, empty="")


def _backlog(backlog: Backlog | None) -> str:
    if backlog is None:
        return "unknown"
    return (
        f"{backlog.inbox} incoming and {backlog.outbox} outgoing messages waiting, "
        f"{backlog.dead} undeliverable, {backlog.unanswered} failed; "
        f"{count(backlog.approvals, 'tool call')} waiting for approval"
    )


def version(*, as_json: AsJson = False) -> None:
    """Print the version of goclaw_py."""
    from importlib.metadata import version as installed_version  # noqa: PLC0415

    release = installed_version("goclaw_py")
    if as_json:
        show_json(dict[str, str], {"release": release})
    else:
        typer.echo(f"goclaw_py {release}")


def migrate(
    ctx: typer.Context,
    *,
    status: Annotated[
        bool,
        typer.Option(
            "--status", help="Only list pending migrations; exit code 1 if there are any."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Apply pending database migrations."""
    settings = cli(ctx).settings()
    from goclaw_py.cli import composition  # noqa: PLC0415

    if not status:
        with progress("applying migrations"):
            done = waited_for(composition.migrate(settings))
        if as_json:
            show_json(dict[str, list[str]], {"ran": done})
        else:
            applied = "\n".join(f"applied {name}" for name in done)
            typer.echo(applied or "no pending migrations")
        return
    with progress("checking the database"):
        found = waited_for(composition.schema(settings))
    if as_json:
        from goclaw_py.store.migrate import SchemaStatus  # noqa: PLC0415

        show_json(SchemaStatus, found)
    else:
        typer.echo(
            f"database schema: version {found.current}; this release needs version {found.latest}"
        )
        for name in found.pending:
            typer.echo(f"pending {name}")
    if found.pending:
        raise typer.Exit(ExitCode.FAILED)
