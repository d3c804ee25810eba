"""``goclaw usage``: messages, and tokens and cost of runs, by agent, job, sender and others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from goclaw_py.cli.context import AsJson, answer, with_options, with_wide
from goclaw_py.cli.names import DisplayNames, with_names
from goclaw_py.cli.output import Column, Columns, folded, one_line, show_table
from goclaw_py.core.display_names import sender_words
from goclaw_py.core.errors import BadUsageQuery
from goclaw_py.core.text import usd
from goclaw_py.operations.control import Control
from goclaw_py.runs.usage_report import (
    Grouping,
    UsageQuery,
    UsageReport,
    UsageRow,
    Used,
    groupings,
    read_day,
)

_USED = (
    *("RUNS", Column("RECEIVED", drop=2), Column("SENT", drop=2), Column("MODEL REQUESTS", drop=3)),
    *(Column("INPUT", drop=1), Column("CACHED", drop=4), Column("OUTPUT", drop=1), "USD"),
)
_LONG = 200
_LEAST = {Grouping.SENDER: 24, Grouping.MODEL: 16}


@dataclass(frozen=True, slots=True)
class UsageOptions:
    """The options of ``goclaw usage``."""

    by: Annotated[
        str,
        typer.Option(
            metavar="KEYS",
            help="Group by agent, job, sender, day, model, trigger or lane; several: agent,day.",
        ),
    ] = "agent"
    days: Annotated[
        int | None, typer.Option(help="Number of past days, up to 366. [default: 7]")
    ] = None
    since: Annotated[
        str | None, typer.Option(metavar="DAY", help="First day, such as 2026-01-31.")
    ] = None
    until: Annotated[str | None, typer.Option(metavar="DAY", help="Last day. [default: today]")] = (
        None
    )
    tz: Annotated[str, typer.Option(help="Time zone of the days.")] = "UTC"


@with_wide
@with_options(UsageOptions)
def usage(ctx: typer.Context, options: UsageOptions, *, as_json: AsJson = False) -> None:
    """Show runs, messages, tokens and cost.

    A finished run counts on the day it started. Messages are counted by agent and day.
    """
    with _problems_of_options():
        query = UsageQuery(
            by=groupings(options.by),
            since=None if options.since is None else read_day("since", options.since),
            until=None if options.until is None else read_day("until", options.until),
            days=options.days,
            zone=options.tz,
        )

    async def ask(control: Control) -> UsageReport:
        with _problems_of_options():
            return await control.usage.report(query)

    answer(ctx, *with_names(ask, _senders, UsageReport, _show, as_json))


@contextmanager
def _problems_of_options() -> Iterator[None]:
    """Name the option that is wrong as all commands do, also if only the gateway finds it."""
    try:
        yield
    except BadUsageQuery as error:
        raise typer.BadParameter(error.problem, param_hint=f"'--{error.key}'") from error


def _senders(found: UsageReport) -> Iterator[str]:
    return filter(None, (row.group.get(Grouping.SENDER) for row in found.rows))


def _show(found: UsageReport, names: DisplayNames) -> None:
    period = f"{found.since} to {found.until}, days in {found.zone}"
    if not (found.total.runs or found.total.received or found.total.sent):
        typer.echo(f"no finished runs and no messages in this period: {period}")
        typer.echo("use --days 90 for a longer period; to start a run: goclaw chat")
        return
    typer.echo(f"{period}\n")
    rows = [(*_group(row, found.by, names), *_columns(row.used)) for row in found.rows if found.by]
    if found.others is not None:
        rows.append((*_label(f"{found.left_out:,} more", found.by), *_columns(found.others)))
    rows.append((*_label("total", found.by), *_columns(found.total)))
    heads: Columns = [Column(one.value.upper(), least=_LEAST.get(one, 0)) for one in found.by] or [
        ""
    ]
    show_table((*heads, *_USED), rows, empty="")
    for note in _notes(found):
        typer.echo("\n".join(["", *folded(note)]))


def _notes(found: UsageReport) -> list[str]:
    notes = []
    if found.total.unpriced:
        runs = f"{found.total.unpriced:,} of {found.total.runs:,} runs"
        notes.append(
            f"{runs} used tokens of unknown price (?), so their cost is missing in the sums.\n"
            "goclaw usage --by model shows of which models; a token budget limits them, too."
        )
    if found.others is not None:
        notes.append("Only the most expensive groups are shown; use fewer days or group keys.")
    if any(row.group.get(Grouping.AGENT, "") is None for row in found.rows):
        notes.append(
            "Messages of no agent are from the gateway itself: pairing codes, notifications and "
            "reminders."
        )
    return notes


def _label(text: str, by: tuple[Grouping, ...]) -> list[str]:
    """Put a text in the first of the group columns."""
    return [text, *[""] * (len(by) - 1)]


def _group(row: UsageRow, by: tuple[Grouping, ...], names: DisplayNames) -> list[str]:
    return [_value(row, one, names) for one in by]


_NOT_OF: Final = {
    Grouping.SENDER: "nobody",
    Grouping.JOB: "no job",
    Grouping.AGENT: "no agent",
}
"""The group of what belongs to none, as on the page."""


def _value(row: UsageRow, grouping: Grouping, names: DisplayNames) -> str:
    value = row.group[grouping]
    if value is None:
        return _NOT_OF.get(grouping, "unknown")
    if grouping is Grouping.SENDER:
        # Names of people are not unique, so add the id.
        words = sender_words(value)
        return names.with_key(value) if words == value else words
    return one_line(row.names.get(grouping, value), _LONG) or "unknown"


def _columns(used: Used) -> tuple[str, ...]:
    counts = (
        *(used.runs, used.received, used.sent, used.turns),
        *(used.input_tokens, used.cached_tokens, used.output_tokens),
    )
    return (*("-" if count is None else f"{count:,}" for count in counts), _usd(used))


def _usd(used: Used) -> str:
    if used.cost_usd is None:
        return "?" if used.unpriced else "-"
    cost = usd(used.cost_usd, sign="")
    return f"{cost} + ?" if used.unpriced else cost
