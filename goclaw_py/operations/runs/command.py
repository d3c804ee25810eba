"""``goclaw runs``: list, show and follow runs of agents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Annotated

import typer

from goclaw_py.cli import completion
from goclaw_py.cli.context import (
    STORED_ONLY,
    AsJson,
    Limit,
    RunName,
    Watch,
    answer,
    answer_or_watch,
    check_agent,
    cli,
    maybe_named,
    no_rows,
    note_stored,
    selects,
    with_options,
    with_wide,
)
from goclaw_py.cli.messages import display
from goclaw_py.cli.names import DisplayNames, with_names
from goclaw_py.cli.output import (
    Column,
    clock,
    one_line,
    short_id,
    show_facts,
    show_table,
    show_text,
    since,
)
from goclaw_py.core.display_names import address
from goclaw_py.core.ids import SessionKey
from goclaw_py.core.messages import Role
from goclaw_py.core.outcomes import Outcome, Trigger, outcome_text
from goclaw_py.core.text import usd
from goclaw_py.core.time.texts import duration
from goclaw_py.operations.control import Control
from goclaw_py.operations.runs import HELP
from goclaw_py.operations.runs.operations import RunRecord
from goclaw_py.records import OutboxRow, RunFilter, RunQuery, StoredRun, ToolCall
from goclaw_py.runs.step_views import StepView
from goclaw_py.scheduler.texts import state_text, waits_for
from goclaw_py.scheduler.views import ActiveRuns

app = typer.Typer(help=HELP, no_args_is_help=True, invoke_without_command=True)


_ACTIVE = (
    "RUN",
    Column("SESSION", least=16),
    Column("AGENT", drop=4),
    Column("LANE", drop=3),
    Column("STATE", state=True),
    Column("SINCE", drop=2),
    Column("FOR", drop=1),
    Column("WAITS FOR", least=16),
    Column("KEY", drop=9),
)


@app.callback()
@with_wide
def runs(
    ctx: typer.Context,
    *,
    active: Annotated[
        bool,
        typer.Option("--active", help="Show running and waiting runs, with what they wait for."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List, show and follow runs of agents."""
    if ctx.invoked_subcommand is not None:
        if active or as_json:
            raise typer.BadParameter("put options after the subcommand: runs list --json")
        return
    if not active:
        raise typer.BadParameter("give a subcommand (list, show or follow) or --active")

    async def ask(control: Control) -> ActiveRuns:
        return await control.runs.active()

    def keys(found: ActiveRuns) -> Iterator[str]:
        return (run.session for run in found.runs)

    answer(ctx, *with_names(ask, keys, ActiveRuns, _show_active, as_json))


