"""``goclaw heartbeat status``, ``why``, ``runs``, ``show`` and ``events``: read-only commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from goclaw_py.cli.context import (
    STORED_ONLY,
    AsJson,
    Limit,
    Watch,
    answer,
    answer_or_watch,
    choice,
    cli,
    is_live,
    no_rows,
    with_wide,
)
from goclaw_py.cli.messages import display
from goclaw_py.cli.output import (
    TIME,
    Column,
    Printer,
    brief_when,
    plain,
    show_facts,
    show_json,
    show_table,
)
from goclaw_py.core.ids import AgentName
from goclaw_py.core.outcomes import outcome_text
from goclaw_py.core.text import cost
from goclaw_py.operations.heartbeats.command import texts as words
from goclaw_py.operations.heartbeats.command.texts import AgentArgument, AgentsArgument
from goclaw_py.schedule.heartbeat import status_texts as said
from goclaw_py.schedule.heartbeat.checklist.checklist import Checklist
from goclaw_py.schedule.heartbeat.models import (
    HeartbeatEvent,
    HeartbeatRun,
    HeartbeatRunStatus,
    Skip,
)
from goclaw_py.schedule.heartbeat.views import HeartbeatView, Reader

if TYPE_CHECKING:
    from goclaw_py.operations.control import Control

_LAST_HEARTBEAT_RUNS = 5
_COLUMNS = (
    "AGENT",
    Column("STATE", least=12),
    Column("NEXT RUN", least=TIME),
    Column("LAST RUN", drop=2, least=TIME),
    Column("OUTCOME", state=True),
    Column("ALERTS TO", drop=1, least=12),
    Column("TODAY", drop=3),
    Column("MONTH", drop=3),
)
_COMPLETED = outcome_text(HeartbeatRunStatus.OK)
_NOT_WORDS = (HeartbeatRunStatus.OK, HeartbeatRunStatus.SKIPPED)
OUTCOMES = (
    _COMPLETED,
    *(status for status in HeartbeatRunStatus if status not in _NOT_WORDS),
    *(f"skipped:{skip}" for skip in Skip),
)


# ---------------------------------------------------------------------------- status


@dataclass(frozen=True, slots=True)
class _Seen:
    views: list[HeartbeatView]
    log: list[HeartbeatRun]
    live: bool
    reader: Reader


@with_wide
def status(
    ctx: typer.Context,
    agent: AgentsArgument = None,
    *,
    watch: Watch = None,
    as_json: AsJson = False,
) -> None:
    """Show the state of the heartbeat of one agent, or of all agents."""

    async def ask(control: Control) -> _Seen:
        service = control.heartbeats
        agents = await words.some(service, agent)
        views = [await service.view(one) for one in agents]
        log = await service.log(agents[0], limit=_LAST_HEARTBEAT_RUNS) if len(agents) == 1 else []
        return _Seen(views, log, await is_live(control), await words.terminal(control, views))

    answer_or_watch(ctx, ask, _output(_show_status, one=agent is not None, as_json=as_json), watch)


def _show_status(found: _Seen) -> None:
    if not found.live:
        typer.echo(STORED_ONLY, err=True)
    if len(found.views) != 1:
        rows = [_row(view, found.reader) for view in found.views]
        show_table(_COLUMNS, rows, empty="no agents")
        return
    view = found.views[0]
    show_facts(_facts(view, found.reader, live=found.live))
    typer.echo()
    words.show_heartbeat_runs(found.log, with_agent=False)


def _output(show: Callable[[_Seen], None], *, one: bool, as_json: bool) -> Printer[_Seen]:
    """Return how heartbeats are printed; ``one``: a document instead of a list."""
    from goclaw_py.operations.heartbeats.answers import HeartbeatAnswer, answer_of  # noqa: PLC0415

    if one:
        return Printer(HeartbeatAnswer, show, as_json, lambda found: answer_of(found.views[0]))
    return Printer(
        list[HeartbeatAnswer], show, as_json, lambda found: list(map(answer_of, found.views))
    )


def _row(view: HeartbeatView, reader: Reader) -> tuple[str, ...]:
    last = view.last
    at = None if last is None else last.claimed_at
    return (
        display.cell(view.heartbeat.agent),
        said.state_words(view, reader),
        words.due(view),
        brief_when(at, view.now),
        "" if last is None else outcome_text(words.outcome(last)),
        display.cell(said.route_words(view.route, view.policy, reader)),
        cost(view.today),
        cost(view.month),
    )


def _facts(view: HeartbeatView, reader: Reader, *, live: bool) -> Iterator[tuple[str, str]]:
    """Yield the facts of a heartbeat: sentences of chats, without the words of their labels."""
    last, ahead = said.why(view, reader)
    yield "agent", display.cell(view.heartbeat.agent)
    yield "state", said.state_words(view, reader, beside=ahead if live else "")
    yield "last", display.cell(last.removeprefix("Last heartbeat run, "))
    due = ahead.removeprefix("The next run is due ")
    yield "next", display.cell(due) if live else "none until a gateway runs here"
    yield "time zone", view.policy.zone
    yield "alerts", display.cell(said.route_words(view.route, view.policy, reader))
    yield "events", f"{view.events} for the next run" if view.events else "none"
    yield "used", said.spent_words(view, reader).removeprefix("Used ")


# ---------------------------------------------------------------------------- why


def why(ctx: typer.Context, agent: AgentsArgument = None, *, as_json: AsJson = False) -> None:
    """Explain the result of the last heartbeat run.

    Also says when the next one is due.
    """

    async def ask(control: Control) -> _Seen:
        service = control.heartbeats
        views = [await service.view(one) for one in await words.some(service, agent)]
        return _Seen(views, [], await is_live(control), await words.terminal(control, views))

    answer(ctx, ask, _output(_show_why, one=agent is not None, as_json=as_json))


def _show_why(found: _Seen) -> None:
    if not found.live:
        typer.echo(STORED_ONLY, err=True)
    for number, view in enumerate(found.views):
        if number:
            typer.echo()
        if len(found.views) > 1:
            typer.echo(display.cell(view.heartbeat.agent))
        for line in said.why(view, found.reader):
            typer.echo(plain(line))


# ---------------------------------------------------------------------------- runs


@with_wide
def runs(
    ctx: typer.Context,
    agent: AgentsArgument = None,
    outcome: Annotated[
        str | None,
        choice(
            OUTCOMES,
            "List only this outcome: completed, skipped:empty, …",
            former=(HeartbeatRunStatus.OK,),
        ),
    ] = None,
    limit: Limit = 50,
    *,
    as_json: AsJson = False,
) -> None:
    """List past heartbeat runs, newest first."""

    async def ask(control: Control) -> list[HeartbeatRun]:
        name = None if agent is None else AgentName(agent)
        value = HeartbeatRunStatus.OK if outcome == _COMPLETED else outcome
        return await control.heartbeats.log(name, limit=limit, outcome=value)

    def show_all(found: list[HeartbeatRun]) -> None:
        every, filtered = f"heartbeat runs {agent or ''}".rstrip(), outcome is not None
        empty = no_rows("heartbeat runs", every, filtered=filtered, otherwise=words.NO_RUNS)
        words.show_heartbeat_runs(found, with_agent=agent is None, empty=empty)

    answer(ctx, ask, Printer(list[HeartbeatRun], show_all, as_json))


# ---------------------------------------------------------------------------- show


@with_wide
def show(
    ctx: typer.Context,
    agent: AgentArgument = None,
    *,
    whole: Annotated[bool, typer.Option("--file", help="Print HEARTBEAT.md itself.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the open items of HEARTBEAT.md."""

    async def ask(control: Control) -> Checklist:
        service = control.heartbeats
        return await service.checklist(await words.chosen(service, agent))

    found = cli(ctx).ask(ask)
    if whole and not as_json:
        typer.echo(plain(found.text), nl=not found.text.endswith("\n"))
        return
    show_checklist(found, as_json=as_json)


