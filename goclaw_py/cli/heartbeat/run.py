"""``goclaw heartbeat run``: run a heartbeat now and show its result (SPEC HB-11)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated

import typer

from goclaw_py.cli.context import AsJson, cli
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.heartbeat import texts as words
from goclaw_py.cli.heartbeat.texts import AgentArgument
from goclaw_py.cli.output import plain, show_json
from goclaw_py.heartbeat.models import OPEN, Heartbeat, HeartbeatRun, Skip
from goclaw_py.heartbeat.status_texts import advice, outcome_words, rehearsal_lines
from goclaw_py.heartbeat.views import DryRunReport
from goclaw_py.ports.control import Control
from goclaw_py.ports.heartbeat import HeartbeatService, HeartbeatStarted, NoHeartbeat

_LOOK_EVERY_S = 0.5
_DELIVERY_S = 10.0
"""How long to wait for the delivery of an alert before it is shown as not sent yet."""

_FINE = ("ok", "alerted", "duplicate", "skipped:no_file", "skipped:empty", "skipped:nothing_due")
"""Outcomes of a heartbeat run that are not failures."""

_SPEAKS = ("alerted", "duplicate", "no_route", "failed", "delivery_failed")
"""Outcomes of a heartbeat run that may have a reply to show."""

_REFUSED = {
    "already_running": "a heartbeat run is already in progress",
    "off": "no gateway is running here",
}


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
    """Run a heartbeat now, wait for it and show the result.

    Ignores the interval, mute and quiet hours, but not the daily budget.
    """
    if dry_run:
        _rehearse(ctx, agent, as_json=as_json)
        return
    patience = 0.0 if no_wait else wait

    async def ask(control: Control) -> _Ran:
        service = control.heartbeats
        name = await words.chosen(service, agent)
        begun = await service.run_now(name)
        beat = await _ended(service, begun, patience)
        return _Ran(begun, beat, (await service.view(name)).heartbeat if _is_off(beat) else None)

    _say(cli(ctx).ask(ask), waited=not no_wait, as_json=as_json)


# ---------------------------------------------------------------------------- rehearsal


def _rehearse(ctx: typer.Context, agent: str | None, *, as_json: bool) -> None:
    async def ask(control: Control) -> tuple[DryRunReport, Heartbeat]:
        service = control.heartbeats
        name = await words.chosen(service, agent)
        return await service.rehearse(name), (await service.view(name)).heartbeat

    found, heartbeat = cli(ctx).ask(ask)
    if as_json:
        show_json(DryRunReport, found)
        return

    for line in rehearsal_lines(found, heartbeat):
        typer.echo(plain(line))


# ---------------------------------------------------------------------------- a beat


@dataclass(frozen=True, slots=True)
class _Ran:
    """How a manual heartbeat run began, and its last known state.

    ``heartbeat`` is set if the run was skipped because the heartbeat is off.
    """

    begun: HeartbeatStarted | NoHeartbeat
    beat: HeartbeatRun | None
    heartbeat: Heartbeat | None


async def _ended(
    service: HeartbeatService, begun: HeartbeatStarted | NoHeartbeat, patience: float
) -> HeartbeatRun | None:
    """Poll a heartbeat run until it has ended and its alert is sent, or time is up."""
    if not isinstance(begun, HeartbeatStarted) or not patience:
        return None

    clock = asyncio.get_running_loop().time
    give_up_at = clock() + patience
    found = await service.beat(begun.beat)
    while found is not None and _goes_on(found) and clock() < give_up_at:
        if not _is_open(found):
            give_up_at = min(give_up_at, clock() + _DELIVERY_S)
        await asyncio.sleep(min(_LOOK_EVERY_S, max(0.0, give_up_at - clock())))
        found = await service.beat(begun.beat)
    return found


def _is_off(beat: HeartbeatRun | None) -> bool:

    return beat is not None and beat.skip is Skip.DISABLED


def _is_open(beat: HeartbeatRun) -> bool:

    return beat.status in OPEN


def _goes_on(beat: HeartbeatRun) -> bool:
    return _is_open(beat) or beat.delivery == "pending"


def _say(ran: _Ran, *, waited: bool, as_json: bool) -> None:

    begun, beat = ran.begun, ran.beat
    if not isinstance(begun, HeartbeatStarted):
        _refuse(begun, as_json=as_json)
    elif beat is None:
        if as_json:
            show_json(dict[str, str], {"status": "running", "beat": begun.beat})
        else:
            typer.echo(begun.beat)
        if waited:
            typer.echo("goclaw: this heartbeat run is no longer stored", err=True)
            raise typer.Exit(ExitCode.FAILED)
    else:
        _say_beat(beat, ran.heartbeat, as_json=as_json)


def _refuse(refused: NoHeartbeat, *, as_json: bool) -> None:
    if as_json:
        show_json(dict[str, str], {"status": refused.value})
    typer.echo(f"goclaw: {_REFUSED[refused.value]}", err=True)
    is_off = refused.value == "off"
    raise typer.Exit(ExitCode.UNREACHABLE if is_off else ExitCode.FAILED)


def _say_beat(beat: HeartbeatRun, heartbeat: Heartbeat | None, *, as_json: bool) -> None:

    outcome = words.outcome(beat)
    if as_json:
        show_json(HeartbeatRun, beat)
    else:
        facts = ", ".join(filter(None, [words.took(beat), words.cost(beat.usage)]))
        typer.echo(plain(f"{outcome}{f' ({facts})' if facts else ''}: {outcome_words(beat)}"))
        if todo := advice(beat, heartbeat):
            typer.echo(todo)
        if beat.status in _SPEAKS and (said := words.said(beat)):
            typer.echo("Reply:")
            typer.echo(plain(said))
    if _is_open(beat):
        typer.echo(f"goclaw: still in progress; see: goclaw heartbeat logs {beat.agent}", err=True)
    if outcome not in _FINE:
        raise typer.Exit(ExitCode.FAILED)
