"""The first page: figures, what needs a person, lanes, and runs with buttons to stop them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.text import count
from goclaw_py.scheduler.operator_warnings import NAMED
from goclaw_py.scheduler.snapshots import in_line
from goclaw_py.scheduler.views import LaneView, RunView
from goclaw_py.web.pages.figures import RecentTotals, figures
from goclaw_py.web.pages.filters import (
    Field,
    ListFilters,
    back_to_rows,
    of_agent,
    page_number,
    params_of,
    query_of,
)
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query, back_to, form

SHOWN_SLOTS: Final = 40
"""A bar with more slots has this many pieces."""

SHOWN_RUNS: Final = 100

ALL: Final = "all"
"""In place of the id of a waiting run: all that match."""

_FILTERS: Final = ("agent", "search")

MANY: Final = 10
"""With more unfinished runs than this there are filters."""

SHOWN_REQUESTS: Final = 5
"""The number of approvals that are listed; their page has all."""


@dataclass(frozen=True, slots=True)
class LaneBar:
    """A lane as a bar of ``slots`` pieces of which ``taken`` are in use."""

    lane: LaneView
    slots: int
    taken: int


def routes(service: PageServices) -> list[Route]:
    """Return the first page, and its stop forms."""
    totals = RecentTotals(service)

    async def load(query: Query) -> Facts:
        # All that the page shows is of one instant.
        status = await service.control.lanes.status()
        filters = await _filters(service, query)
        runs = await _matching(service, status.runs, filters)
        working = [run for run in runs if run.waits_for is None]
        waiting = in_line(runs)
        # The last page, if runs have started meanwhile.
        number = min(page_number(query), max(1, -(-len(waiting) // SHOWN_RUNS)))
        all_waiting = in_line(status.runs)
        since = min((_since(status.now, run) for run in all_waiting), default=None)
        backlog = status.backlog
        known = None if backlog is None else await totals.get(backlog.approvals)
        approvals = known.approvals[:SHOWN_REQUESTS] if known else ()
        listed = "gateway.approvals" if approvals else ""
        return {
            "status": status,
            "figures": figures(status, all_waiting, since, known),
            "approvals": approvals,
            "applicants": known.applicants[:NAMED] if known else (),
            "more_approvals": len(known.approvals) - len(approvals) if known else 0,
            "more_applicants": max(0, len(known.applicants) - NAMED) if known else 0,
            "warnings_left": [one for one in status.warnings if one.code != listed],
            "filters": filters,
            "is_long": len(status.runs) > MANY or bool(filters.same_rows),
            "named": [
                *(run.session for run in status.runs),
                *(asked.session for asked in approvals),
            ],
            "bars": list(map(_bar, status.lanes)),
            "working": working[:SHOWN_RUNS],
            "waiting": waiting[(number - 1) * SHOWN_RUNS : number * SHOWN_RUNS],
            "all_waiting": len(waiting),
            "number": number,
            "most": SHOWN_RUNS,
            "elsewhere": sum(peer.waiting for peer in status.peers),
            "since": partial(_since, status.now),
            "more": max(0, len(working) - SHOWN_RUNS),
        }

    async def stop(request: Request) -> Response:
        fields = await form(request)
        session = fields.get("session", "")
        if waiting := fields.get("waiting"):
            return _back(fields, await _drop_waiting(service, waiting, fields.get("rows", "")))
        if not session:
            raise HTTPException(422, "session: is required")
        run, everything = fields.get("run"), fields.get("everything") == "yes"
        dropped = 0
        if everything:
            status = await service.control.lanes.status()
            waiting_there = in_line(one for one in status.runs if one.session == session)
            dropped = await _dismiss(service, waiting_there)
        report = await service.control.sessions.stop(
            SessionKey(session), everything=everything, run=RunId(run) if run else None
        )
        did = report.stopped or report.dropped or report.already_stopping
        otherwise = "asking" if report.asking else "unsent" if report.unsent else "nothing"
        notice = "stopped" if did else otherwise
        if dropped:
            notice = f"{'stopped_dropped' if did else 'dropped'} {count(dropped, 'message')}"
        return _back(fields, notice)

    page = Page("/", "now", "Now", load, params_of(*_FILTERS))
    return [*service.routes(page), Route("/stop", stop, methods=["POST"])]


async def _filters(service: PageServices, query: Query) -> ListFilters:
    fields = (
        await of_agent(service.control, query),
        Field("search", "Search", placeholder="session or prompt"),
    )
    return ListFilters("/", "runs", query, fields)


async def _drop_waiting(service: PageServices, which: str, rows: str) -> str:
    """Drop a waiting run, or ``ALL`` that the filters of ``rows`` select; return the notice."""
    runs: Sequence[RunView] = (await service.control.lanes.status()).runs
    if which == ALL:
        runs = await _matching(service, runs, await _filters(service, query_of(rows)))
    else:
        runs = [run for run in runs if run.id == which]
    waiting = in_line(runs)
    messages = await _dismiss(service, waiting)
    others = 0
    # The last one first: fewer of them start meanwhile, and are stopped.
    for run in reversed(waiting):
        if not _incoming(run):
            report = await service.control.sessions.stop(run.session, everything=False, run=run.id)
            others += len(report.dropped) + len(report.stopped)
    if not messages + others:
        return "nothing" if which == ALL else "started"
    return f"dropped {count(messages + others, 'run' if others else 'message')}"


async def _dismiss(service: PageServices, waiting: Iterable[RunView]) -> int:
    """Drop the messages of waiting runs, so that they are listed as dropped; return their number.

    The database leaves those of a run that has started meanwhile.
    """
    rows = [row for run in waiting for row in _incoming(run)]
    return await service.control.deliveries.dismiss_dead_letters(rows) if rows else 0


def _incoming(run: RunView) -> tuple[int, ...]:
    return () if run.activity is None else run.activity.incoming


async def _matching(
    service: PageServices, runs: Sequence[RunView], filters: ListFilters
) -> list[RunView]:
    """Return the runs that filters select."""
    agent, search = filters.values["agent"], filters.values["search"].casefold()
    found = [run for run in runs if agent in ("", run.agent)]
    if not search:
        return found
    names = await service.control.sessions.names(sorted({run.session for run in found}))

    def words(run: RunView) -> str:
        prompt = "" if run.activity is None else run.activity.prompt
        return "\n".join((run.id, run.session, names.get(run.session, ""), prompt)).casefold()

    return [run for run in found if search in words(run)]


def _since(now: datetime, run: RunView) -> datetime:
    """Return when a request entered its state."""
    # Whole seconds: the same state gives the same text, so nothing is sent while nothing happens.
    return (now - timedelta(seconds=run.for_s)).replace(microsecond=0)


def _bar(lane: LaneView) -> LaneBar:
    slots = min(lane.concurrency, SHOWN_SLOTS)
    taken = -(-min(lane.used, lane.concurrency) * slots // lane.concurrency)
    return LaneBar(lane, slots, taken)


def _back(fields: Mapping[str, str], notice: str) -> Response:
    """Redirect to the page of the pressed button."""
    if "rows" not in fields:
        if run := fields.get("run"):
            return back_to(f"/runs/{quote(run, safe='')}", notice)
        if "key" in fields:
            return back_to("/sessions/view", notice, key=fields["key"])
    return back_to_rows("/", notice, fields.get("rows", ""), _FILTERS)
