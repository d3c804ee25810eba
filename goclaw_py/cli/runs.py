"""``goclaw runs``: what agents did and do."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from goclaw_py.cli import completion
from goclaw_py.cli.context import AsJson, Asks, Limit, RunName, Watch, cli, look, named
from goclaw_py.cli.output import clock, duration, show_facts, show_json, show_table

if TYPE_CHECKING:
    from goclaw_py.core.status import ActiveRuns
    from goclaw_py.ports.control import Control
    from goclaw_py.ports.store import Run, ToolCall

app = typer.Typer(no_args_is_help=True, invoke_without_command=True)


@app.callback()
def runs(
    ctx: typer.Context,
    *,
    active: Annotated[
        bool, typer.Option("--active", help="Show who runs where since when, and who waits.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """What agents did and do."""
    if ctx.invoked_subcommand is not None:
        if active or as_json:
            raise typer.BadParameter("options stand behind the last word: runs list --active")
        return
    if not active:
        raise typer.BadParameter("say what to show: --active, list, show or follow")

    async def ask(control: Control) -> ActiveRuns:
        return await control.active()

    found = cli(ctx).ask(ask)
    if as_json:
        from goclaw_py.core.status import ActiveRuns  # noqa: PLC0415

        show_json(ActiveRuns, found)
        return
    _show_active(found)


def _show_active(found: ActiveRuns) -> None:
    from goclaw_py.cli.wording import waits_for  # noqa: PLC0415

    if not found.live:
        typer.echo("no gateway is running here; this is what the database knows", err=True)
    rows = [
        (
            run.id,
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


@app.command("list")
def list_(
    ctx: typer.Context,
    session: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.sessions,
            help="Only of this session: any unique part of its key.",
        ),
    ] = None,
    limit: Limit = 50,
    *,
    active: Annotated[bool, typer.Option("--active", help="Only those that work now.")] = False,
    watch: Watch = None,
    as_json: AsJson = False,
) -> None:
    """List runs, the newest first."""

    async def ask(control: Control) -> list[Run]:
        key = None if session is None else (await control.session(session)).key
        return await control.runs(limit=limit, session=key, active=active)

    def show_all(asks: Asks) -> None:
        found = asks.ask(ask)
        if as_json:
            from goclaw_py.ports.store import Run  # noqa: PLC0415

            show_json(list[Run], found)
            return
        rows = [
            (one.id, one.session, clock(one.started_at), _took(one), _outcome(one)) for one in found
        ]
        show_table(("RUN", "SESSION", "STARTED", "TOOK", "OUTCOME"), rows, empty="no runs yet")

    look(ctx, show_all, watch, as_json=as_json)


@app.command()
def show(ctx: typer.Context, run: RunName, *, as_json: AsJson = False) -> None:
    """Show a run, by its id or a unique beginning of it."""

    async def ask(control: Control) -> Run:
        return await control.run(run)

    found = cli(ctx).ask(ask)
    if as_json:
        from goclaw_py.ports.store import Run  # noqa: PLC0415

        show_json(Run, found)
        return
    facts = [
        ("run", found.id),
        ("session", found.session),
        ("agent", found.agent),
        ("trigger", found.trigger.value),
        ("lane", found.lane),
        ("node", found.node),
        ("model", found.model or "unknown"),
        ("asked for", clock(found.submitted_at)),
        ("started", clock(found.started_at)),
        ("first word", clock(found.first_text_at) or "none"),
        ("finished", clock(found.finished_at) or "not yet"),
        ("took", _took(found) or "still working"),
        ("outcome", _outcome(found)),
    ]
    if found.error:
        facts.append(("error", found.error))
    if found.parent:
        facts += [("parent", found.parent), ("paid by", found.payer)]
    show_facts(facts + _usage(found))
    if found.tools:
        typer.echo()
        calls = [_call(call) for call in found.tools]
        show_table(("TOOL", "STARTED", "TOOK", "RESULT", "ARGUMENTS"), calls, empty="")


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
            help="Only this one: any unique part of its key.",
        ),
    ] = None,
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="For programs: one JSON object a line.")
    ] = False,
) -> None:
    """Show what runs do while they do it, until Ctrl-C."""
    from goclaw_py.cli.follow import follow_runs  # noqa: PLC0415

    follow_runs(cli(ctx).settings(), session, as_json=as_json)


def _call(call: ToolCall) -> tuple[str, str, str, str, str]:
    took = "" if call.seconds is None else duration(call.seconds)
    ended = {None: "never came back", True: "ok", False: "failed"}[call.ok]
    result = ended if call.ok else f"{ended}: {call.result}"
    return call.name, clock(call.started_at), took, result, call.arguments


def _took(run: Run) -> str:
    if run.finished_at is None:
        return ""
    return duration((run.finished_at - run.started_at).total_seconds())


def _outcome(run: Run) -> str:
    if run.outcome is None:
        return "working"
    return f"{run.outcome.value} ({run.reason.value})" if run.reason else run.outcome.value


def _usage(run: Run) -> list[tuple[str, str]]:
    usage = run.usage
    if usage is None:
        return []
    tokens = f"{usage.input_tokens} in ({usage.cached_tokens} cached), {usage.output_tokens} out"
    cost = "unknown" if usage.cost_usd is None else f"{usage.cost_usd} USD"
    return [("requests", str(usage.requests)), ("tokens", tokens), ("cost", cost)]
