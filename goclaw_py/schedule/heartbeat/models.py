"""Heartbeats of agents and their runs (SPEC section 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from goclaw_py.core.ids import AgentName, HeartbeatRunId, NodeId, RunId
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.outcomes import HeartbeatRunKind, OpenEnum
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.run_events import Usage
from goclaw_py.schedule.models import ran_s

WAKES_APART: Final = timedelta(seconds=30)
"""A wake waits until this long after the start of the agent's last run (SPEC HB-11)."""

MAX_EVENTS: Final = 20
"""The largest number of waiting events of an agent (SPEC HB-13)."""

EVENT_CHARS: Final = 4000
"""The longest text of an event."""

REPLY_BYTES: Final = 16 * 1024
"""The stored length of a reply."""


class HeartbeatRunStatus(StrEnum):
    """The status or outcome of a heartbeat run (SPEC HB-9)."""

    RUNNING = "running"
    DEFERRED = "deferred"
    """The agent is busy, or this process was shut down; it is retried."""
    OK = "ok"
    ALERTED = "alerted"
    LOGGED = "logged"
    """Its alert is not sent, because the target is ``none``. Stored as ``ALERTED``."""
    DUPLICATE = "duplicate"
    NO_ROUTE = "no_route"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    FAILED = "failed"
    DELIVERY_FAILED = "delivery_failed"
    """Its alert will never be delivered. Not stored, but derived from the message."""
    LOST = "lost"
    """Its process died while the agent was running."""


class Skip(OpenEnum):
    """The reason why the agent was not asked."""

    DISABLED = "disabled"
    MUTED = "muted"
    QUIET_HOURS = "quiet_hours"
    NO_FILE = "no_file"
    UNREADABLE = "unreadable"
    EMPTY = "empty"
    NOTHING_DUE = "nothing_due"
    BUDGET = "budget"


OPEN: Final = frozenset({HeartbeatRunStatus.RUNNING, HeartbeatRunStatus.DEFERRED})
"""Statuses of unfinished runs."""


@dataclass(frozen=True, slots=True)
class HeartbeatConfig:
    """The heartbeat of an agent as configured.

    Args:
        interval: At least a second; None: it is off.
        offset: The delay of the first grid point after the first enabling (SPEC HB-1).
    """

    agent: AgentName
    interval: timedelta | None
    offset: timedelta


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The state of an agent's heartbeat: a row of ``heartbeats``.

    Args:
        interval: None: it is off in the settings.
        anchor: The first point of its grid; None: it was never enabled.
        next_at: The next run by the grid, None while it is off.
        wake_at: The earliest time of a waiting wake, None without one.
        switched: What people have chosen with ``on`` and ``off``; None: the settings apply.
        began_at: When the last run was claimed.
        failures: The number of failed runs in a row.
        heartbeat_run: The unfinished run.
        node: The node that has claimed it; None: any node may claim it.
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
        """Return whether it is on, by people's choice or else by the settings."""
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
        due_at: When it was due by the grid, or when it was requested.
        next_at: The next run by the grid; None: there is none.
        heartbeat: The heartbeat after the claim.
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
        detail: The cause of a failure, or another explanation of the status, for people.
        reply: The whole reply of the agent, truncated to ``REPLY_BYTES``.
        target: The target of its alert, sent or not.
        failed: True increases the number of failures in a row, False resets it, None keeps it.
        events: The events that it delivered; they are deleted.
        done: Keys of the items with intervals that it included.
        noted_at: When it was decided: it satisfies everything on the grid that was due by then.
            None: it ended then, and satisfies nothing else.
        usage: The usage of all its attempts.
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
        runs: The run ids of its attempts, in order.
        delivery: ``waiting``, ``sent`` or ``failed``: the worst state of its messages (failed, then
            waiting); "" if there was nothing to deliver. ``failed`` turns ``ALERTED`` into
            ``DELIVERY_FAILED``.
        undelivered: Why the channel refuses it.
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
        """The position in a list of heartbeat runs."""
        return Cursor(self.claimed_at, (self.id,))

    @property
    def outcome(self) -> str:
        """Return the status as it is shown: ``ok``, ``skipped:empty`` (SPEC HB-9)."""
        return self.status if self.skip is None else f"{self.status}:{self.skip}"

    @property
    def duration_s(self) -> float | None:
        """How long the agent ran, in seconds; None if it did not start or still runs."""
        return ran_s(self.started_at, self.finished_at)


@dataclass(frozen=True, slots=True)
class Undelivered:
    """An alert that its channel refused for good, and that was not reported yet.

    Args:
        said: Its messages, in order.
        why: The channel's reason.
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
        events: The waiting events, the oldest first.
        done: When items with intervals were last included, by their keys.
        is_busy: Whether a run of the agent for a chat or the API waits or is running on any node.
        spent: The usage of its heartbeat runs since the requested instant.
    """

    events: tuple[HeartbeatEvent, ...] = ()
    done: Mapping[str, datetime] = field(default_factory=dict)
    is_busy: bool = False
    spent: Usage | None = None


class NoHeartbeat(StrEnum):
    """The reason why a requested heartbeat run did not start."""

    ALREADY_RUNNING = "already_running"
    OFF = "off"
    """No process runs heartbeats: there is no gateway."""


@dataclass(frozen=True, slots=True)
class HeartbeatStarted:
    """A heartbeat run was started on request."""

    heartbeat_run: HeartbeatRunId
