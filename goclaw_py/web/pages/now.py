"""What happens at this moment: lanes, runs, what waits for what, and buttons to stop it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.core.ids import SessionKey
from goclaw_py.core.status import LanesView, LaneUse, RunView, WaitsFor
from goclaw_py.web.pages.desk import Desk, Facts, Page, Query, back_to, form

SHOWN_SLOTS: Final = 40
"""A bar with more slots than these is drawn with as many pieces."""

SHOWN_RUNS: Final = 100

_WAITS: Final = {
    WaitsFor.SENDER: "the sender to finish",
    WaitsFor.SESSION: "another run of its session",
    WaitsFor.AGENT: "the limit of its agent",
    WaitsFor.LANE: "a slot of its lane",
    WaitsFor.PARENT: "its turn in its parent's slot",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One request as a row: ``since`` is when it entered its state."""

    run: RunView
    since: datetime
    waits: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A lane as a bar of ``slots`` pieces of which ``taken`` are in use."""

    use: LaneUse
    slots: int
    taken: int


def routes(desk: Desk) -> list[Route]:
    """The first page, and stopping."""

    async def look(_query: Query) -> Facts:
        status, lanes, active = await asyncio.gather(
            desk.control.status(), desk.control.lanes(), desk.control.active()
        )
        lines = [_line(run, active.at) for run in active.runs]
        return {
            "status": status,
            "bars": _bars(lanes),
            "working": [line for line in lines if not line.waits][:SHOWN_RUNS],
            "waiting": [line for line in lines if line.waits][:SHOWN_RUNS],
            "more": max(0, len(lines) - SHOWN_RUNS),
        }

    async def stop(request: Request) -> Response:
        fields = await form(request)
        session = fields.get("session", "")
        if not session:
            raise HTTPException(422, "which session is to stop?")
        report = await desk.control.stop(
            SessionKey(session), everything=fields.get("everything") == "yes"
        )
        did = report.stopped or report.dropped or report.already_stopping
        return back_to("/", "stopped" if did else "nothing")

    page = Page("/", "now", "Now", look)
    return [*desk.routes(page), Route("/stop", stop, methods=["POST"])]


def _line(run: RunView, at: datetime) -> Line:
    # Whole seconds: the same state gives the same text, so nothing is sent while nothing happens.
    since = (at - timedelta(seconds=run.for_s)).replace(microsecond=0)
    return Line(run, since, "" if run.waits_for is None else _WAITS[run.waits_for])


def _bars(view: LanesView) -> list[Bar]:
    bars = []
    for use in view.lanes:
        lane = use.lane
        slots = min(lane.concurrency, SHOWN_SLOTS)
        taken = -(-min(lane.active, lane.concurrency) * slots // lane.concurrency)
        bars.append(Bar(use, slots, taken))
    return bars
