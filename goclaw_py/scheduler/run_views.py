"""Views of requests for operators: the state of each, and what it waits for."""

from __future__ import annotations

from collections.abc import Mapping

from goclaw_py.core.ids import SessionKey
from goclaw_py.scheduler.models import Request, SessionQueue
from goclaw_py.scheduler.views import RunState, RunView, WaitsFor


def run_view(request: Request, sessions: Mapping[SessionKey, SessionQueue], now: float) -> RunView:
    """Return the view of an unfinished request; ``sessions`` has its session."""
    return RunView(
        id=request.id,
        session=request.session,
        agent=request.agent,
        lane=request.place.name,
        state=request.state,
        for_s=now - request.since,
        parent=request.parent,
        waits_for=_waits_for(request, sessions),
        messages=1 + len(request.joined or ()),
    )


def _waits_for(request: Request, sessions: Mapping[SessionKey, SessionQueue]) -> WaitsFor | None:
    if request.state is RunState.COLLECTING:
        return WaitsFor.SENDER
    if request.state is RunState.READY:
        return WaitsFor.LANE if request.waits_in(request.place) else WaitsFor.PARENT
    if request.state is not RunState.QUEUED:
        return None
    session = sessions[request.session]
    first = session.waiting[0] is request
    return WaitsFor.AGENT if first and session.may_start(request) else WaitsFor.SESSION
