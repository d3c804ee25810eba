"""What is asked of the scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from goclaw_py.core.ids import MAIN_AGENT, MAIN_LANE, AgentName, LaneName, RunId, SessionKey


class Mode(StrEnum):
    """What happens to a message that finds its session busy (SPEC QUEUE-3)."""

    QUEUE = "queue"
    FOLLOWUP = "followup"
    INTERRUPT = "interrupt"


class Drop(StrEnum):
    """Who goes when the queue is full (SPEC QUEUE-5)."""

    OLD = "old"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """How a session queues.

    ``capacity`` counts waiting requests only, at least 1. ``debounce_s`` is the quiet time, in
    seconds, after which a burst of messages counts as complete; 0 is off. ``concurrency`` is how
    many runs of the session may work at once.

    Source: SPEC QUEUE-1, QUEUE-5, QUEUE-6.
    """

    mode: Mode = Mode.QUEUE
    capacity: int = 10
    drop: Drop = Drop.OLD
    debounce_s: float = 0.0
    concurrency: int = 1

    def __post_init__(self) -> None:
        if self.capacity < 1 or self.concurrency < 1 or self.debounce_s < 0:
            raise ValueError(f"capacity and concurrency start at 1, debounce_s at 0: {self}")


@dataclass(frozen=True, slots=True)
class Request:
    """One request for a run.

    ``id`` must be new; it becomes the run's id. ``sender`` is who debounces together, empty for
    sessions that are no chats. ``cut`` says that the sender's next message is the rest of this one.
    ``deadline_s`` counts from submission, ``run_timeout_s`` from the start of the run; None is no
    limit. ``parent`` is the live run that asked for this one.
    """

    id: RunId
    session: SessionKey
    lane: LaneName = MAIN_LANE
    agent: AgentName = MAIN_AGENT
    sender: str = ""
    policy: QueuePolicy = QueuePolicy()
    cut: bool = False
    deadline_s: float | None = None
    run_timeout_s: float | None = None
    parent: RunId | None = None
