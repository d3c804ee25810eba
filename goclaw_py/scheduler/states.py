"""The allowed state transitions."""

from __future__ import annotations

from collections.abc import Mapping

from goclaw_py.scheduler.models import Request
from goclaw_py.scheduler.views import RunState

# Names of the module, because looking a member up in its enum costs as much as the comparison.
COLLECTING, QUEUED, READY = RunState.COLLECTING, RunState.QUEUED, RunState.READY
RUNNING, STOPPING, FINISHING = RunState.RUNNING, RunState.STOPPING, RunState.FINISHING
ABANDONED, DONE = RunState.ABANDONED, RunState.DONE

TRANSITIONS: Mapping[RunState, tuple[RunState, ...]] = {
    COLLECTING: (QUEUED, READY, DONE),
    QUEUED: (READY, DONE),
    READY: (RUNNING, DONE),
    RUNNING: (STOPPING, FINISHING),
    STOPPING: (FINISHING, ABANDONED),
    FINISHING: (DONE,),
    ABANDONED: (DONE,),
    DONE: (),
}
"""Every allowed transition. A new request is COLLECTING until it is placed."""


class IllegalTransition(AssertionError):
    """A transition that does not exist was requested: a bug of the caller."""


def illegal(request: Request, to: RunState) -> IllegalTransition:
    """Return the error for a transition that does not exist."""
    return IllegalTransition(f"{request.id}: {request.state} cannot become {to}")
