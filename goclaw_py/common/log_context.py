"""Log context of a task (SPEC OPS-5).

Bound once where a task begins with a run, an occurrence, a run or a delivery. Whatever it calls
inherits it: libraries, tools and threads too, which know nothing of runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType

_NOTHING: Mapping[str, object] = MappingProxyType({})
_facts: ContextVar[Mapping[str, object]] = ContextVar("what this task works on", default=_NOTHING)


def work_on(**facts: object) -> None:
    """From now on this task and those that it begins work on this; None says nothing.

    What was bound before is forgotten: a run often begins inside of the task that ended another.
    """
    _facts.set({name: fact for name, fact in facts.items() if fact is not None})


def worked_on() -> Mapping[str, object]:
    """What this task works on, under the names that log lines use."""
    return _facts.get()
