"""A forecast in words and numbers, for the terminal and for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goclaw_py.cli.output import duration

if TYPE_CHECKING:
    from goclaw_py.app.simulation import Forecast, Foreseen


def row(one: Foreseen) -> tuple[str, ...]:
    """Slug, state, runs, coalesced, skipped, model calls, cost, and how late a run began."""
    skipped = ", ".join(f"{count} {why.value}" for why, count in sorted(one.skipped.items()))
    return (
        one.job.spec.slug,
        one.job.state.value,
        str(one.runs),
        str(one.coalesced),
        skipped,
        str(one.model_calls),
        "" if one.usd is None else f"{one.usd:.2f}",
        f"+{duration(max(one.waited_s, 0.0))}" if one.runs else "",
    )


def total(found: Forecast) -> str:
    """What all jobs together ask of models."""
    calls = sum(one.model_calls for one in found.jobs)
    costs = [one.usd for one in found.jobs if one.usd is not None]
    cost = f", about {sum(costs):.2f} USD as far as costs are known" if costs else ""
    return f"{calls} model call{'' if calls == 1 else 's'}{cost}"
