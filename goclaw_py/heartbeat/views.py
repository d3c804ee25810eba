"""The status of a heartbeat for people (SPEC HB-9, OPS-4)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from goclaw_py.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.heartbeat.models import Heartbeat, HeartbeatRun, HeartbeatRunStatus, Skip
from goclaw_py.model.routes import Route
from goclaw_py.model.run_events import Usage


@dataclass(frozen=True, slots=True)
class HeartbeatView:
    """The status of an agent's heartbeat.

    Args:
        last: The last heartbeat run that ended, None if there was none.
        current: The one that is not over.
        today: What its heartbeat runs have used on this day, in UTC.
        month: The same for this month.
        events: How many wait.
        wake_from: When a wake that waits comes at the earliest, None if none does.
    """

    heartbeat: Heartbeat
    policy: HeartbeatPolicy
    route: Route
    now: datetime
    last: HeartbeatRun | None = None
    current: HeartbeatRun | None = None
    today: Usage | None = None
    month: Usage | None = None
    events: int = 0
    wake_from: datetime | None = None


@dataclass(frozen=True, slots=True)
class DryRunReport:
    """What would happen if the heartbeat were run now: all checks, no model.

    Args:
        status: ``RUNNING`` if its agent would be asked, ``DEFERRED`` or ``SKIPPED``.
        prompt: What the agent would read.
    """

    status: HeartbeatRunStatus
    skip: Skip | None
    detail: str
    prompt: str
    route: Route
