"""``goclaw heartbeat`` and ``goclaw event``: checks of HEARTBEAT.md (SPEC OPS-1, section 7)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from goclaw_py.app.progress import ProgressStep
from goclaw_py.cli.context import STORED_ONLY, AsJson, answer, cli, is_live, with_wide
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.messages import display
from goclaw_py.cli.output import Printer, show_json, show_text
from goclaw_py.cli.progress import report
from goclaw_py.core.errors import NotFound
from goclaw_py.core.ids import AgentName, HeartbeatRunId
from goclaw_py.core.outcomes import outcome_text
from goclaw_py.core.text import cost
from goclaw_py.core.time.texts import duration
from goclaw_py.operations.heartbeats import HELP
from goclaw_py.operations.heartbeats.command import show
from goclaw_py.operations.heartbeats.command import texts as words
from goclaw_py.operations.heartbeats.command.texts import (
    AgentArgument,
    AgentOption,
    FormerAgentOption,
)
from goclaw_py.operations.heartbeats.operations import HeartbeatService
from goclaw_py.schedule.heartbeat import status_texts as said
from goclaw_py.schedule.heartbeat.checklist.checklist import Checklist, Item, as_item, open_item
from goclaw_py.schedule.heartbeat.checklist.intervals import FORMS
from goclaw_py.schedule.heartbeat.models import (
    OPEN,
    Heartbeat,
    HeartbeatEvent,
    HeartbeatRun,
    HeartbeatStarted,
    NoHeartbeat,
    Skip,
)
from goclaw_py.schedule.heartbeat.mute import mute_end
from goclaw_py.schedule.heartbeat.status_texts import (
    advice,
    dry_run_lines,
    outcome_words,
)
from goclaw_py.schedule.heartbeat.views import OPERATOR, DryRunReport, HeartbeatView, Reader

if TYPE_CHECKING:
    from goclaw_py.operations.control import Control

app = typer.Typer(help=HELP, no_args_is_help=True)

app.command("status")(show.status)
app.command("why")(show.why)
app.command("runs")(show.runs)
app.command("logs", hidden=True)(show.runs)


# ---------------------------------------------------------------------------- run

_LOOK_EVERY_S = 0.5
_DELIVERY_S = 5.0
"""How long to wait for the delivery of an alert before it is shown as not sent yet."""

_FINE = (
    "ok", "alerted", "logged", "duplicate", "skipped:no_file", "skipped:empty",
    "skipped:nothing_due",
)  # fmt: skip
"""Outcomes of a heartbeat run that are not failures."""

_SPEAKS = ("alerted", "logged", "duplicate", "no_route", "failed", "delivery_failed")
"""Outcomes of a heartbeat run that may have a reply to show."""

_REFUSED = {
    NoHeartbeat.ALREADY_RUNNING: "a heartbeat run is already in progress",
    NoHeartbeat.OFF: "no gateway is running here",
}


@app.command()
def run(
    ctx: typer.Context,
    agent: AgentArgument = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would happen, without asking a model.")
    ] = False,
    wait: Annotated[
        float, typer.Option(min=0, max=86_400, help="Seconds to wait for the end of the run.")
    ] = 120,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Start the run, print its id and exit.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Start a heartbeat run now, wait for it and show the result.

    Ignores the interval, mute and quiet hours, but not the daily budget.
    """
    if dry_run:
        _dry_run(ctx, agent, as_json=as_json)
        return
    patience = 0.0 if no_wait else wait

    async def ask(control: Control) -> _Ran:
        service = control.heartbeats
        name = await words.chosen(service, agent)
        heartbeat = (await service.view(name)).heartbeat
        if not heartbeat.is_on:
            # Nothing would come of it, so nothing is started or waited for.
            return _Ran(None, None, heartbeat)
        begun = await service.run_now(name)
        if isinstance(begun, NoHeartbeat):
            view = await service.view(name)
            now = said.current_run(view, await words.terminal(control, [view]))
            is_off = begun is NoHeartbeat.OFF
            return _Ran(begun, None, None, "" if is_off else now)
        heartbeat_run = await _ended(service, begun, patience)
        is_off = heartbeat_run is not None and heartbeat_run.skip is Skip.DISABLED
        return _Ran(begun, heartbeat_run, (await service.view(name)).heartbeat if is_off else None)

    _say(cli(ctx).ask(ask), waited=not no_wait, as_json=as_json)


