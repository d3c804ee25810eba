"""The status of a heartbeat for people (SPEC HB-9, OPS-4)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from goclaw_py.core.run_events import Usage
from goclaw_py.core.targets import Route
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.schedule.heartbeat.models import Heartbeat, HeartbeatRun, HeartbeatRunStatus, Skip


@dataclass(frozen=True, slots=True)
class HeartbeatView:
    """The status of an agent's heartbeat.

    Args:
        last: The last heartbeat run that ended, None if there is none.
        current: The unfinished run.
        today: The usage of its runs on this UTC day.
        month: The usage of its runs in this month.
        events: The number of waiting events.
        wake_from: The earliest time of a waiting wake, None without one.
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
    """What would happen if the heartbeat were run now: all checks, without a model.

    Args:
        status: ``RUNNING`` if its agent would be asked, ``DEFERRED`` or ``SKIPPED``.
        prompt: The prompt of the agent.
    """

    status: HeartbeatRunStatus
    skip: Skip | None
    detail: str
    prompt: str
    route: Route
