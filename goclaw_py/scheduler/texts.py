"""What operators read about requests that wait, and about messages without an answer."""

from __future__ import annotations

from typing import Final

from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.scheduler.views import LaneView, RunView, WaitsFor

_NO_LIMIT: Final = 1 << 31

_REASONS = {
    Reason.STOPPED: "stopped by /stop",
    Reason.STOPPED_ALL: "stopped by /stopall",
    Reason.QUEUE_DROPPED: "the queue was full, and the oldest goes",
    Reason.QUEUE_FULL: "the queue was full, and the newest is not taken",
    Reason.NEWER_MESSAGE: "a newer message replaced it",
    Reason.DEADLINE: "its time was over (runs.deadline)",
    Reason.RUN_TIMEOUT: "the run took too long (runs.timeout)",
    Reason.DRAINING: "the gateway was shutting down",
    Reason.SHUTDOWN: "cut by a shutdown",
    Reason.LANE_CLOSED: "its lane is closed",
    Reason.PARENT_ENDED: "the run that asked for it had ended",
    Reason.TOO_DEEP: "too many runs above it",
    Reason.TOO_MANY_CHILDREN: "the run that asked for it has too many children",
    Reason.WAITS_FOR_ITSELF: "it would have waited for the run that waits for it",
    Reason.BUDGET: "a budget was used up (agents.NAME.budget)",
    Reason.OUTAGE: "the provider of its agent is down",
    Reason.CRASHED: "the gateway crashed each time it was tried",
}

_OUTCOMES = {
    Outcome.FAILED: "its run failed",
    Outcome.ABANDONED: "its run ignored its cancellation",
}


def taken_text(lane: LaneView) -> str:
    """How full a lane is: ``1/2``; ``1+3/4`` where other nodes have three places of it."""
    return f"{lane.active}{f'+{lane.elsewhere}' if lane.elsewhere else ''}/{lane.concurrency}"


def reason_words(reason: Reason) -> str:
    """Why a request ended otherwise than by its own work, as a clause."""
    return _REASONS[reason]


def why(outcome: Outcome | None, reason: Reason | None, run_id: str | None) -> str:
    """Why a message has no answer."""
    if outcome is None:
        return "not done"
    if reason is not None:
        return f"{outcome.value}: {_REASONS[reason]}"
    words = _OUTCOMES.get(outcome, outcome.value)
    return f"{words}; see: goclaw runs show {run_id}" if run_id else words


def waits_for(run: RunView) -> str:
    """What a request waits for; empty if it has started."""
    match run.waits_for:
        case None:
            return ""
        case WaitsFor.SENDER:
            return "its sender, who may still be typing"
        case WaitsFor.SESSION:
            return "its session: others come first"
        case WaitsFor.AGENT:
            return f"agent {run.agent}: it works on as many as it may"
        case WaitsFor.LANE:
            return f"lane {run.lane}: no slot is free"
        case WaitsFor.PARENT:
            return f"its parent {run.parent}: its turn in that one's slot"


def policy(how: QueuePolicy) -> str:
    """How a session queues."""
    begin = f"mode {how.mode.value}, {how.concurrency} at once"
    if how.capacity >= _NO_LIMIT:  # messages that were left over by a crash
        return f"{begin}, any number may wait"
    dropped = "the oldest goes" if how.drop == "old" else "the newest is not taken"
    return f"{begin}, {how.capacity} may wait, then {dropped}"
