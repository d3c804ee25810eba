"""``goclaw migrate``: the schema of the database (SPEC DB-2)."""

from __future__ import annotations

from typing import Annotated

import typer

from goclaw_py.cli.context import AsJson, cli, waited_for
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.output import show_json
from goclaw_py.cli.progress import working


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
        with working("applying migrations"):
            done = waited_for(composition.migrate(settings))
        if as_json:
            show_json(dict[str, list[str]], {"ran": done})
        else:
            applied = "\n".join(f"applied {name}" for name in done)
            typer.echo(applied or "no pending migrations")
        return
    with working("checking the database"):
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
