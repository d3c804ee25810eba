"""The meaning of outcomes of messages and runs: a code, a clause, remedies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.gateway.why.sources import brief
from goclaw_py.operations.explanation import Cure, setting_cure
from goclaw_py.scheduler import texts


@dataclass(frozen=True, slots=True)
class FailedOutcome:
    """The end of a message or run without an answer."""

    outcome: Outcome
    reason: Reason | None = None
    error: str = ""
    agent: str = "NAME"


def code(end: FailedOutcome) -> str:
    """Return the code of the end: ``ended.queue_full``, ``ended.failed``."""
    return f"ended.{(end.reason or end.outcome).value}"


def clause(end: FailedOutcome) -> str:
    """Return the end as a clause: ``was dropped: the queue was full, so the oldest …``."""
    verb = _VERBS[end.outcome]
    if end.outcome is Outcome.INTERRUPTED and end.reason is not None:
        words = texts.reason_words(end.reason)
        cause = "was " if end.reason is Reason.SHUTDOWN else "was interrupted: "
        return f"{cause}{words}; its messages run again"
    if end.reason is not None and not (end.reason is Reason.CRASHED and end.error):
        cause = texts.reason_words(end.reason)
        error = f" ({brief(end.error)})" if end.error else ""
        return f"{verb}: {cause}{error}"
    return f"{verb}: {brief(end.error)}" if end.error else verb


_VERBS: Final = {
    Outcome.COMPLETED: "completed",
    Outcome.FAILED: "failed",
    Outcome.CANCELLED: "was cancelled",
    Outcome.DROPPED: "was dropped",
    Outcome.REJECTED: "was rejected",
    Outcome.TIMED_OUT: "timed out",
    Outcome.ABANDONED: "ignored its cancellation and was abandoned",
    Outcome.INTERRUPTED: "was interrupted; its messages run again",
    Outcome.LOST: "was lost",
}


def cures(
    end: FailedOutcome, *, run: str | None = None, retry: int | None = None
) -> Iterator[Cure]:
    """Yield the remedies. ``retry``: the message that can be retried."""
    if end.reason is Reason.BUDGET:
        path = f"agents.{end.agent}.budget"
        yield setting_cure(f"Raise the budget: [{path}] in goclaw.toml", path)
        yield Cure("What was used, and by whom", "goclaw usage --by agent,job")
    elif end.reason in _BY_REASON:
        yield from _BY_REASON[end.reason]
    else:
        yield from _BY_OUTCOME.get(end.outcome, ())
    if retry is not None and end.outcome is not Outcome.INTERRUPTED:
        yield Cure("Retry the message", f"goclaw deliveries incoming retry {retry}")
    if run is not None and end.reason not in (Reason.STOPPED, Reason.STOPPED_ALL):
        yield Cure("All details of the run", f"goclaw runs show {run}")


_MERGE: Final = (
    Cure("Merge waiting messages: write /queue collect in the chat"),
    setting_cure(
        "Or let more messages wait: capacity = N under [queue] in goclaw.toml", "queue.capacity"
    ),
)
_CRASH: Final = (
    Cure("Find the crash in the log of the gateway, around the times above", link="/logs"),
)
_START: Final = (Cure("Start the gateway; it runs again by itself", "goclaw run"),)
_LIMITS: Final = (
    setting_cure(
        "Raise the limits: max_depth and max_children under [runs] in goclaw.toml", "runs.max_"
    ),
)
_CHAIN: Final = (
    Cure("Write anything in the chat: the agent goes on, and knows the result"),
    Cure("What was used, and by whom", "goclaw usage --by agent,job"),
    setting_cure(
        "Allow more turns in a row: max_chained_turns under [runs] in goclaw.toml",
        "runs.max_chained_turns",
    ),
)
_BY_REASON: Final[Mapping[Reason | None, tuple[Cure, ...]]] = {
    Reason.QUEUE_DROPPED: _MERGE,
    Reason.QUEUE_FULL: _MERGE,
    Reason.NEWER_MESSAGE: (
        Cure("Keep waiting messages: write /queue default in the chat (its mode is interrupt)"),
    ),
    Reason.RUN_TIMEOUT: (
        setting_cure("Give runs more time: timeout under [runs] in goclaw.toml", "runs.timeout"),
    ),
    Reason.DEADLINE: (
        setting_cure(
            "Give messages more time: deadline under [runs] in goclaw.toml", "runs.deadline"
        ),
    ),
    Reason.CHAIN_LIMIT: _CHAIN,
    Reason.OUTAGE: (
        Cure("It runs again when the provider answers; check its key", "goclaw doctor"),
    ),
    Reason.MERGED: (
        setting_cure(
            'Wait for further messages before each run: debounce = "fixed" under [queue]',
            "queue.debounce",
        ),
    ),
    Reason.CRASHED: _CRASH,
    Reason.NOT_CONTINUED: (
        setting_cure(
            'Begin again by itself: on_interrupted = "retry" under [agents.NAME.command]',
            "command.on_interrupted",
        ),
    ),
    Reason.SHUTDOWN: _START,
    Reason.DRAINING: _START,
    Reason.TOO_DEEP: _LIMITS,
    Reason.TOO_MANY_CHILDREN: _LIMITS,
}
_BY_OUTCOME: Final[Mapping[Outcome, tuple[Cure, ...]]] = {
    Outcome.FAILED: (Cure("Check the agent: its model, its key, its tools", "goclaw doctor"),),
    Outcome.ABANDONED: (
        Cure("The agent does not react to cancellation: fix the agent, or restart the gateway"),
    ),
    Outcome.LOST: _CRASH,
}
