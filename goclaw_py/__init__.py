"""goclaw_py: the runtime between chat channels and an AI agent.

As a library it puts lanes and session queues in front of a coroutine of yours; see
``docs/guide/library.md``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from goclaw_py.core.nesting import Nesting
    from goclaw_py.core.outcomes import Outcome, Reason
    from goclaw_py.core.requests import Drop, Mode, QueuePolicy
    from goclaw_py.core.scheduler import UnknownLane
    from goclaw_py.core.status import LaneView, RunState, RunView
    from goclaw_py.ports.control import StopReport
    from goclaw_py.runtime.library.run import (
        NotCompleted,
        QueueDropped,
        QueueFull,
        Run,
        WouldDeadlock,
    )
    from goclaw_py.runtime.library.scheduler import Lane, Scheduler

_HOME = {
    "Drop": "core.requests",
    "Lane": "runtime.library.scheduler",
    "LaneView": "core.status",
    "Mode": "core.requests",
    "Nesting": "core.nesting",
    "NotCompleted": "runtime.library.run",
    "Outcome": "core.outcomes",
    "QueueDropped": "runtime.library.run",
    "QueueFull": "runtime.library.run",
    "QueuePolicy": "core.requests",
    "Reason": "core.outcomes",
    "Run": "runtime.library.run",
    "RunState": "core.status",
    "RunView": "core.status",
    "Scheduler": "runtime.library.scheduler",
    "StopReport": "ports.control",
    "UnknownLane": "core.scheduler",
    "WouldDeadlock": "runtime.library.run",
}

__all__ = [
    "Drop",
    "Lane",
    "LaneView",
    "Mode",
    "Nesting",
    "NotCompleted",
    "Outcome",
    "QueueDropped",
    "QueueFull",
    "QueuePolicy",
    "Reason",
    "Run",
    "RunState",
    "RunView",
    "Scheduler",
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
