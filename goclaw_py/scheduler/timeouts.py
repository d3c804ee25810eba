"""Timers of requests: deadlines, run and cancel timeouts, and the lane wait timeout."""

from __future__ import annotations

from goclaw_py.core.outcomes import Reason
from goclaw_py.scheduler.models import LaneState, Request
from goclaw_py.scheduler.views import RunState

SLOW_WAIT_S = 2.0
"""A longer wait for a lane, in seconds, is reported (SPEC LANE-7)."""

TELL_AGAIN_S = 10.0
"""Seconds until the next report about a lane."""

_S = RunState


class RequestTimeout:
    """A timer of a request; live in the states in which it matters."""

    __slots__ = ("request",)
    states: tuple[RunState, ...] = ()
    reason = Reason.DEADLINE

    def __init__(self, request: Request) -> None:
        self.request = request

    @property
    def live(self) -> bool:
        """Return whether it still matters."""
        return self.request.state in self.states


class Deadline(RequestTimeout):
    """Counts from submission, waiting included (SPEC QUEUE-9)."""

    __slots__ = ()
    states = (_S.COLLECTING, _S.QUEUED, _S.READY, _S.RUNNING)


class RunTimeout(RequestTimeout):
    """Counts from the start of the run (SPEC QUEUE-9)."""

    __slots__ = ()
    states = (_S.RUNNING,)
    reason = Reason.RUN_TIMEOUT


class CancelTimeout(RequestTimeout):
    """How long a cancelled run may take to end (SPEC QUEUE-2)."""

    __slots__ = ()
    states = (_S.STOPPING,)


class LaneWaitTimeout:
    """Checks whether the first request in a lane's line has waited for too long (SPEC LANE-7)."""

    __slots__ = ("lane",)

    def __init__(self, lane: LaneState) -> None:
        self.lane = lane

    @property
    def live(self) -> bool:
        """Return whether requests have been waiting ever since it was set."""
        return self.lane.watched is self