def _show_active(found: ActiveRuns, names: DisplayNames) -> None:
    if not found.live:
        typer.echo(STORED_ONLY, err=True)
    rows = [
        (
            short_id(run.id),
            names.of(run.session),
            run.agent,
            run.lane,
            state_text(run),
            *since(found.at, run.for_s),
            waits_for(run),
            run.session,
        )
        for run in found.runs
    ]
    show_table(_ACTIVE, rows, empty="no run is in progress or queued")


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The options of ``goclaw runs list``."""

    session: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.sessions,
            help="List only this session: its key, or any unique part of it.",
        ),
    ] = None
    agent: Annotated[
        str | None,
        typer.Option(autocompletion=completion.agents, help="List only runs of this agent."),
    ] = None
    trigger: Annotated[Trigger | None, typer.Option(help="List only runs with this trigger.")] = (
        None
    )
    outcome: Annotated[Outcome | None, typer.Option(help="List only runs with this outcome.")] = (
        None
    )
    search: Annotated[str, typer.Option(help="List only runs with this text in their prompt.")] = ""
    days: Annotated[
        int | None, typer.Option(min=1, max=36_500, help="List only runs of the last DAYS days.")
    ] = None
    limit: Limit = 50
    active: Annotated[
        bool,
        typer.Option(
            "--active",
            help="List only runs in progress; with waiting ones: goclaw runs --active.",
            hidden=True,
        ),
    ] = False
    watch: Watch = None
    as_json: AsJson = False

    def query(self, session: SessionKey | None) -> RunQuery:
        """Return the query: options that are called as fields of ``RunFilter`` select by them."""
        only = RunFilter(**{one.name: getattr(self, one.name, None) for one in fields(RunFilter)})
        return RunQuery(
            only=only,
            session=session,
            since=None if self.days is None else display.now() - timedelta(days=self.days),
            active=self.active,
            search=self.search,
            limit=self.limit,
        )


@app.command("list")
@with_wide
@with_options(ListOptions)
def list_(ctx: typer.Context, wanted: ListOptions) -> None:
    """List runs, newest first."""
    if wanted.active and wanted.outcome is not None:
        raise typer.BadParameter("--active excludes --outcome: runs in progress have no outcome")

    async def ask(control: Control) -> list[StoredRun]:
        key = None if wanted.session is None else (await control.sessions.get(wanted.session)).key
        found = await control.runs.list(wanted.query(key))
        if not found:
            await check_agent(control, wanted.agent)
        return found

    def keys(found: list[StoredRun]) -> Iterator[str]:
        return (run.session for run in found)

    def show_all(found: list[StoredRun], names: DisplayNames) -> None:
        note_stored(ctx, unfinished=any(one.outcome is None for one in found))
        empty = no_rows("runs", "runs list", filtered=selects(wanted), otherwise="no runs yet")
        show_table(_COLUMNS, [_row(one, names) for one in found], empty=empty)
        if wanted.active:
            typer.echo("with waiting runs, and for what: goclaw runs --active", err=True)

    question, output = with_names(ask, keys, list[StoredRun], show_all, wanted.as_json)
    answer_or_watch(ctx, question, output, wanted.watch)


_COLUMNS = (
    "RUN",
    Column("SESSION", least=16),
    Column("TRIGGER", drop=2),
    "STARTED",
    Column("TOOK", drop=3),
    Column("OUTCOME", state=True, least=10),
    Column("PROMPT", least=16, drop=1),
    Column("KEY", drop=9),
)


def _row(run: StoredRun, names: DisplayNames) -> tuple[str, ...]:
    return (
        short_id(run.id),
        names.of(run.session),
        run.trigger.value,
        display.moment(run.started_at),
        duration_of(run),
        outcome(run),
        one_line(run.prompt),
        run.session,
    )


@app.command()
@with_wide
def show(ctx: typer.Context, run: RunName, *, as_json: AsJson = False) -> None:
    """Show a run: messages, steps, tool calls, cost, delivery."""

    async def ask(control: Control) -> RunRecord:
        return await control.runs.record(run)

    def show_one(record: RunRecord, names: DisplayNames) -> None:
        note_stored(ctx, unfinished=record.run.outcome is None)
        show_record(record, names)

    answer(ctx, *with_names(ask, _keys, RunRecord, show_one, as_json))


def _keys(record: RunRecord) -> Iterable[str]:
    return [record.run.session, *(address(row.message.target) for row in record.said)]


@app.command()
def follow(
    ctx: typer.Context,
    session: Annotated[
        str | None,
        typer.Argument(
            callback=maybe_named,
            autocompletion=completion.sessions,
            help="Session to follow: its key, any unique part of it, or one of its runs "
            "(default: all).",
        ),
    ] = None,
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line.")
    ] = False,
) -> None:
    """Follow runs live until Ctrl-C.

    Shows their text, tool calls, usage and results as they happen.
    """
    from goclaw_py.cli.runs.follow import follow_runs  # noqa: PLC0415

    follow_runs(cli(ctx).settings(), session, as_json=as_json)


_STEPS = (
    "STEP",
    "KIND",
    Column("TOOL", least=12),
    Column("TOKENS", drop=1),
    Column("TEXT", least=24),
)
_TOOLS = (
    "TOOL",
    Column("STARTED", drop=1),
    Column("TOOK", drop=2),
    Column("RESULT", least=20),
    Column("ARGUMENTS", least=16),
)
_SAID = (
    "ID",
    Column("STATE", state=True),
    Column("CHAT", drop=2, least=12),
    Column("SENT", drop=1),
    Column("PROBLEM", least=16),
    Column("TEXT", least=16),
    Column("KEY", drop=9),
)
_CELL = 200


def show_record(record: RunRecord, names: DisplayNames) -> None:
    """Print a run. Steps, arguments and results are cut to a line; ``--json`` has more."""
    run = record.run
    show_facts(facts_of(run, names))
    if run.tools:
        typer.echo()
        show_table(_TOOLS, [_call(call) for call in run.tools], empty="")
    if record.steps:
        typer.echo()
        show_table(_STEPS, [_step(step) for step in record.steps], empty="")
    if run.prompt and not any(stored.entry.role is Role.USER for stored in record.entries):
        typer.echo("\nprompt")
        show_text(run.prompt)
    for stored in record.entries:
        typer.echo(f"\n{clock(stored.at)}  {stored.entry.role.value}")
        show_text(stored.entry.text)
    if not record.entries:
        nothing = "no history entries" if run.outcome else "history is stored when the run ends"
        typer.echo(f"\n{nothing}")
    typer.echo()
    rows = [_message(row, names) for row in record.said]
    show_table(_SAID, rows, empty="no messages sent to a chat")


def duration_of(run: StoredRun) -> str:
    """Return how long a run took, "" while it is in progress."""
    if run.finished_at is None:
        return ""
    return duration((run.finished_at - run.started_at).total_seconds())


def outcome(run: StoredRun) -> str:
    """Return the outcome of a run, with the reason."""
    if run.outcome is None:
        return "running"
    why = f" ({outcome_text(run.reason)})" if run.reason else ""
    return f"{outcome_text(run.outcome)}{why}"


def facts_of(run: StoredRun, names: DisplayNames) -> Iterator[tuple[str, str]]:
    """Yield the facts of a run: names and values."""
    yield "run", run.id
    yield "session", names.with_key(run.session)
    yield "agent", run.agent
    yield "trigger", run.trigger.value
    yield "lane", run.lane
    yield "node", run.node
    yield "model", run.model or "unknown"
    yield "submitted", clock(run.submitted_at)
    waited = duration((run.started_at - run.submitted_at).total_seconds())
    yield "started", f"{clock(run.started_at)}, after waiting {waited}"
    yield "first text", clock(run.first_text_at) or "none"
    yield "finished", clock(run.finished_at) or "not yet"
    yield "took", duration_of(run) or "still running"
    yield "outcome", outcome(run)
    if run.error:
        yield "error", run.error
    if run.notes:
        yield "notes", ", ".join(map(outcome_text, run.notes))
    if run.parent:
        yield "parent", run.parent
        yield "charged to", run.payer
    yield from _usage(run)


def _usage(run: StoredRun) -> Iterator[tuple[str, str]]:
    usage = run.usage
    if usage is None:
        return
    yield "requests", str(usage.requests)
    cached = f"{usage.input_tokens} in ({usage.cached_tokens} cached)"
    yield "tokens", f"{cached}, {usage.output_tokens} out"
    yield "cost", "unknown" if usage.cost_usd is None else usd(usage.cost_usd)


def _step(step: StepView) -> tuple[str, ...]:
    used = step.usage
    tokens = "" if used is None else f"{used.input_tokens} in, {used.output_tokens} out"
    text = one_line(step.text, _CELL)
    failed = "failed: " if step.ok is False else ""
    return str(step.number), step.kind.value, step.name, tokens, f"{failed}{text}"


def step_text(step: StepView) -> str:
    """Return a step on one line."""
    number, kind, name, tokens, text = _step(step)
    return "  ".join(filter(None, [f"{number:>3}  {kind:<8}", name, text, tokens]))


def _call(call: ToolCall) -> tuple[str, ...]:
    lasted = "" if call.seconds is None else duration(call.seconds)
    ended = {None: "no result", True: "ok", False: "failed"}[call.ok]
    if call.uncertain or call.is_denied:
        ended = "uncertain" if call.uncertain else "denied"
    result = f"{ended}: {one_line(call.result, _CELL)}" if call.result else ended
    return call.name, clock(call.started_at), lasted, result, one_line(call.arguments, _CELL)


def _message(row: OutboxRow, names: DisplayNames) -> tuple[str, ...]:
    return (
        str(row.id),
        row.state.value,
        names.chat(row.message.target),
        clock(row.sent_at) or "not yet",
        one_line(row.error or "", _CELL),
        one_line(display.sent_text(row.message), _CELL) or "(no text)",
        display.place(row.message.target),
    )