def _dry_run(ctx: typer.Context, agent: str | None, *, as_json: bool) -> None:
    async def ask(control: Control) -> tuple[DryRunReport, Heartbeat, Reader]:
        service = control.heartbeats
        name = await words.chosen(service, agent)
        report, view = await service.dry_run(name), await service.view(name)
        return report, view.heartbeat, await words.terminal(control, [view])

    def show(found: tuple[DryRunReport, Heartbeat, Reader]) -> None:
        for line in dry_run_lines(*found):
            show_text(line)

    answer(ctx, ask, Printer(DryRunReport, show, as_json, lambda found: found[0]))


@dataclass(frozen=True, slots=True)
class _Ran:
    """How a manual heartbeat run began, and its last known state.

    ``heartbeat`` is set if the run was skipped because the heartbeat is off; ``begun`` is None if
    no run was started because of that. ``refusal``: what prevents another run now.
    """

    begun: HeartbeatStarted | NoHeartbeat | None
    heartbeat_run: HeartbeatRun | None
    heartbeat: Heartbeat | None
    refusal: str = ""


async def _ended(
    service: HeartbeatService, begun: HeartbeatStarted | NoHeartbeat, patience: float
) -> HeartbeatRun | None:
    """Poll a heartbeat run until it has ended and its alert is sent, or time is up."""
    if not isinstance(begun, HeartbeatStarted) or not patience:
        return None

    clock = asyncio.get_running_loop().time
    give_up_at = clock() + patience
    report(ProgressStep("waiting for the end of the heartbeat run"))
    found = await _stored(service, begun.heartbeat_run)
    while found is not None and clock() < give_up_at:
        if found.status not in OPEN:
            if found.delivery != "waiting":
                break
            if give_up_at > clock() + _DELIVERY_S:
                give_up_at = clock() + _DELIVERY_S
                report(ProgressStep("the run has ended; waiting for the delivery of its alert"))
        await asyncio.sleep(min(_LOOK_EVERY_S, max(0.0, give_up_at - clock())))
        found = await _stored(service, begun.heartbeat_run)
    return found


async def _stored(service: HeartbeatService, heartbeat_run: HeartbeatRunId) -> HeartbeatRun | None:
    with suppress(NotFound):
        return await service.heartbeat_run(heartbeat_run)
    return None


def _say(ran: _Ran, *, waited: bool, as_json: bool) -> None:
    begun, heartbeat_run = ran.begun, ran.heartbeat_run
    if begun is None:
        _say_off(ran.heartbeat, as_json=as_json)
    elif not isinstance(begun, HeartbeatStarted):
        _refuse(begun, ran.refusal, as_json=as_json)
    elif heartbeat_run is None:
        if as_json:
            show_json(dict[str, str], {"status": "running", "heartbeat_run": begun.heartbeat_run})
        else:
            typer.echo(begun.heartbeat_run)
        if waited:
            typer.echo("goclaw: this heartbeat run is no longer stored", err=True)
            raise typer.Exit(ExitCode.FAILED)
    else:
        _say_heartbeat_run(heartbeat_run, ran.heartbeat, as_json=as_json)


def _say_off(heartbeat: Heartbeat | None, *, as_json: bool) -> None:
    if as_json:
        show_json(dict[str, str], {"status": "skipped:disabled"})
    else:
        is_set_off = heartbeat is not None and heartbeat.interval is None
        typer.echo(
            OPERATOR.off_by_settings if is_set_off else f"The heartbeat is off. {OPERATOR.turn_on}"
        )
    raise typer.Exit(ExitCode.FAILED)


