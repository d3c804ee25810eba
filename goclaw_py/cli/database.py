"""``goclaw migrate``: the schema of the database (SPEC DB-2)."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from goclaw_py.cli.context import cli
from goclaw_py.cli.exits import ExitCode


def migrate(
    ctx: typer.Context,
    *,
    status: Annotated[
        bool, typer.Option("--status", help="Only show; exit code 1 if something is pending.")
    ] = False,
) -> None:
    """Bring the database up to this release."""
    settings = cli(ctx).settings()
    from goclaw_py.cli import composition  # noqa: PLC0415

    if not status:
        done = asyncio.run(composition.migrate(settings))
        typer.echo("\n".join(f"ran {name}" for name in done) or "nothing to do")
        return
    found = asyncio.run(composition.schema(settings))
    typer.echo(f"the database is at version {found.current}, this release at {found.latest}")
    for name in found.pending:
        typer.echo(f"pending {name}")
    if found.pending:
        raise typer.Exit(ExitCode.FAILED)
