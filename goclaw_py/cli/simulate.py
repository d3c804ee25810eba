"""``goclaw simulate``: what jobs will do in the days to come (SPEC OPS-6)."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goclaw_py.cli.context import AsJson, cli
from goclaw_py.cli.output import clock, duration, one_line, show_json, show_table
from goclaw_py.cli.simulate_words import row, total
from goclaw_py.core.errors import UnknownJob

if TYPE_CHECKING:
    from goclaw_py.app.simulation import Assumed, Forecast
    from goclaw_py.core.ids import JobId
    from goclaw_py.core.jobs import Job
    from goclaw_py.ports.control import Control
    from goclaw_py.ports.jobs import JobDesk

_PAST = timedelta(days=30)
_MOST_JOBS = 1000
_BARS = "▁▂▃▄▅▆▇█"
_WIDEST = 60


def _finite(value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter("must be a number")
    return value


def simulate(
    ctx: typer.Context,
    *,
    days: Annotated[int, typer.Option(min=1, max=3660, help="How many days from now on.")] = 30,
    seconds: Annotated[
        float,
        typer.Option(
            min=0,
            max=86_400,
            callback=_finite,
            help="How long a run takes of a job of which none is known.",
        ),
    ] = 20.0,
    usd: Annotated[
        float | None,
        typer.Option(min=0, max=10_000, callback=_finite, help="What such a run costs."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a page with a plot here.", dir_okay=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let the jobs run on a virtual clock: how often, how late, what is skipped, what it costs.

    Nothing is sent or stored. Each run takes and costs what those of the last 30 days did.
    """
    from goclaw_py.cli import composition  # noqa: PLC0415

    bare = None if usd is None else Decimal(str(usd))
    jobs, assumed, now = cli(ctx).ask(lambda control: _known(control, seconds, bare))
    found = composition.simulate(
        cli(ctx).settings(), jobs, assumed, since=now.replace(microsecond=0), days=days
    )
    if html is not None:
        from goclaw_py.cli.simulate_page import page  # noqa: PLC0415

        html.write_text(page(found), encoding="utf-8")
    if as_json:
        show_json(dict[str, object], _document(found))
        return
    _show(found)
    if html is not None:
        typer.echo(f"written to {html}", err=True)


async def _known(
    control: Control, seconds: float, usd: Decimal | None
) -> tuple[list[Job], dict[JobId, Assumed], datetime]:
    """The jobs, and what their runs took so far."""
    from goclaw_py.ports.jobs import Asker  # noqa: PLC0415
    from goclaw_py.ports.store import JobQuery  # noqa: PLC0415

    desk, by = control.jobs, Asker(owner=None)
    page = await desk.search(JobQuery(limit=_MOST_JOBS), by)
    assumed = {job.id: await _taken(desk, job, seconds, usd) for job in page.jobs}
    if page.total > len(page.jobs):
        typer.echo(f"only {len(page.jobs)} of {page.total} jobs are looked at", err=True)
    if not desk.enabled:
        typer.echo("jobs are switched off here; this is what they would do", err=True)
    return list(page.jobs), assumed, desk.now()


async def _taken(desk: JobDesk, job: Job, seconds: float, usd: Decimal | None) -> Assumed:
    from goclaw_py.app.simulation import Assumed  # noqa: PLC0415
    from goclaw_py.ports.jobs import Asker  # noqa: PLC0415

    try:
        stats = await desk.stats(job.id, Asker(owner=None), since=desk.now() - _PAST)
    except UnknownJob:
        # Deleted a moment ago.
        return Assumed(seconds, usd)
    took = seconds if stats.mean_s is None else stats.mean_s
    cost = usd
    if stats.cost_usd is not None and stats.runs:
        cost = stats.cost_usd / stats.runs
    return Assumed(took, cost)


def _show(found: Forecast) -> None:
    rows = [row(one) for one in found.jobs]
    columns = ("JOB", "STATE", "RUNS", "COALESCED", "SKIPPED", "MODEL CALLS", "USD", "LATEST START")
    show_table(columns, rows, empty="no jobs")
    if not found.jobs:
        return
    typer.echo("")
    typer.echo(f"{clock(found.since)} to {clock(found.until)}: {total(found)}")
    if found.cut:
        typer.echo(f"it ends there, after {len(found.events)} runs", err=True)
    if found.events:
        typer.echo("")
        for line in plot(found):
            typer.echo(line)


def plot(found: Forecast) -> list[str]:
    """Runs over time as bars, a line for each job that ran, the same scale for all."""
    ran = [one for one in found.jobs if one.runs]
    if not ran:
        return []
    span = (found.until - found.since).total_seconds() or 1.0
    width = max(1, min(_WIDEST, round(span / 3600)))
    counts = {one.job.id: [0] * width for one in ran}
    for event in found.events:
        if event.started_at is not None and event.job in counts:
            place = int((event.started_at - found.since).total_seconds() / span * width)
            counts[event.job][min(max(place, 0), width - 1)] += 1
    most = max(max(line) for line in counts.values())
    names = [one_line(one.job.spec.slug, 24) for one in ran]
    column = max(map(len, names))
    lines = [
        f"{name:<{column}}  {''.join(_bar(count, most) for count in counts[one.job.id])}"
        for name, one in zip(names, ran, strict=True)
    ]
    step = duration(span / width)
    runs = "1 run" if most == 1 else f"{most} runs"
    return [*lines, f"each sign is {step}; the highest one is {runs}"]


def _bar(count: int, most: int) -> str:
    if not count:
        return "·"
    return _BARS[max(0, -(-count * len(_BARS) // most) - 1)]


def _document(found: Forecast) -> dict[str, object]:
    return {
        "since": found.since.isoformat(),
        "until": found.until.isoformat(),
        "cut": found.cut,
        "jobs": [
            {
                "id": one.job.id,
                "slug": one.job.spec.slug,
                "state": one.job.state.value,
                "runs": one.runs,
                "coalesced": one.coalesced,
                "skipped": {why.value: count for why, count in one.skipped.items()},
                "model_calls": one.model_calls,
                "usd": None if one.usd is None else f"{one.usd:.6f}",
                "worked_s": round(one.worked_s, 3),
                "waited_s": round(one.waited_s, 3),
            }
            for one in found.jobs
        ],
    }