def _refuse(refused: NoHeartbeat, why: str, *, as_json: bool) -> None:
    if as_json:
        show_json(dict[str, str], {"status": refused.value})
    show_text(why or _REFUSED[refused], "goclaw: ", err=True)
    is_off = refused is NoHeartbeat.OFF
    raise typer.Exit(ExitCode.UNREACHABLE if is_off else ExitCode.FAILED)


def _say_heartbeat_run(
    heartbeat_run: HeartbeatRun, heartbeat: Heartbeat | None, *, as_json: bool
) -> None:
    outcome = words.outcome(heartbeat_run)
    if as_json:
        show_json(HeartbeatRun, heartbeat_run)
    else:
        facts = ", ".join(
            filter(None, [duration(heartbeat_run.duration_s), cost(heartbeat_run.usage)])
        )
        # The words behind it have the reason of a skip.
        word = outcome_text(outcome).partition(":")[0]
        result = outcome_words(heartbeat_run).removeprefix("it was skipped: ")
        show_text(f"{word}{f' ({facts})' if facts else ''}: {result}")
        if todo := advice(heartbeat_run, heartbeat):
            typer.echo(todo)
        if heartbeat_run.status in _SPEAKS and (said := words.summary(heartbeat_run)):
            typer.echo("Reply:")
            show_text(said)
    if heartbeat_run.status in OPEN:
        typer.echo(
            f"goclaw: still in progress; see: goclaw heartbeat runs {heartbeat_run.agent}", err=True
        )
    if outcome not in _FINE:
        raise typer.Exit(ExitCode.FAILED)


# ---------------------------------------------------------------------------- on, off, mute

_Change = Callable[[HeartbeatService, AgentName], Awaitable[HeartbeatView]]


@app.command()
def on(ctx: typer.Context, agent: AgentArgument = None, *, as_json: AsJson = False) -> None:
    """Turn the heartbeat on."""
    view = _change(ctx, agent, lambda service, name: service.switch(name, on=True), as_json=as_json)
    if not view.heartbeat.is_on:
        typer.echo(f"goclaw: {OPERATOR.off_by_settings}", err=True)
        raise typer.Exit(ExitCode.FAILED)


@app.command()
def off(ctx: typer.Context, agent: AgentArgument = None, *, as_json: AsJson = False) -> None:
    """Turn the heartbeat off. A heartbeat run in progress finishes."""
    _change(ctx, agent, lambda service, name: service.switch(name, on=False), as_json=as_json)


@app.command()
def auto(ctx: typer.Context, agent: AgentArgument = None, *, as_json: AsJson = False) -> None:
    """Undo on and off: the settings decide whether the heartbeat is on."""
    _change(ctx, agent, lambda service, name: service.switch(name, on=None), as_json=as_json)


