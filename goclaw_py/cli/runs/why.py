"""``goclaw why``: explain why something did or did not happen (SPEC OPS-4)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

import typer

from goclaw_py.cli import completion
from goclaw_py.cli.context import AsJson, Cli, cli, maybe_named
from goclaw_py.cli.output import Printer, clock, folded, plain
from goclaw_py.core.errors import SettingError, StoreUnavailable
from goclaw_py.core.time.clocks import SystemClock
from goclaw_py.core.time.machine_zone import machine_zone
from goclaw_py.operations.explanation import Cure, Explanation, ExplanationStep

_OLDER = "migrations"
"""Id of the check that finds a database with an older schema."""


Thing = Annotated[
    str | None,
    typer.Argument(
        metavar="THING",
        callback=maybe_named,
        show_default=False,
        autocompletion=completion.sessions,
        help="A session, chat, person, message, delivery, run, job, agent or node (default: all "
        "problems).",
    ),
]


def why(ctx: typer.Context, thing: Thing = None, *, as_json: AsJson = False) -> None:
    """Explain why something did or did not happen, and what to do.

    THING is the name or id of anything: a part of a session key, telegram:123, the title of a
    chat, @username, telegram:123/45 or https://t.me/c/… for a message, the number of a delivery,
    message:7 for an incoming one, the id of a run, job or node, or the name of an agent (for its
    heartbeat). Without it, explains what is wrong now.
    """
    options = cli(ctx)
    found = _checked(options) if thing is None else _explanation(options, thing)
    Printer(Explanation, _show, as_json).print(found)


def _explanation(options: Cli, thing: str | None) -> Explanation:
    zone = machine_zone(os.environ)
    return options.ask(lambda control: control.why(thing, zone=zone))


def _checked(options: Cli) -> Explanation:
    """Return what is wrong now, according to the gateway and ``goclaw doctor``."""
    from goclaw_py.cli.doctor.checks import examine  # noqa: PLC0415

    # Pending migrations are only a hint for doctor, but until then the database cannot be asked.
    reports = [one for one in examine(options) if one.cure]
    wrong = [one for one in reports if one.level == "wrong" or one.id == _OLDER]
    steps = tuple(
        ExplanationStep(None, f"check.{one.id}", f"{one.subject}: {one.fact}") for one in wrong
    )
    cures = tuple(Cure(f"{one.subject}: {one.cure}") for one in wrong)

    from goclaw_py.gateway.why.gateway import GATEWAY  # noqa: PLC0415  (not needed for --help)

    found = Explanation(GATEWAY, SystemClock().now(), "", "")
    if not any(one.id == _OLDER for one in wrong):  # opening the database would migrate it
        try:
            found = _explanation(options, None)
        except (SettingError, StoreUnavailable):
            # Without settings or database only the checks can explain anything.
            if not wrong:
                raise
    if not wrong:
        return found
    first = wrong[0]
    answer = f"{first.subject}: {first.fact}."
    return replace(
        found,
        code=f"check.{first.id}",
        answer=answer[:1].upper() + answer[1:],
        chain=(*steps, *found.chain),
        cures=(*cures, *found.cures),
    )


def _show(found: Explanation) -> None:
    for start, words in explanation_parts(found):
        typer.echo("\n".join(folded(plain(words), plain(start))))


def explanation_parts(found: Explanation) -> Iterator[tuple[str, str]]:
    """Yield an explanation in lines: what is never folded, and the words that continue below it."""
    yield "", found.answer
    if found.chain:
        yield "", "\nWhat happened:"
        for number, step in enumerate(found.chain, 1):
            yield f"  {number}. {clock(step.at) or 'now'.ljust(19)}  ", step.words
    if found.cures:
        yield "", "\nWhat to do:"
        for cure in found.cures:
            yield "  - ", f"{cure.words}:" if cure.command else cure.words
            if cure.command:
                yield f"      {cure.command}", ""  # whole, so that it can be copied
