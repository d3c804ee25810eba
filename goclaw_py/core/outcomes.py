"""How a request ends. Every request ends in exactly one outcome (SPEC QUEUE-10)."""

from __future__ import annotations

from enum import StrEnum


class Trigger(StrEnum):
    """Why a run was asked for."""

    CHAT = "chat"
    CRON = "cron"
    HEARTBEAT = "heartbeat"
    SUBAGENT = "subagent"
    DELEGATE = "delegate"
    API = "api"


class Outcome(StrEnum):
    """The end of a request."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DROPPED = "dropped"
    REJECTED = "rejected"
    TIMED_OUT = "timed_out"
    ABANDONED = "abandoned"
    """It ignored its cancellation for the whole grace period; nothing it says counts any more."""
    INTERRUPTED = "interrupted"
    """Cut by a shutdown; it runs again after the restart and no attempt is counted."""
    LOST = "lost"
    """Cut by crashes, as often as it may be tried."""


class Reason(StrEnum):
    """Why a request ended otherwise than by its own work."""

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
    CRASHED = "crashed"
