"""goclaw_py: the runtime between chat channels and an AI agent.

As a library it puts lanes and session queues in front of a coroutine of yours, and calls it when
jobs are due; see ``docs/guide/library.md`` and ``docs/guide/jobs-library.md``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from goclaw_py.core.errors import JobError, SlugTaken
    from goclaw_py.core.outcomes import Outcome, Reason
    from goclaw_py.operations.jobs.models import JobChange, RunNow, StartedNow
    from goclaw_py.records import JobQuery
    from goclaw_py.schedule.jobs.embedded.job_scheduler import Due, JobScheduler
    from goclaw_py.schedule.jobs.embedded.memory_store import MemoryStore
    from goclaw_py.schedule.jobs.models import Job, JobState, Prompt
    from goclaw_py.schedule.jobs.policy import PROFILES, Profile
    from goclaw_py.schedule.jobs.schedule import At, Cron, Every
    from goclaw_py.scheduler.child_runs import NestingLimits
    from goclaw_py.scheduler.embedded.run import (
        NotCompleted,
        QueueDropped,
        QueueFull,
        Run,
        WouldDeadlock,
    )
    from goclaw_py.scheduler.embedded.scheduler import Lane, Scheduler
    from goclaw_py.scheduler.models import Drop, Mode, QueuePolicy
    from goclaw_py.scheduler.scheduler import UnknownLane
    from goclaw_py.scheduler.views import LaneView, RunState, RunView, StopReport
    from goclaw_py.store.postgres import PostgresStore

_HOME = {
    "PROFILES": "schedule.jobs.policy",
    "At": "schedule.jobs.schedule",
    "Cron": "schedule.jobs.schedule",
    "Drop": "scheduler.models",
    "Due": "schedule.jobs.embedded.job_scheduler",
    "Every": "schedule.jobs.schedule",
    "Job": "schedule.jobs.models",
    "JobChange": "operations.jobs.models",
    "JobError": "core.errors",
    "JobQuery": "records",
    "JobScheduler": "schedule.jobs.embedded.job_scheduler",
    "JobState": "schedule.jobs.models",
    "Lane": "scheduler.embedded.scheduler",
    "LaneView": "scheduler.views",
    "MemoryStore": "schedule.jobs.embedded.memory_store",
    "Mode": "scheduler.models",
    "NestingLimits": "scheduler.child_runs",
    "NotCompleted": "scheduler.embedded.run",
    "Outcome": "core.outcomes",
    "PostgresStore": "store.postgres",
    "Profile": "schedule.jobs.policy",
    "Prompt": "schedule.jobs.models",
    "QueueDropped": "scheduler.embedded.run",
    "QueueFull": "scheduler.embedded.run",
    "QueuePolicy": "scheduler.models",
    "Reason": "core.outcomes",
    "Run": "scheduler.embedded.run",
    "RunNow": "operations.jobs.models",
    "RunState": "scheduler.views",
    "RunView": "scheduler.views",
    "Scheduler": "scheduler.embedded.scheduler",
    "SlugTaken": "core.errors",
    "StartedNow": "operations.jobs.models",
    "StopReport": "scheduler.views",
    "UnknownLane": "scheduler.scheduler",
    "WouldDeadlock": "scheduler.embedded.run",
}

__all__ = [
    "PROFILES",
    "At",
    "Cron",
    "Drop",
    "Due",
    "Every",
    "Job",
    "JobChange",
    "JobError",
    "JobQuery",
    "JobScheduler",
    "JobState",
    "Lane",
    "LaneView",
    "MemoryStore",
    "Mode",
    "NestingLimits",
    "NotCompleted",
    "Outcome",
    "PostgresStore",
    "Profile",
    "Prompt",
    "QueueDropped",
    "QueueFull",
    "QueuePolicy",
    "Reason",
    "Run",
    "RunNow",
    "RunState",
    "RunView",
    "Scheduler",
    "SlugTaken",
    "StartedNow",
    "StopReport",
    "UnknownLane",
    "WouldDeadlock",
]


def __getattr__(name: str) -> object:
    # Imported when asked for: every command of the program imports this package, and asyncio alone
    # takes longer to import than the rest of ``goclaw --help``.
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
