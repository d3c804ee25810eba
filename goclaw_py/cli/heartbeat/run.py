"""``goclaw heartbeat run``: a beat by hand, and what came of it (SPEC HB-11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from goclaw_py.cli.context import AsJson, cli
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.heartbeat import texts as words
from goclaw_py.cli.heartbeat.texts import AgentArgument
from goclaw_py.cli.output import plain, show_json

if TYPE_CHECKING:
    from goclaw_py.heartbeat.models import Beat, Heartbeat
    from goclaw_py.heartbeat.views import Rehearsal
    from goclaw_py.ports.control import Control
    from goclaw_py.ports.heartbeat import BeatBegun, HeartbeatDesk, NoBeat

_LOOK_EVERY_S = 0.5
_DELIVERY_S = 10.0
"""How long an alert may take on its way before it is shown as not sent yet."""

_FINE = ("ok", "alerted", "duplicate", "skipped:no_file", "skipped:empty", "skipped:nothing_due")
"""What a beat may come to that does what it should."""

_SPEAKS = ("alerted", "duplicate", "no_route", "failed", "delivery_failed")
"""What a beat may come to that has, or may have, something to say."""

_REFUSED = {
    "already_running": "its heart beats already",
    "off": "no gateway is running here",
}


def run(
    ctx: typer.Context,
    agent: AgentArgument = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would happen; no model is asked.")
    ] = False,
    wait: Annotated[float, typer.Option(min=0, max=86_400, help="For how many seconds.")] = 120,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Only begin; print its id.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let a heart beat now, wait for the end, and say what came of it.

    Neither the interval nor quiet hours count; what its beats may use on a day does.
    """
    if dry_run:
        _rehearse(ctx, agent, as_json=as_json)
        return
    patience = 0.0 if no_wait else wait

    async def ask(control: Control) -> _Ran:
        desk = control.heartbeats
        name = await words.chosen(desk, agent)
        begun = await desk.run_now(name)
        beat = await _ended(desk, begun, patience)
        return _Ran(begun, beat, (await desk.view(name)).heartbeat if _is_off(beat) else None)

    _say(cli(ctx).ask(ask), waited=not no_wait, as_json=as_json)


# ---------------------------------------------------------------------------- rehearsal


def _rehearse(ctx: typer.Context, agent: str | None, *, as_json: bool) -> None:
    async def ask(control: Control) -> tuple[Rehearsal, Heartbeat]:
        desk = control.heartbeats
        name = await words.chosen(desk, agent)
        return await desk.rehearse(name), (await desk.view(name)).heartbeat

    found, heartbeat = cli(ctx).ask(ask)
    if as_json:
        from goclaw_py.heartbeat.views import Rehearsal  # noqa: PLC0415

        show_json(Rehearsal, found)
        return
    from goclaw_py.heartbeat.status_texts import rehearsal_lines  # noqa: PLC0415

    for line in rehearsal_lines(found, heartbeat):
        typer.echo(plain(line))


# ---------------------------------------------------------------------------- a beat


@dataclass(frozen=True, slots=True)
class _Ran:
    """How a beat by hand began, and as what it was seen last.

    ``heartbeat``: as it stands, if the beat was skipped because it is off.
    """

    begun: BeatBegun | NoBeat
    beat: Beat | None
    heartbeat: Heartbeat | None


async def _ended(desk: HeartbeatDesk, begun: BeatBegun | NoBeat, patience: float) -> Beat | None:
    """Look at a beat until it has ended and its alert is sent, or patience is over."""
    from goclaw_py.ports.heartbeat import BeatBegun  # noqa: PLC0415

    if not isinstance(begun, BeatBegun) or not patience:
        return None
    import asyncio  # noqa: PLC0415  (not needed for --help)

    clock = asyncio.get_running_loop().time
    give_up_at = clock() + patience
    found = await desk.beat(begun.beat)
    while found is not None and _goes_on(found) and clock() < give_up_at:
        if not _is_open(found):
            give_up_at = min(give_up_at, clock() + _DELIVERY_S)
        await asyncio.sleep(min(_LOOK_EVERY_S, max(0.0, give_up_at - clock())))
        found = await desk.beat(begun.beat)
    return found


def _is_off(beat: Beat | None) -> bool:
    from goclaw_py.heartbeat.models import Skip  # noqa: PLC0415

    return beat is not None and beat.skip is Skip.DISABLED


def _is_open(beat: Beat) -> bool:
    from goclaw_py.heartbeat.models import OPEN  # noqa: PLC0415

    return beat.status in OPEN


def _goes_on(beat: Beat) -> bool:
    return _is_open(beat) or beat.delivery == "pending"


def _say(ran: _Ran, *, waited: bool, as_json: bool) -> None:
    from goclaw_py.ports.heartbeat import BeatBegun  # noqa: PLC0415

    begun, beat = ran.begun, ran.beat
    if not isinstance(begun, BeatBegun):
        _refuse(begun, as_json=as_json)
    elif beat is None:
        if as_json:
            show_json(dict[str, str], {"status": "running", "beat": begun.beat})
        else:
            typer.echo(begun.beat)
        if waited:
            typer.echo("goclaw: nothing is known of this beat any more", err=True)
            raise typer.Exit(ExitCode.FAILED)
    else:
        _say_beat(beat, ran.heartbeat, as_json=as_json)


def _refuse(refused: NoBeat, *, as_json: bool) -> None:
    if as_json:
        show_json(dict[str, str], {"status": refused.value})
    typer.echo(f"goclaw: {_REFUSED[refused.value]}", err=True)
    is_off = refused.value == "off"
    raise typer.Exit(ExitCode.UNREACHABLE if is_off else ExitCode.FAILED)


def _say_beat(beat: Beat, heartbeat: Heartbeat | None, *, as_json: bool) -> None:
    from goclaw_py.heartbeat.models import Beat  # noqa: PLC0415
    from goclaw_py.heartbeat.status_texts import advice, outcome_words  # noqa: PLC0415

    outcome = words.outcome(beat)
    if as_json:
        show_json(Beat, beat)
    else:
        facts = ", ".join(filter(None, [words.took(beat), words.cost(beat.usage)]))
        typer.echo(plain(f"{outcome}{f' ({facts})' if facts else ''}: {outcome_words(beat)}"))
        if todo := advice(beat, heartbeat):
            typer.echo(todo)
        if beat.status in _SPEAKS and (said := words.said(beat)):
            typer.echo("It said:")
            typer.echo(plain(said))
    if _is_open(beat):
        typer.echo(f"goclaw: it is not over yet; see: goclaw heartbeat logs {beat.agent}", err=True)
    if outcome not in _FINE:
        raise typer.Exit(ExitCode.FAILED)
