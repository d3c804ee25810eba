"""A forecast as text, for the terminal and for the HTML page."""

from __future__ import annotations

from decimal import Decimal

from goclaw_py.core.outcomes import outcome_text
from goclaw_py.core.text import count, usd
from goclaw_py.core.time.texts import duration
from goclaw_py.schedule.forecast_models import Forecast, ForecastHeartbeats, ForecastJob, Totals


def row(one: ForecastJob) -> tuple[str, ...]:
    """Return slug, state, runs, coalesced, skipped, model requests, cost and longest delay."""
    return (
        one.job.spec.slug,
        one.job.state.value,
        str(one.runs),
        str(one.coalesced),
        _skipped(one),
        str(one.model_calls),
        _usd(one),
        f"+{duration(max(one.waited_s, 0.0))}" if one.runs else "",
    )


def heartbeat_runs_row(one: ForecastHeartbeats) -> tuple[str, ...]:
    """Return agent, heartbeat runs, model requests, skipped and cost."""
    heartbeat_runs = str(one.heartbeat_runs) if one.is_on or one.heartbeat_runs else "off"
    failed = f" ({one.failed} failed)" if one.failed else ""
    return (
        one.agent,
        heartbeat_runs + failed,
        str(one.model_calls),
        _skipped(one),
        _usd(one),
    )


def _skipped(one: Totals) -> str:
    return ", ".join(f"{number} {outcome_text(why)}" for why, number in sorted(one.skipped.items()))


def _usd(one: Totals) -> str:
    return "" if one.usd is None else usd(one.usd, sign="")


def heart_name(one: ForecastHeartbeats) -> str:
    """Return the name of a heartbeat in a list with jobs."""
    return f"heartbeat {one.agent}"


def total(found: Forecast) -> str:
    """Return the model requests and cost of all jobs and heartbeats together."""
    every: list[Totals] = [*found.jobs, *found.heartbeats]
    requests = sum(one.model_calls for one in every)
    costs = [one.usd for one in every if one.usd is not None]
    cost = f", about {usd(sum(costs, Decimal()))} where costs are known" if costs else ""
    return f"{count(requests, 'model request')}{cost}"


def reach(found: Forecast) -> str:
    """Return how many runs there were when the simulation stopped at its limit."""
    runs = f"{len(found.events)} job runs" if found.events else ""
    heartbeat_runs = f"{len(found.heartbeat_runs)} heartbeat runs" if found.heartbeat_runs else ""
    return " and ".join(filter(None, (runs, heartbeat_runs)))
