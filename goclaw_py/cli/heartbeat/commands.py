"""``goclaw heartbeat`` and ``goclaw event``: periodic agent runs (SPEC OPS-1, section 7)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from goclaw_py.cli.context import AsJson, cli, is_live
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.heartbeat import run, show
from goclaw_py.cli.heartbeat import texts as words
from goclaw_py.cli.heartbeat.texts import AgentArgument, AgentOption
from goclaw_py.cli.messages import display
from goclaw_py.cli.output import plain, show_json
from goclaw_py.heartbeat import status_texts as said
from goclaw_py.heartbeat.checklist.checklist import Checklist, Item
from goclaw_py.heartbeat.checklist.items import as_item, open_item
from goclaw_py.heartbeat.models import HeartbeatEvent
from goclaw_py.heartbeat.mute import mute_end
from goclaw_py.heartbeat.status_texts import BY_SETTINGS
from goclaw_py.heartbeat.views import HeartbeatView
from goclaw_py.model.ids import AgentName
from goclaw_py.ports.control import Control
from goclaw_py.ports.heartbeat import HeartbeatService

app = typer.Typer(help="Manage heartbeats (periodic agent runs).", no_args_is_help=True)

app.command("status")(show.status)
app.command("why")(show.why)
app.command("logs")(show.logs)
app.command("run")(run.run)


# ---------------------------------------------------------------------------- on, off, mute

_Change = Callable[["HeartbeatService", "AgentName"], Awaitable["HeartbeatView"]]


@app.command()
def on(ctx: typer.Context, agent: AgentArgument = None, *, as_json: AsJson = False) -> None:
    """Turn the heartbeat on."""
    view = _change(ctx, agent, lambda service, name: service.switch(name, on=True), as_json=as_json)
    if not view.heartbeat.is_on:
        typer.echo(f"goclaw: {BY_SETTINGS}", err=True)
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
            metavar="DURATION", help="30m, 1h30m, 2 hours, until 18:00, or off to unmute."
        ),
    ],
    agent: AgentOption = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Mute the heartbeat for a while. Its runs are skipped until then."""
    text = " ".join(when)

    async def change(service: HeartbeatService, name: AgentName) -> HeartbeatView:

        view = await service.view(name)
        until = mute_end(text, asked_at=view.now, zone=view.policy.zone)
        return await service.mute(name, until)

    _change(ctx, agent, change, as_json=as_json)


def _change(
    ctx: typer.Context, agent: str | None, change: _Change, *, as_json: bool
) -> HeartbeatView:
    async def ask(control: Control) -> tuple[HeartbeatView, bool]:
        service = control.heartbeats
        view = await change(service, await words.chosen(service, agent))
        return view, await is_live(control)

    view, live = cli(ctx).ask(ask, create=True)
    if as_json:
        from goclaw_py.web.api.heartbeat_json import HeartbeatAnswer, answer_of  # noqa: PLC0415

        show_json(HeartbeatAnswer, answer_of(view))
        return view

    typer.echo(plain(f"{view.heartbeat.agent}: {said.state_words(view)}"))
    typer.echo(plain(said.why(view)[1]))
    if not live:
        typer.echo(words.NO_GATEWAY, err=True)
    return view


# ---------------------------------------------------------------------------- the checklist

app.command("show")(show.show)


@app.command()
def add(
    ctx: typer.Context,
    text: Annotated[list[str], typer.Argument(metavar="TEXT", help="Text of the item.")],
    agent: AgentOption = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Add an item to HEARTBEAT.md. Example of TEXT: every 2h: is the build green?"""

    async def ask(control: Control) -> tuple[Checklist, Item | None]:

        service, given = control.heartbeats, words.text_of(text)
        name = await words.chosen(service, agent)
        there = await service.checklist(name)
        if (same := open_item(there, as_item(given))) is not None:
            return there, same
        return await service.add_item(name, given), None

    found, same = cli(ctx).ask(ask, create=True)
    if same is not None:
        _tell(f"item {same.number} already exists: {display.cell(same.text)}", as_json=as_json)
    show.show_checklist(found, as_json=as_json)


@app.command()
def done(
    ctx: typer.Context,
    number: Annotated[
        int, typer.Argument(min=1, max=100_000, metavar="N", help="Number of the item.")
    ],
    agent: AgentOption = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Mark an item of HEARTBEAT.md as done.

    N is its number in goclaw heartbeat show.
    """

    async def ask(control: Control) -> tuple[Checklist, str]:
        service = control.heartbeats
        name = await words.chosen(service, agent)
        before = await service.checklist(name)
        after = await service.complete_item(name, number, expected=before.version)
        ticked = [item.text for item in before.items if item.number == number]
        return after, ticked[0] if ticked else f"item {number}"

    found, ticked = cli(ctx).ask(ask)
    _tell(f"done: {display.cell(ticked)}", as_json=as_json)
    show.show_checklist(found, as_json=as_json)


def _tell(line: str, *, as_json: bool) -> None:
    """Print a line before a list; with ``--json`` on standard error."""
    typer.echo(plain(line), err=as_json)


# ---------------------------------------------------------------------------- events

app.command("events")(show.events)


def event(
    ctx: typer.Context,
    text: Annotated[list[str], typer.Argument(metavar="TEXT", help="Text of the event.")],
    agent: AgentOption = None,
    *,
    now: Annotated[bool, typer.Option("--now", help="Run a heartbeat now.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send an event to an agent. The agent reads it in its next heartbeat run."""

    async def ask(control: Control) -> tuple[HeartbeatEvent, HeartbeatView, bool]:
        service = control.heartbeats
        name = await words.chosen(service, agent)
        told = await service.add_event(name, words.text_of(text), wake=now)
        return told, await service.view(name), await is_live(control)

    told, view, live = cli(ctx).ask(ask, create=True)
    if as_json:
        show_json(HeartbeatEvent, told)
        return

    when = "now, in a heartbeat run" if now else "in its next heartbeat run"
    typer.echo(plain(f"{told.agent} reads the event {when}."))
    typer.echo(plain(said.why(view)[1]))
    if not live:
        typer.echo(words.NO_GATEWAY, err=True)
