"""The log context of a task (SPEC OPS-5).

It is bound once where a task starts a run, an occurrence, a heartbeat run or a delivery. Everything
that it calls inherits it, also libraries, tools and threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType

_NOTHING: Mapping[str, object] = MappingProxyType({})
_facts: ContextVar[Mapping[str, object]] = ContextVar("what this task works on", default=_NOTHING)


def work_on(**facts: object) -> None:
    """Bind facts to this task and the tasks that it starts; None removes a fact.

    Earlier facts are removed: a run often starts within the task that ended another.
    """
    _facts.set({name: fact for name, fact in facts.items() if fact is not None})


def worked_on() -> Mapping[str, object]:
    """Return the facts of this task, under the names of log fields."""
    return _facts.get()
