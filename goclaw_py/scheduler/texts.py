"""Texts for operators about waiting requests and messages without an answer."""

from __future__ import annotations

from typing import Final

from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.scheduler.views import LaneView, RunView, WaitsFor

_NO_LIMIT: Final = 1 << 31

_REASONS = {
    Reason.STOPPED: "stopped by a person",
    Reason.STOPPED_ALL: "stopped by /stopall",
    Reason.QUEUE_DROPPED: "the queue was full, so the oldest message was dropped",
    Reason.QUEUE_FULL: "the queue was full, so the new message was rejected",
    Reason.NEWER_MESSAGE: "a newer message replaced it",
    Reason.DEADLINE: "its deadline passed (runs.deadline)",
    Reason.RUN_TIMEOUT: "the run took too long (runs.timeout)",
    Reason.DRAINING: "the gateway was shutting down",
    Reason.SHUTDOWN: "interrupted by a shutdown",
    Reason.LANE_CLOSED: "its lane is closed",
    Reason.PARENT_ENDED: "its parent run had ended",
    Reason.TOO_DEEP: "the nesting limit of subagents was reached",
    Reason.TOO_MANY_CHILDREN: "its parent run has too many child runs",
    Reason.WAITS_FOR_ITSELF: "it would have waited for a run that waits for it (deadlock)",
    Reason.BUDGET: "a budget was used up (agents.NAME.budget)",
    Reason.CHAIN_LIMIT: "too many turns in a row began without a person (runs.max_chained_turns)",
    Reason.OUTAGE: "the provider of its model is unavailable",
    Reason.APPROVAL: "it waited for a person to approve a tool call",
    Reason.MERGED: "its sender wrote more before it had answered; one run answers both",
    Reason.CRASHED: "the gateway crashed at each attempt",
    Reason.NOT_CONTINUED: "it was interrupted (agents.NAME.command.on_interrupted)",
}

_OUTCOMES = {
    Outcome.FAILED: "its run failed",
    Outcome.ABANDONED: "its run ignored its cancellation",
}


def used_text(lane: LaneView) -> str:
    """Return how full a lane is: ``1/2``; ``1+3/4`` if other nodes use three of its slots."""
    return f"{lane.active}{f'+{lane.elsewhere}' if lane.elsewhere else ''}/{lane.concurrency}"


def reason_words(reason: Reason) -> str:
    """Return the reason why a request did not finish by itself, as a clause."""
    return _REASONS.get(reason, reason.value)


def why(outcome: Outcome | None, reason: Reason | None, run_id: str | None) -> str:
    """Return why a message has no answer."""
    if outcome is None:
        return "not finished"
    if reason is not None:
        return f"{outcome.value}: {reason_words(reason)}"
    words = _OUTCOMES.get(outcome, outcome.value)
    return f"{words}; see: goclaw runs show {run_id}" if run_id else words


def state_text(run: RunView) -> str:
    """Return the state of a request; one that has not started waits, whatever it waits for."""
    return run.state.value if run.waits_for is None else "waiting"


def waits_for(run: RunView) -> str:
    """Return what a request waits for; empty if it has started."""
    match run.waits_for:
        case None:
            return ""
        case WaitsFor.SENDER:
            return "more messages of its sender (debounce window)"
        case WaitsFor.SESSION:
            return "an earlier message of its session"
        case WaitsFor.AGENT:
            return f"agent {run.agent}: its limit of concurrent runs is reached"
        case WaitsFor.LANE:
            return f"lane {run.lane}: no slot is free"
        case WaitsFor.PARENT:
            return f"its parent {run.parent}: its turn in the slot of its parent run"


def policy(how: QueuePolicy) -> str:
    """Return the queue policy of a session in words."""
    begin = f"mode {how.mode.value}, {how.concurrency} at once"
    if how.capacity >= _NO_LIMIT:  # messages that were left over by a crash
        return f"{begin}, no limit of waiting messages"
    dropped = "the oldest is dropped" if how.drop == "old" else "new ones are rejected"
    return f"{begin}, at most {how.capacity} waiting, then {dropped}"
