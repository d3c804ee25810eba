"""``goclaw audit``: who has changed what (SPEC SEC-9)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Final

import typer

from goclaw_py.cli.context import (
    AsJson,
    Limit,
    answer,
    cli,
    no_rows,
    selects,
    with_options,
    with_wide,
)
from goclaw_py.cli.messages import display
from goclaw_py.cli.messages.display import moment
from goclaw_py.cli.output import Column, Printer, short_id, show_table
from goclaw_py.operations.audit import HELP
from goclaw_py.operations.audit.operations import audit_pages
from goclaw_py.operations.control import Control
from goclaw_py.records import AuditEntry, AuditFilter
from goclaw_py.records.audit import OK
from goclaw_py.web.api.wire import dump

app = typer.Typer(help=HELP, invoke_without_command=True)

_COLUMNS: Final = (
    "TIME",
    Column("WHO", least=12),
    "ACTION",
    Column("SUBJECT", least=20),
    Column("RESULT", least=10, state=True),
    Column("CHANGE", drop=1, least=24),
    Column("VIA", drop=2, least=40),
    Column("NODE", drop=3),
)


@dataclass(frozen=True, slots=True)
class Selected:
    """The options that select entries."""

    who: Annotated[
        str | None,
        typer.Option(help="Only of this person, token, address, chat or command: any part of it."),
    ] = None
    action: Annotated[
        str | None, typer.Option(help="Only this action, such as job.edit, or all of job.")
    ] = None
    subject: Annotated[
        str | None, typer.Option(help="Only about this: any part of the subject.")
    ] = None
    days: Annotated[
        int | None, typer.Option(min=1, max=36_500, help="Only of the last DAYS days.")
    ] = None

    @property
    def filter(self) -> AuditFilter:
        """What of the audit log they select."""
        since = None if self.days is None else display.now() - timedelta(days=self.days)
        return AuditFilter(self.who or None, self.action or None, self.subject or None, since)


@app.callback()
@with_wide
@with_options(Selected)
def audit(
    ctx: typer.Context, selected: Selected, limit: Limit = 50, *, as_json: AsJson = False
) -> None:
    """Show who has changed what, newest first."""
    if ctx.invoked_subcommand is not None:
        return
    only = selected.filter

    async def ask(control: Control) -> list[AuditEntry]:
        return await control.audit.list(limit=limit, only=only)

    def show(found: list[AuditEntry]) -> None:
        empty = no_rows("entries", "audit", filtered=selects(selected), otherwise="no entries")
        show_table(_COLUMNS, [_row(one) for one in found], empty=empty)

    answer(ctx, ask, Printer(list[AuditEntry], show, as_json))


@app.command()
@with_options(Selected)
def export(ctx: typer.Context, selected: Selected, *, as_json: AsJson = False) -> None:
    """Print all entries as JSON lines, newest first."""
    del as_json  # it prints nothing else
    only = selected.filter

    async def ask(control: Control) -> None:
        async for found in audit_pages(control.audit, only):
            for one in found:
                typer.echo(dump(AuditEntry, one))

    cli(ctx).ask(ask)


def _row(one: AuditEntry) -> tuple[str, ...]:
    return (
        moment(one.at),
        display.cell(one.actor) or one.kind,
        display.cell(one.action),
        display.cell(one.subject),
        one.result if one.result == OK else display.cell(one.result),
        display.cell(_change(one)),
        display.cell(one.via),
        short_id(display.cell(one.node)),
    )


def _change(one: AuditEntry) -> str:
    before, after = one.before or {}, one.after or {}
    return ", ".join(_one_change(name, before, after) for name in {**before, **after})


def _one_change(name: str, before: Mapping[str, object], after: Mapping[str, object]) -> str:
    old, new = (json.dumps(each.get(name), ensure_ascii=False) for each in (before, after))
    if name not in before:
        return f"{name}: {new}"
    return f"{name}: {old} → {new}" if name in after else f"{name}: {old} → -"
