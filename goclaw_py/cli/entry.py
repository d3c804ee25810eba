"""The command line as a whole: its commands, its global options, its errors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from goclaw_py.cli import (
    backup,
    chat,
    config,
    cron,
    database,
    gateway,
    groups,
    heartbeat,
    inbox,
    lanes,
    outbox,
    pairing,
    queue,
    runs,
    send,
    sessions,
    setup,
    simulate,
    usage,
)
from goclaw_py.cli.context import Cli
from goclaw_py.cli.doctor.command import doctor
from goclaw_py.cli.exits import EXPLAINED, ExitCode, code_of
from goclaw_py.core.errors import GoclawError

app = typer.Typer(
    name="goclaw",
    help="The runtime between chat channels and an AI agent.",
    epilog=EXPLAINED,
    no_args_is_help=True,
    # Both would import rich, which costs more time than all the rest of --help.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def options(
    ctx: typer.Context,
    file: Annotated[
        Path | None,
        typer.Option(
            "--config",
            help="Settings file; default $GOCLAW_CONFIG, then <home>/goclaw.toml.",
        ),
    ] = None,
) -> None:
    """The runtime between chat channels and an AI agent."""
    ctx.obj = Cli(file)


app.command("init")(setup.init)
app.command("run")(gateway.run)
app.command("chat")(chat.chat)
app.command("status")(gateway.status)
app.command("send")(send.send)
app.command("stop")(gateway.stop)
app.add_typer(lanes.app, name="lanes")
app.command("queue")(queue.queue)
app.add_typer(sessions.app, name="sessions")
app.add_typer(runs.app, name="runs")
app.command("usage")(usage.usage)
app.add_typer(inbox.app, name="inbox")
app.add_typer(outbox.app, name="outbox")
app.add_typer(cron.app, name="cron")
app.add_typer(heartbeat.app, name="heartbeat")
app.command("event")(heartbeat.event)
app.add_typer(pairing.app, name="pairing")
app.add_typer(groups.app, name="groups")
app.add_typer(config.app, name="config")
app.command("simulate")(simulate.simulate)
app.command("migrate")(database.migrate)
app.command("backup")(backup.backup)
app.command("restore")(backup.restore)
app.command("doctor")(doctor)
app.command("version")(setup.version)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. An error is one line on standard error."""
    try:
        app(args=_with_intervals(arguments), prog_name="goclaw")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except GoclawError as error:
        for line in str(error).splitlines():
            typer.echo(f"goclaw: {line}", err=True)
        return code_of(error)
    except OSError as error:
        typer.echo(f"goclaw: {error}", err=True)
        return ExitCode.FAILED
    return ExitCode.OK


def _with_intervals(arguments: Sequence[str]) -> list[str]:
    """``--watch`` alone is every second.

    As an option whose value may be missing it would take the next word for its value.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    known = ["--watch=1" if word == "--watch" else word for word in arguments[:end]]
    return [*known, *arguments[end:]]
