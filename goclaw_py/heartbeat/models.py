"""Heartbeats of agents and their runs (SPEC section 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from goclaw_py.model.ids import AgentName, HeartbeatRunId, NodeId, RunId
from goclaw_py.model.messages import OutboundMessage, Target
from goclaw_py.model.outcomes import HeartbeatRunKind
from goclaw_py.model.pagination import Cursor
from goclaw_py.model.run_events import Usage

WAKES_APART: Final = timedelta(seconds=30)
"""A wake waits until so long after the beginning of the last run of its agent (SPEC HB-11)."""

MAX_EVENTS: Final = 20
"""How many events of an agent wait at most (SPEC HB-13)."""

EVENT_CHARS: Final = 4000
"""How long the text of one may be."""

REPLY_BYTES: Final = 16 * 1024
"""How much of a reply the log keeps."""


class HeartbeatRunStatus(StrEnum):
    """The status or outcome of a heartbeat run (SPEC HB-9)."""

    RUNNING = "running"
    DEFERRED = "deferred"
    """The agent is busy, or this process was shut down: it is tried again."""
    OK = "ok"
    ALERTED = "alerted"
    DUPLICATE = "duplicate"
    NO_ROUTE = "no_route"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    FAILED = "failed"
    DELIVERY_FAILED = "delivery_failed"
    """It alerted, and the channel will never take the message; never stored, but told by it."""
    LOST = "lost"
    """Its process died while its agent worked."""


class Skip(StrEnum):
    """Why the agent was not asked."""

    DISABLED = "disabled"
    MUTED = "muted"
    QUIET_HOURS = "quiet_hours"
    NO_FILE = "no_file"
    UNREADABLE = "unreadable"
    EMPTY = "empty"
    NOTHING_DUE = "nothing_due"
    BUDGET = "budget"


OPEN: Final = frozenset({HeartbeatRunStatus.RUNNING, HeartbeatRunStatus.DEFERRED})
"""What has not ended."""


@dataclass(frozen=True, slots=True)
class HeartbeatConfig:
    """The heartbeat of an agent as configured.

    Args:
        interval: None: they switch it off. At least a second.
        offset: By how much its grid begins after the first enabling (SPEC HB-1).
    """

    agent: AgentName
    interval: timedelta | None
    offset: timedelta


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The state of an agent's heartbeat: a row of ``heartbeats``.

    Args:
        interval: None: the settings switch it off.
        anchor: Where its grid begins; None: it was never enabled.
        next_at: The next heartbeat run by the grid, None while it is off.
        wake_at: From when on a wake that waits may come, None if none does.
        switched: What people have chosen with ``on`` and ``off``; None: the settings hold.
        began_at: When the last heartbeat run was claimed.
        failures: How many heartbeat runs in a row have failed.
        heartbeat_run: The heartbeat run that is not over.
        node: The process that has claimed it; None: whoever comes first takes it up.
    """

    agent: AgentName
    interval: timedelta | None
    anchor: datetime | None = None
    next_at: datetime | None = None
    wake_at: datetime | None = None
    wake_kind: HeartbeatRunKind | None = None
    switched: bool | None = None
    muted_until: datetime | None = None
    began_at: datetime | None = None
    failures: int = 0
    heartbeat_run: HeartbeatRunId | None = None
    node: NodeId | None = None

    @property
    def is_on(self) -> bool:
        """Whether it is on: by what people have chosen, else by the settings."""
        return self.interval is not None and self.switched is not False


@dataclass(frozen=True, slots=True)
class HeartbeatEvent:
    """A text that the agent gets with its next heartbeat run (SPEC HB-13)."""

    id: int
    agent: AgentName
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class HeartbeatClaim:
    """A heartbeat run that this process has claimed.

    Args:
        due_at: When it was to come: by the grid, or when it was asked for.
        next_at: The next one by the grid; None: there is none.
        heartbeat: As it is after the claim.
    """

    id: HeartbeatRunId
    agent: AgentName
    kind: HeartbeatRunKind
    due_at: datetime
    claimed_at: datetime
    next_at: datetime | None
    heartbeat: Heartbeat


@dataclass(frozen=True, slots=True)
class HeartbeatRunEnd:
    """The end of a heartbeat run with all its changes; stored once, in one transaction.

    Args:
        detail: The cause of a failure, or what else explains the status, for people.
        reply: What the agent said, token and all, cut to ``REPLY_BYTES``.
        target: Where it alerted, or would have.
        failed: What becomes of the number of failures in a row: True, one more; False, 0; None
            keeps it.
        events: Events that it has carried; they leave.
        done: Keys of items with an interval of their own that it has carried.
        noted_at: When it looked at them, and at all that was due by then: the next run by the grid
            lies behind it. None: when it ended, and it answers nothing else.
        usage: What it used over all its attempts.
    """

    id: HeartbeatRunId
    agent: AgentName
    status: HeartbeatRunStatus
    finished_at: datetime
    skip: Skip | None = None
    detail: str = ""
    reply: str = ""
    target: Target | None = None
    started_at: datetime | None = None
    attempts: int = 0
    failed: bool | None = None
    events: tuple[int, ...] = ()
    done: tuple[str, ...] = ()
    noted_at: datetime | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class HeartbeatRun:
    """A row of ``heartbeat_runs``.

    Args:
        runs: Its attempts, each with a run id of its own, the first one first.
        delivery: ``pending``, ``sent`` or ``dead`` (as the worst of its messages stands: dead,
            then pending), "" if there was nothing to deliver. ``dead`` makes an ``ALERTED`` run
            a ``DELIVERY_FAILED`` one.
        undelivered: Why, if the channel will not take it.
    """

    id: HeartbeatRunId
    agent: AgentName
    kind: HeartbeatRunKind
    due_at: datetime
    claimed_at: datetime
    status: HeartbeatRunStatus
    started_at: datetime | None = None
    finished_at: datetime | None = None
    skip: Skip | None = None
    detail: str = ""
    reply: str = ""
    target: Target | None = None
    attempts: int = 0
    node: NodeId | None = None
    usage: Usage | None = None
    runs: tuple[RunId, ...] = ()
    delivery: str = ""
    undelivered: str = ""

    @property
    def cursor(self) -> Cursor:
        """Its place in a list."""
        return Cursor(self.claimed_at, (self.id,))

    @property
    def outcome(self) -> str:
        """The status as it is shown: ``ok``, ``skipped:empty`` (SPEC HB-9)."""
        return self.status if self.skip is None else f"{self.status}:{self.skip}"


@dataclass(frozen=True, slots=True)
class Undelivered:
    """An alert that its channel refused for good and that was reported to nobody yet.

    Args:
        said: Its messages, in order.
        why: What the channel said.
    """

    heartbeat_run: HeartbeatRunId
    agent: AgentName
    target: Target
    said: tuple[OutboundMessage, ...]
    why: str


@dataclass(frozen=True, slots=True)
class PreconditionQuery:
    """The facts that a heartbeat run needs from the database, in one query.

    Args:
        events: Those that wait, the oldest first.
        done: When items with an interval of their own were carried last, by their keys.
        is_busy: Whether a run of the agent for a chat or the API waits or runs anywhere.
        spent: What its heartbeat runs have used since the instant that was asked for.
    """

    events: tuple[HeartbeatEvent, ...] = ()
    done: Mapping[str, datetime] = field(default_factory=dict)
    is_busy: bool = False
    spent: Usage | None = None
