"""The page of all runs: filters, which the address keeps, and counts of each outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from starlette.routing import Route

from goclaw_py.core.display_names import sender_words
from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.records import MOST_RUNS_COUNTED, RunFilter
from goclaw_py.web.pages.filters import ListFilters, Tab, given, one_of, params_of, time_range
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query, place

SHOWN: Final = 50
RUNNING: Final = "running"
_ALWAYS: Final = (RUNNING, Outcome.COMPLETED.value, Outcome.FAILED.value)
_STATES: Final = ("", *_ALWAYS, *(one.value for one in Outcome if one.value not in _ALWAYS))


def routes(service: PageServices) -> list[Route]:
    """Return the page."""
    control = service.control

    async def look(query: Query) -> Facts:
        fields = (
            time_range("Started"),
            one_of("agent", "Agent", control.heartbeats.agents),
            one_of("trigger", "Trigger", Trigger),
            *given(query, "sender", "Sender", sender_words(query.get("sender", ""))),
            *given(query, "session", "Session"),
        )
        filters = ListFilters("/runs", "runs", query, fields, _STATES)
        values, show = filters.values, filters.show
        session = SessionKey(values["session"]) if "session" in values else None
        only = replace(run_filter(values), since=filters.since(service.now()))
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
            "filters": replace(filters, tabs=_tabs(counts)),
            "most": MOST_RUNS_COUNTED,
            "named": {
                *(run.session for run in runs),
                *(run.sender for run in runs if run.sender),
                *(values[name] for name in ("sender", "session") if name in values),
            },
        }

    params = params_of("range", "agent", "trigger", "sender", "session")
    return service.routes(Page("/runs", "runs", "Runs", look, params, 2.0, keeps=True))


def run_filter(values: Mapping[str, str]) -> RunFilter:
    """Return the filter of a page about runs, from the values of its fields."""
    return RunFilter(
        AgentName(values["agent"]) if values["agent"] else None,
        Trigger(values["trigger"]) if values["trigger"] else None,
        sender=values.get("sender"),
    )


def _tabs(counts: Mapping[str, int]) -> tuple[Tab, ...]:
    """Return the states with their counts: all, running, completed, and others that occur."""
    ended = sum(counts.values()) - counts.get(RUNNING, 0)
    more = ended >= MOST_RUNS_COUNTED
    listed = [one for one in _STATES if one in ("", *_ALWAYS) or counts.get(one)]
    return tuple(
        Tab(one, counts.get(one, 0) if one else sum(counts.values()), more and one != RUNNING)
        for one in listed
    )