def show_checklist(found: Checklist, *, as_json: bool) -> None:
    """Print the items of a checklist, or its text if that has no items."""
    if as_json:
        from goclaw_py.operations.heartbeats.answers import ChecklistAnswer, checklist_answer  # noqa: PLC0415

        show_json(ChecklistAnswer, checklist_answer(found))
    elif found.items or found.is_empty:
        rows = [
            (
                str(item.number),
                display.cell(item.every or "each run"),
                # The interval has a column of its own.
                display.cell(item.text.removeprefix(f"{item.every}:").strip()),
            )
            for item in found.items
        ]
        show_table(("ITEM", "EVERY", "TEXT"), rows, empty="HEARTBEAT.md has no open items")
    else:
        display.show_text("HEARTBEAT.md", found.text)


# ---------------------------------------------------------------------------- events


@with_wide
def events(ctx: typer.Context, agent: AgentArgument = None, *, as_json: AsJson = False) -> None:
    """List events for the next heartbeat run, oldest first."""

    async def ask(control: Control) -> list[HeartbeatEvent]:
        service = control.heartbeats
        return await service.events(await words.chosen(service, agent))

    def show_all(found: list[HeartbeatEvent]) -> None:
        rows = [(display.moment(event.at), display.cell(event.text)) for event in found]
        show_table(("RECEIVED", "TEXT"), rows, empty="no events waiting")

    answer(ctx, ask, Printer(list[HeartbeatEvent], show_all, as_json))
