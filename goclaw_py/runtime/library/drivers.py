"""Tasks that drive one run after the other, each in its own context.

A task costs more than everything else about a short run together, so a task that has driven one run
to its end goes on with the next one that may start. Runs notice nothing of it: their context
variables are their own, because each step of a run is made in the run's context, as a task of its
own would do it.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from contextvars import Context
from types import coroutine
from typing import Any, TypeVar

R = TypeVar("R")


@coroutine
def in_context(work: Coroutine[Any, Any, R], context: Context) -> Generator[Any, Any, R]:
    """Await a coroutine whose every step is made in a context of its own."""
    run, step = context.run, work.send
    value: Any = None
    while True:
        try:
            awaited = run(step, value)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]  # typing knows no result of a send
        try:
            value = yield awaited
        except GeneratorExit:
            work.close()
            raise
        except BaseException as error:
            step, value = work.throw, error
        else:
            step = work.send
