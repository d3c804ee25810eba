"""``goclaw simulate``: forecast runs of jobs and heartbeats (SPEC OPS-6)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goclaw_py.app.progress import ProgressStep
from goclaw_py.cli.context import AsJson, cli, with_options, with_wide
from goclaw_py.cli.output import Column, clock, one_line, refuse_existing, show_json, show_table
from goclaw_py.cli.progress import progress
from goclaw_py.cli.simulate.texts import heart_name, heartbeat_runs_row, reach, row, total
from goclaw_py.core.text import count
from goclaw_py.core.time.texts import duration

if TYPE_CHECKING:
    from goclaw_py.schedule.forecast_models import Forecast, ForecastHeartbeats, ForecastJob, Totals

_JOBS = (
    *("JOB", Column("STATE", drop=4, state=True), "RUNS", Column("COALESCED", drop=2)),
    *(Column("SKIPPED", drop=1, least=16), Column("MODEL REQUESTS", drop=3), "USD"),
    "LONGEST DELAY",
)
_HEARTBEATS = ("AGENT", "HEARTBEAT RUNS", "MODEL REQUESTS", Column("SKIPPED", least=16), "USD")
_BARS = "▁▂▃▄▅▆▇█"
_WIDEST = 60
_FEW_DAYS = 3
"""Up to this many days, progress is shown in hours."""


def _finite(value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter("must be a number")
    return value


Seconds = Annotated[
    float,
    typer.Option(
        min=0,
        max=86_400,
        callback=_finite,
        help="Duration of a run, where no past run is stored.",
    ),
]


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """The options of ``goclaw simulate``."""

    days: Annotated[int, typer.Option(min=1, max=3660, help="Days to simulate.")] = 30
    seconds: Seconds = 20.0
    usd: Annotated[
        float | None,
        typer.Option(
            min=0, max=10_000, callback=_finite, help="Cost of such a run (default: unknown)."
        ),
    ] = None
    limit: Annotated[
        int, typer.Option(min=1, max=100_000, help="Jobs to show: those that run most often.")
    ] = 30
    html: Annotated[
        Path | None,
        typer.Option(help="Also write an HTML page with a plot to this file.", dir_okay=False),
    ] = None
    as_json: AsJson = False


@with_wide
@with_options(SimulateOptions)
def simulate(ctx: typer.Context, wanted: SimulateOptions) -> None:
    """Forecast runs of jobs and heartbeats, and their cost.

    Simulates them on a virtual clock and shows how often and how late they run. Nothing is sent
    or stored. Duration and cost of a run are the averages of the last 30 days.
    """
    from goclaw_py.app.gateway_config import forecast_rules  # noqa: PLC0415
    from goclaw_py.cli.simulate.known import Guess, known  # noqa: PLC0415
    from goclaw_py.schedule.forecast import forecast  # noqa: PLC0415

    if wanted.html is not None:
        refuse_existing(wanted.html)
    guess = Guess(wanted.seconds, None if wanted.usd is None else Decimal(str(wanted.usd)))
    settings = cli(ctx).settings_in_effect()
    at_first = cli(ctx).ask(lambda control: known(control, settings, guess))
    since, rules = at_first.now.replace(microsecond=0), forecast_rules(settings)
    with progress("simulating") as on_progress:

        def on_hours(hours: int) -> None:
            on_progress(_step(hours, wanted.days))

        found = forecast(rules, at_first.given, since=since, days=wanted.days, on_progress=on_hours)
    if wanted.html is not None:
        from goclaw_py.cli.simulate.page import page  # noqa: PLC0415

        wanted.html.write_text(page(found), encoding="utf-8")
    if wanted.as_json:
        show_json(dict[str, object], _document(found))
        return
    _show(found, wanted.limit)
    if wanted.html is not None:
        typer.echo(f"wrote {wanted.html}", err=True)


def _step(hours: int, days: int) -> ProgressStep:
    if days <= _FEW_DAYS:
        return ProgressStep("simulating", hours, 24 * days, "hours")
    return ProgressStep("simulating", hours // 24, days, "days")


def _show(found: Forecast, limit: int) -> None:
    shown, left_out = replace(found, jobs=found.jobs[:limit]), len(found.jobs) - limit
    show_table(_JOBS, [row(one) for one in shown.jobs], empty="no jobs")
    if left_out > 0:
        typer.echo(f"… and {count(left_out, 'job')} that run more seldom; to show them: --limit")
    if found.heartbeats:
        typer.echo("")
        show_table(_HEARTBEATS, [heartbeat_runs_row(one) for one in found.heartbeats], empty="")
    if not found.jobs and not found.heartbeats:
        return
    typer.echo("")
    typer.echo(f"{clock(found.since)} to {clock(found.until)}: {total(found)}")
    if found.cut:
        typer.echo(f"stopped at the limit of the simulation, after {reach(found)}", err=True)
    if lines := plot(shown):
        typer.echo("")
        for line in lines:
            typer.echo(line)


def plot(found: Forecast) -> list[str]:
    """Plot runs over time as bars: one line per job or heartbeat, all on the same scale.

    Skipped heartbeat runs are not counted.
    """
    lanes = _lanes(found)
    if not lanes:
        return []
    span = (found.until - found.since).total_seconds() or 1.0
    width = max(1, min(_WIDEST, round(span / 3600)))
    counts = [[0] * width for _ in lanes]
    for (_, starts), line in zip(lanes, counts, strict=True):
        for at in starts:
            place = int((at - found.since).total_seconds() / span * width)
            line[min(max(place, 0), width - 1)] += 1
    most = max(max(line) for line in counts)
    names = [one_line(name, 24) for name, _ in lanes]
    column = max(map(len, names))
    lines = [
        f"{name:<{column}}  {''.join(_bar(number, most) for number in line)}"
        for name, line in zip(names, counts, strict=True)
    ]
    step = duration(span / width)
    return [*lines, f"one character = {step}; highest bar = {count(most, 'run')}"]


def _lanes(found: Forecast) -> list[tuple[str, list[datetime]]]:
    """Return the jobs and heartbeats that ran, with the start times of their runs."""
    jobs: dict[str, list[datetime]] = {one.job.id: [] for one in found.jobs}
    for event in found.events:
        if event.job in jobs and event.started_at is not None:
            jobs[event.job].append(event.started_at)
    hearts: dict[str, list[datetime]] = {one.agent: [] for one in found.heartbeats}
    for heartbeat_run in found.heartbeat_runs:
        if heartbeat_run.started_at is not None:
            hearts[heartbeat_run.agent].append(heartbeat_run.started_at)
    lanes = [(one.job.spec.slug, jobs[one.job.id]) for one in found.jobs if one.runs]
    lanes += [(heart_name(one), hearts[one.agent]) for one in found.heartbeats]
    return [(name, starts) for name, starts in lanes if starts]


def _bar(number: int, most: int) -> str:
    if not number:
        return "·"
    return _BARS[max(0, -(-number * len(_BARS) // most) - 1)]


def _document(found: Forecast) -> dict[str, object]:
    return {
        "since": found.since.isoformat(),
        "until": found.until.isoformat(),
        "cut": found.cut,
        "jobs": [_job(one) for one in found.jobs],
        "heartbeats": [_heartbeat(one) for one in found.heartbeats],
    }


def _job(one: ForecastJob) -> dict[str, object]:
    return {
        "id": one.job.id,
        "slug": one.job.spec.slug,
        "state": one.job.state.value,
        "runs": one.runs,
        "coalesced": one.coalesced,
        **_totals(one),
    }


def _heartbeat(one: ForecastHeartbeats) -> dict[str, object]:
    facts = {
        "agent": one.agent,
        "on": one.is_on,
        "heartbeat_runs": one.heartbeat_runs,
        "failed": one.failed,
    }
    return facts | _totals(one)


def _totals(one: Totals) -> dict[str, object]:
    return {
        "skipped": {why.value: count for why, count in one.skipped.items()},
        "model_calls": one.model_calls,
        "usd": None if one.usd is None else f"{one.usd:.6f}",
        "worked_s": round(one.worked_s, 3),
        "waited_s": round(one.waited_s, 3),
    }
