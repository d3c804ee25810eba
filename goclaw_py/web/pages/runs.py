"""The page of all runs: filters, which the address keeps, and counts of each outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from starlette.routing import Route

from goclaw_py.model.ids import AgentName, SessionKey
from goclaw_py.model.outcomes import Outcome, Trigger
from goclaw_py.ports.store import RunFilter
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query, place

SHOWN: Final = 50

RANGES: Final[Mapping[str, tuple[str, timedelta | None]]] = {
    "1h": ("in the last hour", timedelta(hours=1)),
    "24h": ("in the last 24 hours", timedelta(days=1)),
    "7d": ("in the last 7 days", timedelta(days=7)),
    "30d": ("in the last 30 days", timedelta(days=30)),
    "all": ("at any time", None),
}
"""How far back runs are listed, in words and as a time. Runs are kept for 90 days."""

RUNNING: Final = "running"
_FILTERS: Final = ("range", "agent", "trigger", "sender", "session")


def routes(service: PageServices) -> list[Route]:
    """Return the page."""
    control = service.control

    async def look(query: Query) -> Facts:
        show = query.get("show", "")
        only = _only(query, service.now())
        session = SessionKey(query["session"]) if "session" in query else None
        outcome = next((one for one in Outcome if one == show), None)
        before = place(query.get("before"))
        counts, found = await asyncio.gather(
            control.run_counts(only, session=session),
            control.runs(
                limit=SHOWN + 1,
                session=session,
                active=show == RUNNING,
                only=replace(only, outcome=outcome),
                before=before,
            ),
        )
        runs = found[:SHOWN]
        return {
            "runs": runs,
            "next": runs[-1].cursor if len(found) > SHOWN else None,
            "show": show if outcome or show == RUNNING else "",
            "tabs": _tabs(counts),
            "filters": {name: query[name] for name in _FILTERS if name in query},
            "ranges": RANGES,
            "triggers": tuple(Trigger),
            "agents": control.heartbeats.agents,
            "named": {
                *(run.session for run in runs),
                *(run.sender for run in runs if run.sender),
                *(query[name] for name in ("sender", "session") if name in query),
            },
        }

    params = ("show", "before", *_FILTERS)
    return service.routes(Page("/runs", "runs", "Runs", look, params, 2.0, keeps=True))


def _only(query: Query, now: datetime) -> RunFilter:
    _, back = RANGES.get(query.get("range", ""), RANGES["24h"])
    return RunFilter(
        AgentName(query["agent"]) if "agent" in query else None,
        next((one for one in Trigger if one == query.get("trigger")), None),
        sender=query.get("sender"),
        since=None if back is None else now.replace(microsecond=0) - back,
    )


def _tabs(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the states with their counts: all, running, completed, and others that occur."""
    always = (RUNNING, Outcome.COMPLETED.value, Outcome.FAILED.value)
    others = [one.value for one in Outcome if one.value not in always and counts.get(one.value)]
    listed = [(state, counts.get(state, 0)) for state in (*always, *others)]
    return [("", sum(counts.values())), *listed]
