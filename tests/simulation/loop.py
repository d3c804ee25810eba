"""A loop with virtual time in which several processes live, each of which can be frozen.

A process is a value of a context variable: whatever is started in its context is a part of it. All
that a frozen process would do waits until it goes on, its timers included, as after SIGSTOP. A
killed one is frozen for good.

Nothing here depends on the addresses of objects or on threads, so that a seed gives one scenario.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextvars import Context, ContextVar, copy_context
from itertools import count
from math import inf
from traceback import extract_tb
from typing import Any, TypeVar, TypeVarTuple

from goclaw_py.testing.loop import VirtualLoop

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Process:
    """A process of the simulation; ``context`` is that of all it does."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.frozen = False
        self.dead = False
        self.died_at = inf
        """Seconds of the loop; what happened to it at that instant nobody could hear any more."""
        self.parked: list[_Step] = []
        self.context = copy_context()
        self.context.run(_PROCESS.set, self)

    def thaw(self) -> None:
        """Go on with all that has become due meanwhile."""
        self.frozen = False
        parked, self.parked = self.parked, []
        loop = asyncio.get_running_loop()
        for step in parked:
            loop.call_soon(step.run, context=step.context)


_PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)


ROOT_CONTEXT = copy_context()
"""The context of what belongs to no process. Taken at the import, where there is none."""


class _Step:
    """Something that a process will do; it is not done if its handle was cancelled meanwhile."""

    __slots__ = ("_args", "_callback", "_process", "context", "handle")

    handle: asyncio.Handle

    def __init__(
        self,
        process: Process,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
    ) -> None:
        self._process = process
        self._callback = callback
        self._args = args
        self.context = process.context if context is None else context

    def run(self) -> None:
        if self.handle.cancelled():
            return
        if self._process.frozen:
            self._process.parked.append(self)
        else:
            self._callback(*self._args)


class _NumberedTask(asyncio.Task[Any]):
    """Sets of tasks have an order that is the same in every run."""

    def __init__(self, number: int, *args: Any, context: Context | None, **options: Any) -> None:
        self._number = number
        self.process = _PROCESS.get() if context is None else context.get(_PROCESS)
        super().__init__(*args, context=context, **options)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


def _could_hear(task: _NumberedTask, at: float) -> bool:
    return task.process is None or at < task.process.died_at


def _told(task: _NumberedTask) -> str:
    name = task.process.name if task.process else "the simulation"
    places = extract_tb(task._exception.__traceback__) if task._exception else []
    last = f"{places[-1].filename}:{places[-1].lineno}" if places else "nowhere"
    return f"{name}: nobody heard that {task.get_name()} raised {task._exception!r} ({last})"


class SimulatedLoop(VirtualLoop):
    """See the module's docstring.

    Attributes:
        broken: What callbacks have raised; a dead process raises nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.broken: list[str] = []
        self._failed: list[tuple[_NumberedTask, float]] = []
        numbers = count(1)

        def number(
            loop: asyncio.AbstractEventLoop,
            work: Coroutine[Any, Any, T] | Generator[Any, None, T],
            context: Context | None = None,
            **options: Any,
        ) -> asyncio.Future[T]:
            task = _NumberedTask(next(numbers), work, loop=loop, context=context, **options)
            task.add_done_callback(self._keep_if_failed, context=ROOT_CONTEXT)
            return task

        self.set_task_factory(number)
        self.set_exception_handler(self._on_error)

    def unheard(self) -> list[str]:
        """The errors of tasks of live processes which nobody has asked for; each is told once."""
        failed, self._failed = self._failed, []
        told = [_told(task) for task, at in failed if task._log_traceback and _could_hear(task, at)]
        for task, _ in failed:
            task._log_traceback = False
        return told

    def _keep_if_failed(self, task: asyncio.Task[Any]) -> None:
        assert isinstance(task, _NumberedTask)
        # ``exception()`` would count as somebody who asked.
        if task._exception is not None and not (task.process and task.process.dead):
            self._failed.append((task, self.time()))

    def _on_error(self, _loop: asyncio.AbstractEventLoop, facts: dict[str, Any]) -> None:
        error = facts.get("exception")
        if error is not None:
            self.broken.append(f"{facts['message']}: {error!r}")

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        process = _PROCESS.get() if context is None else context.get(_PROCESS)
        if process is None:
            return super().call_soon(callback, *args, context=context)
        step = _Step(process, callback, args, context)
        step.handle = handle = super().call_soon(step.run, context=context)
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        process = _PROCESS.get() if context is None else context.get(_PROCESS)
        if process is None:
            return super().call_at(when, callback, *args, context=context)
        step = _Step(process, callback, args, context)
        step.handle = handle = super().call_at(when, step.run, context=context)
        return handle

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run it at once: threads end in any order."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future