@app.command()
def mute(
    ctx: typer.Context,
    when: Annotated[
        list[str],
        typer.Argument(
            metavar="DURATION",
            help="30m, 1h30m, 2 hours, until 18:00, or off to unmute; then an agent (default: "
            "main, or the only agent).",
        ),
    ],
    agent: FormerAgentOption = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Mute the heartbeat for a while. Heartbeat runs that fall into this time are skipped."""

    async def ask(control: Control) -> tuple[str, str | None]:
        agents = await control.heartbeats.agents()
        is_named = len(when) > 1 and when[-1] in agents
        return (" ".join(when[:-1]), when[-1]) if is_named else (" ".join(when), agent)

    text, agent = cli(ctx).ask(ask, create=True)

    async def change(service: HeartbeatService, name: AgentName) -> HeartbeatView:

        view = await service.view(name)
        until = mute_end(text, now=view.now, zone=view.policy.zone)
        return await service.mute(name, until)

    _change(ctx, agent, change, as_json=as_json)


def _change(
    ctx: typer.Context, agent: str | None, change: _Change, *, as_json: bool
) -> HeartbeatView:
    async def ask(control: Control) -> tuple[HeartbeatView, bool, Reader]:
        service = control.heartbeats
        view = await change(service, await words.chosen(service, agent))
        return view, await is_live(control), await words.terminal(control, [view])

    view, live, reader = cli(ctx).ask(ask, create=True)
    if as_json:
        from goclaw_py.operations.heartbeats.answers import HeartbeatAnswer, answer_of  # noqa: PLC0415

        show_json(HeartbeatAnswer, answer_of(view))
        return view

    ahead = said.why(view, reader)[1]
    show_text(f"{view.heartbeat.agent}: {said.state_words(view, reader, beside=ahead)}")
    show_text(ahead)
    if not live:
        typer.echo(STORED_ONLY, err=True)
    return view


# ---------------------------------------------------------------------------- the checklist

app.command("show")(show.show)


@app.command()
@with_wide
def add(
    ctx: typer.Context,
    text: Annotated[list[str], typer.Argument(metavar="TEXT", help="Text of the item.")],
    agent: AgentOption = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Add an item to HEARTBEAT.md. Example of TEXT: every 2h: is the build green?"""

    async def ask(control: Control) -> tuple[Checklist, Item | None]:

        service, given = control.heartbeats, " ".join(text)
        name = await words.chosen(service, agent)
        there = await service.checklist(name)
        if (same := open_item(there, as_item(given))) is not None:
            return there, same
        return await service.add_item(name, given), None

    found, same = cli(ctx).ask(ask, create=True)
    if same is not None:
        _show_note(f"item {same.number} already exists: {display.cell(same.text)}", as_json=as_json)
    show.show_checklist(found, as_json=as_json)
    item = same or (found.items[-1] if found.items else None)
    if item is not None and item.is_misread:
        problem = "the interval is not understood, so each run checks the item; forms"
        typer.echo(f"warning: {problem}: {FORMS}", err=True)


@app.command()
@with_wide
def done(
    ctx: typer.Context,
    number: Annotated[
        int, typer.Argument(min=1, max=100_000, metavar="N", help="Number of the item.")
    ],
    agent: AgentArgument = None,
    *,
    former_agent: FormerAgentOption = None,
    as_json: AsJson = False,
) -> None:
    """Mark an item of HEARTBEAT.md as done.

    N is its number in goclaw heartbeat show.
    """

    async def ask(control: Control) -> tuple[Checklist, str]:
        service = control.heartbeats
        name = await words.chosen(service, agent or former_agent)
        before = await service.checklist(name)
        after = await service.complete_item(name, number, version=before.version)
        ticked = [item.text for item in before.items if item.number == number]
        return after, ticked[0] if ticked else f"item {number}"

    found, ticked = cli(ctx).ask(ask)
    _show_note(f"done: {display.cell(ticked)}", as_json=as_json)
    show.show_checklist(found, as_json=as_json)


def _show_note(line: str, *, as_json: bool) -> None:
    """Print a line before a list; with ``--json`` on standard error."""
    show_text(line, err=as_json)


# ---------------------------------------------------------------------------- events

app.command("events")(show.events)


def event(
    ctx: typer.Context,
    text: Annotated[list[str], typer.Argument(metavar="TEXT", help="Text of the event.")],
    agent: AgentOption = None,
    *,
    now: Annotated[
        bool,
        typer.Option(
            "--now",
            help="Start the heartbeat run at once, but at least 30 s after the start of the last "
            "one. Mute and quiet hours still apply.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Send an agent a text for its next heartbeat run."""

    async def ask(control: Control) -> tuple[HeartbeatEvent, HeartbeatView, bool, Reader]:
        service = control.heartbeats
        name = await words.chosen(service, agent)
        told = await service.add_event(name, " ".join(text), now=now)
        view = await service.view(name)
        return told, view, await is_live(control), await words.terminal(control, [view])

    told, view, live, reader = cli(ctx).ask(ask, create=True)
    if as_json:
        show_json(HeartbeatEvent, told)
        return
    if now and (silence := said.silence(view, reader)):
        # Its run is skipped, and the event waits.
        show_text(f"{told.agent} does not read the event now: {silence}.")
    else:
        when = "now, in a heartbeat run" if now else "in its next heartbeat run"
        show_text(f"{told.agent} reads the event {when}.")
    show_text(said.why(view, reader)[1])
    if not live:
        typer.echo(STORED_ONLY, err=True)
