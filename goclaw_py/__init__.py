"""goclaw_py: the runtime between chat channels and an AI agent.

As a library it puts lanes and session queues in front of a coroutine of yours, and calls it when
jobs are due; see ``docs/guide/library.md`` and ``docs/guide/jobs-library.md``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from goclaw_py.core.errors import JobError, SlugTaken
    from goclaw_py.core.jobs import Job, JobState, Prompt
    from goclaw_py.core.nesting import Nesting
    from goclaw_py.core.outcomes import Outcome, Reason
    from goclaw_py.core.policy import PROFILES, Profile
    from goclaw_py.core.requests import Drop, Mode, QueuePolicy
    from goclaw_py.core.schedule import At, Cron, Every
    from goclaw_py.core.scheduler import UnknownLane
    from goclaw_py.core.status import LaneView, RunState, RunView, StopReport
    from goclaw_py.ports.jobs import JobChange, RunNow, StartedNow
    from goclaw_py.ports.store import JobQuery
    from goclaw_py.runtime.jobs.library import Due, JobService
    from goclaw_py.runtime.library.run import (
        NotCompleted,
        QueueDropped,
        QueueFull,
        Run,
        WouldDeadlock,
    )
    from goclaw_py.runtime.library.scheduler import Lane, Scheduler
    from goclaw_py.store.memory import MemoryDatabase, MemoryStore
    from goclaw_py.store.postgres import PostgresStore

_HOME = {
    "PROFILES": "core.policy",
    "At": "core.schedule",
    "Cron": "core.schedule",
    "Drop": "core.requests",
    "Due": "runtime.jobs.library",
    "Every": "core.schedule",
    "Job": "core.jobs",
    "JobChange": "ports.jobs",
    "JobError": "core.errors",
    "JobQuery": "ports.store",
    "JobService": "runtime.jobs.library",
    "JobState": "core.jobs",
    "Lane": "runtime.library.scheduler",
    "LaneView": "core.status",
    "MemoryDatabase": "store.memory",
    "MemoryStore": "store.memory",
    "Mode": "core.requests",
    "Nesting": "core.nesting",
    "NotCompleted": "runtime.library.run",
    "Outcome": "core.outcomes",
    "PostgresStore": "store.postgres",
    "Profile": "core.policy",
    "Prompt": "core.jobs",
    "QueueDropped": "runtime.library.run",
    "QueueFull": "runtime.library.run",
    "QueuePolicy": "core.requests",
    "Reason": "core.outcomes",
    "Run": "runtime.library.run",
    "RunNow": "ports.jobs",
    "RunState": "core.status",
    "RunView": "core.status",
    "Scheduler": "runtime.library.scheduler",
    "SlugTaken": "core.errors",
    "StartedNow": "ports.jobs",
    "StopReport": "core.status",
    "UnknownLane": "core.scheduler",
    "WouldDeadlock": "runtime.library.run",
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
    "JobService",
    "JobState",
    "Lane",
    "LaneView",
    "MemoryDatabase",
    "MemoryStore",
    "Mode",
    "Nesting",
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
