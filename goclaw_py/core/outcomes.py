"""Outcomes of requests. Every request ends in exactly one outcome (SPEC QUEUE-10).

The rules of SPEC QUEUE-10:

Every request ends in exactly one outcome: completed, failed, cancelled, dropped, rejected,
timed_out, abandoned, interrupted (by shutdown), lost (crash). An exception in a run is an outcome
and never blocks a queue, also `sys.exit` in a task that an agent has made, and a cancellation that
nobody asked for; nor does one while its end is built or stored: what would have been completed is
then stored as failed, with its prompt in the history, for chats, jobs, heartbeats and subagents
alike. What is stored as running although its node has no task for it ends lost within a minute, and
runs again as after a crash (IO-2, CRON-5); for an hour `status` and `why` say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from goclaw_py.core.ids import RunId


class OpenEnum(StrEnum):
    """Words of the database to which a later release may add some.

    A word that is not known here is a value too, so that lists show it as it is. It is no member:
    ``word in {*Kind}`` says whether it is known.
    """

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        word = str.__new__(cls, value)
        word._name_ = word._value_ = value
        return word


class HeartbeatRunKind(OpenEnum):
    """The cause of a heartbeat run."""

    INTERVAL = "interval"
    MANUAL = "manual"
    EVENT = "event"
    JOB = "job"
    """A job with ``wake_heartbeat`` has run (SPEC CRON-20)."""


class Trigger(OpenEnum):
    """The cause of a run."""

    CHAT = "chat"
    CRON = "cron"
    HEARTBEAT = "heartbeat"
    SUBAGENT = "subagent"
    DELEGATE = "delegate"
    API = "api"


SCHEDULED: Final = frozenset({Trigger.CRON, Trigger.HEARTBEAT})
"""Causes of runs for which nobody waits in a chat."""


class Outcome(StrEnum):
    """The outcome of a request."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DROPPED = "dropped"
    REJECTED = "rejected"
    TIMED_OUT = "timed_out"
    ABANDONED = "abandoned"
    """It ignored its cancellation for the whole grace period; its results are discarded."""
    INTERRUPTED = "interrupted"
    """Interrupted by a shutdown or an outage; it runs again, and no attempt is counted."""
    LOST = "lost"
    """Interrupted by crashes until its attempts were used up."""


FAILURES: Final = frozenset({Outcome.FAILED, Outcome.TIMED_OUT, Outcome.ABANDONED, Outcome.LOST})
"""Outcomes without an answer that no person asked for."""


class Reason(OpenEnum):
    """Why a request ended before its run completed."""

    STOPPED = "stopped"
    STOPPED_ALL = "stopped_all"
    QUEUE_DROPPED = "queue_dropped"
    QUEUE_FULL = "queue_full"
    NEWER_MESSAGE = "newer_message"
    DEADLINE = "deadline"
    RUN_TIMEOUT = "run_timeout"
    DRAINING = "draining"
    SHUTDOWN = "shutdown"
    LANE_CLOSED = "lane_closed"
    PARENT_ENDED = "parent_ended"
    """The run that requested it had ended, or was being stopped."""
    TOO_DEEP = "too_deep"
    TOO_MANY_CHILDREN = "too_many_children"
    WAITS_FOR_ITSELF = "waits_for_itself"
    """It could start only after the run that waits for it had ended."""
    BUDGET = "budget"
    """Its budget is used up (SPEC AGENT-5)."""
    CHAIN_LIMIT = "chain_limit"
    """Results of subagents have begun too many turns in a row (SPEC AGENT-14)."""
    OUTAGE = "outage"
    """The agent's provider is down; it runs again once that is available (SPEC AGENT-8)."""
    APPROVAL = "approval"
    """It waits for the decision of a person about a tool call, and goes on then (SPEC AGENT-11)."""
    MERGED = "merged"
    """Its sender wrote more before it had had an effect; one run answers both (SPEC QUEUE-6)."""
    CRASHED = "crashed"
    NOT_CONTINUED = "not_continued"
    """Its run was interrupted, and must not begin again (SPEC AGENT-10)."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a request."""

    run_id: RunId
    outcome: Outcome
    reason: Reason | None = None

    @property
    def is_dropped(self) -> bool:
        """Return whether it was dropped or refused before it began, which its sender learns."""
        is_left = self.reason is Reason.DRAINING  # for the next process
        return self.outcome in (Outcome.DROPPED, Outcome.REJECTED) and not is_left


def outcome_text(value: str) -> str:
    """Return an outcome, status or reason as people read it: ``timed out``, ``skipped: no file``.

    Jobs and heartbeats store a success as ``ok``; people read one word for it everywhere.
    """
    return "completed" if value == "ok" else value.replace("_", " ").replace(":", ": ")


def stop_reason(*, everything: bool) -> Reason:
    """Return the reason of stopped requests."""
    return Reason.STOPPED_ALL if everything else Reason.STOPPED
