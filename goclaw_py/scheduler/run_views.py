"""Views of requests for operators: the state of each, and what it waits for."""

from __future__ import annotations

from collections.abc import Mapping, Set

from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.scheduler.models import Request, SessionQueue
from goclaw_py.scheduler.views import RunState, RunView, StopCandidate, WaitsFor


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


def stop_candidate(request: Request, known: Set[RunId], *, is_stopping: bool) -> StopCandidate:
    """Return a request as a stop finds it; ``known`` are the ids of all live requests."""
    return StopCandidate(
        request.id,
        request.session,
        request.state,
        # A run that was cancelled for a further message is known by its own id too.
        frozenset((request.id, *(set(request.joined or ()) & known))),
        request.people,
        tuple(one.id for one in request.family.ancestors) if request.family else (),
        is_live=request.waits or request.is_stoppable,
        is_stopping=is_stopping,
    )
