"""``goclaw queue``: runs and waiting messages of a session (SPEC OPS-4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from goclaw_py.cli.context import (
    STORED_ONLY,
    AsJson,
    SessionName,
    Watch,
    answer_or_watch,
    with_wide,
)
from goclaw_py.cli.names import DisplayNames, with_names
from goclaw_py.cli.output import (
    Column,
    clock,
    one_line,
    short_id,
    show_facts,
    show_table,
    since,
)
from goclaw_py.core.display_names import person_key
from goclaw_py.core.time.texts import age
from goclaw_py.operations.control import Control
from goclaw_py.operations.sessions.operations import QueueView
from goclaw_py.scheduler import texts as wording

if TYPE_CHECKING:
    from goclaw_py.records import Unanswered

_RUNNING = (
    "RUN",
    Column("AGENT", drop=4),
    Column("LANE", drop=3),
    Column("STATE", state=True),
    Column("SINCE", drop=1),
    "FOR",
    Column("MESSAGES", drop=2),
)
_WAITING = (
    "POSITION",
    "WAITING",
    Column("SINCE", drop=1),
    "FOR",
    Column("MESSAGES", drop=2),
    Column("WAITS FOR", least=24),
)
_UNFINISHED = ("UNFINISHED", Column("FROM", least=12), "RUN", Column("TEXT", least=24))
_UNANSWERED = (
    "UNANSWERED",
    Column("FROM", least=12),
    Column("REASON", least=24),
    Column("TEXT", least=16),
)
_TEXT = 48


@with_wide
def queue(
    ctx: typer.Context, session: SessionName, *, watch: Watch = None, as_json: AsJson = False
) -> None:
    """Show the queue of a session.

    Lists running and waiting runs, and messages that got no answer, with the reason.
    """

    async def ask(control: Control) -> QueueView:
        return await control.sessions.queue(session)

    question, output = with_names(ask, _keys, QueueView, _show, as_json)
    answer_or_watch(ctx, question, output, watch)


def _keys(found: QueueView) -> Iterator[str]:
    yield found.session
    yield from map(_sender, (*found.messages, *found.unanswered))


def _sender(row: Unanswered) -> str:
    return person_key(row.message.target, row.message.sender.id)


def _show(found: QueueView, names: DisplayNames) -> None:
    facts = [("session", names.with_key(found.session))]
    if found.policy is not None:
        facts.append(("queue", wording.policy(found.policy)))
    if found.unmentioned_at is not None:
        last = age(found.unmentioned_at, found.at)
        facts.append(("unmentioned", f"last message without a mention: {last}"))
    if not found.live:
        typer.echo(STORED_ONLY, err=True)
    show_facts(facts)
    typer.echo()
    running = [
        (
            short_id(run.id),
            run.agent,
            run.lane,
            run.state.value,
            *since(found.at, run.for_s),
            str(run.messages),
        )
        for run in found.running
    ]
    show_table(_RUNNING, running, empty="nothing is running")
    typer.echo()
    waiting = [
        (
            f"{place}.",
            short_id(run.id),
            *since(found.at, run.for_s),
            str(run.messages),
            wording.waits_for(run),
        )
        for place, run in enumerate(found.waiting, 1)
    ]
    nothing = "no run is queued" if found.live else "queued runs are known only to a gateway"
    show_table(_WAITING, waiting, empty=nothing)
    if found.messages:
        typer.echo()
        rows = [_message(row, names, _run(row)) for row in found.messages]
        show_table(_UNFINISHED, rows, empty="")
    if found.unanswered:
        typer.echo()
        newest_first = sorted(
            found.unanswered, key=lambda row: (row.finished_at or row.received_at, row.id)
        )[::-1]
        rows = [_message(row, names, _why(row)) for row in newest_first]
        show_table(_UNANSWERED, rows, empty="")


def _message(row: Unanswered, names: DisplayNames, about: str) -> tuple[str, ...]:
    """Return the row of a message, with the time it arrived or ended."""
    at = clock(row.finished_at or row.received_at)
    return at, names.of(_sender(row)), about, one_line(row.message.text, _TEXT)


def _run(row: Unanswered) -> str:
    return "waits for an approval" if row.asking_run else short_id(row.run_id or "")


def _why(row: Unanswered) -> str:
    return wording.why(row.outcome, row.reason, row.run_id and short_id(row.run_id))
