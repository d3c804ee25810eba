"""``goclaw runs``: list, show and follow runs of agents."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Final

import typer

from goclaw_py.cli import completion
from goclaw_py.cli.context import AsJson, Asks, Limit, RunName, Watch, cli, look, named
from goclaw_py.cli.options import with_options
from goclaw_py.cli.output import clock, duration, show_json, show_table
from goclaw_py.model.ids import AgentName, RunId
from goclaw_py.model.outcomes import Outcome, Trigger
from goclaw_py.ports.control import Control, RunRecord
from goclaw_py.ports.store import RunFilter, StoredRun
from goclaw_py.scheduler.texts import waits_for
from goclaw_py.scheduler.views import ActiveRuns

app = typer.Typer(no_args_is_help=True, invoke_without_command=True)


@app.callback()
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
            raise typer.BadParameter("put options after the subcommand: runs list --active")
        return
    if not active:
        raise typer.BadParameter("give a subcommand (list, show or follow) or --active")

    async def ask(control: Control) -> ActiveRuns:
        return await control.active()

    found = cli(ctx).ask(ask)
    if as_json:
        show_json(ActiveRuns, found)
        return
    _show_active(found)


def _show_active(found: ActiveRuns) -> None:

    if not found.live:
        typer.echo("no gateway is running here; showing the state in the database", err=True)
    rows = [
        (
            _name(run.id),
            run.session,
            run.agent,
            run.lane,
            run.state.value,
            clock(found.at - timedelta(seconds=run.for_s)),
            duration(run.for_s),
            waits_for(run),
        )
        for run in found.runs
    ]
    columns = ("RUN", "SESSION", "AGENT", "LANE", "STATE", "SINCE", "FOR", "WAITS FOR")
    show_table(columns, rows, empty="nothing is running or waiting")


@dataclass(frozen=True, slots=True)
class Listed:
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
    limit: Limit = 50
    active: Annotated[bool, typer.Option("--active", help="List only runs in progress.")] = False
    watch: Watch = None
    as_json: AsJson = False

    @property
    def is_picked(self) -> bool:
        """Return whether a filter is set."""
        picked = (self.session, self.agent, self.trigger, self.outcome)
        return self.active or any(one is not None for one in picked)


@app.command("list")
@with_options(Listed)
def list_(ctx: typer.Context, wanted: Listed) -> None:
    """List runs, newest first."""
    if wanted.active and wanted.outcome is not None:
        raise typer.BadParameter("--active excludes --outcome: runs in progress have no outcome")

    async def ask(control: Control) -> list[StoredRun]:

        key = None if wanted.session is None else (await control.session(wanted.session)).key
        agent = None if wanted.agent is None else AgentName(wanted.agent)
        only = RunFilter(agent, wanted.trigger, wanted.outcome)
        return await control.runs(limit=wanted.limit, session=key, active=wanted.active, only=only)

    def show_all(asks: Asks) -> None:
        found = asks.ask(ask)
        if wanted.as_json:
            show_json(list[StoredRun], found)
            return
        none = "no matching runs; to list all: goclaw runs list"
        none = none if wanted.is_picked else "no runs yet"
        show_table(_COLUMNS, [_row(one) for one in found], empty=none)

    look(ctx, show_all, wanted.watch, as_json=wanted.as_json)


_TELLING: Final = len("01a20492-c3f7-7c11")
"""Length of the part of a run id that is unique: the time in ms and a counter within it."""

_COLUMNS = ("RUN", "SESSION", "TRIGGER", "STARTED", "TOOK", "OUTCOME")


def _row(run: StoredRun) -> tuple[str, ...]:
    from goclaw_py.cli.runs.record import outcome, took  # noqa: PLC0415

    trigger, started = run.trigger.value, clock(run.started_at)
    return _name(run.id), run.session, trigger, started, took(run), outcome(run)


def _name(run: RunId) -> str:
    """Shorten the id for a terminal. Its beginning is enough to name the run."""
    return run[:_TELLING] if sys.stdout.isatty() else run


@app.command()
def show(ctx: typer.Context, run: RunName, *, as_json: AsJson = False) -> None:
    """Show the details of a run: messages, tool calls, cost, delivery."""

    async def ask(control: Control) -> RunRecord:
        return await control.run_record(run)

    found = cli(ctx).ask(ask)
    if as_json:
        show_json(RunRecord, found)
        return
    from goclaw_py.cli.runs.record import show_record  # noqa: PLC0415

    show_record(found)


def _maybe_named(text: str | None) -> str | None:
    return None if text is None else named(text)


@app.command()
def follow(
    ctx: typer.Context,
    session: Annotated[
        str | None,
        typer.Argument(
            callback=_maybe_named,
            autocompletion=completion.sessions,
            help="Session to follow: its key, or any unique part of it (default: all).",
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
