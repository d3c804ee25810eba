"""``goclaw run``, ``migrate``, ``version`` (SPEC OPS-1, DB-2)."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from goclaw_py.cli.context import (
    AsJson,
    cli,
    waited_for,
)
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.output import (
    show_json,
)
from goclaw_py.cli.progress import progress


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
