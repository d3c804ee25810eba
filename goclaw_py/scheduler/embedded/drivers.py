"""The asyncio tasks of runs.

Creating a task costs more than everything else about a short run. So one task, the pump, starts the
runs one after the other, and a run that never waits needs no task. The first run that waits keeps
the task until it ends, and the others continue in a new one. So a cancellation, a time limit or a
callback that reaches a run through its task never reaches another run.

Each step of a run is executed in the context of the run, as in a task of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from inspect import iscoroutinefunction
from time import monotonic
from types import coroutine
from typing import Any, Generic

from goclaw_py.core.outcomes import Outcome
from goclaw_py.scheduler.embedded.failures import RunFailure
from goclaw_py.scheduler.embedded.run import M, R, Run
from goclaw_py.scheduler.views import RunState

log = logging.getLogger(__name__)

Work = Callable[[Run[M, R]], Coroutine[Any, Any, R]]
"""The coroutine function that is scheduled. Its argument is the run, with its messages."""

_COMPLETED, _FAILED, _CANCELLED = Outcome.COMPLETED, Outcome.FAILED, Outcome.CANCELLED
_RUNNING = RunState.RUNNING
_FATAL = (KeyboardInterrupt, SystemExit)
"""Exceptions that end the loop, as in every asyncio task."""

_NOT_CALLED = object()
_EXITED = "a run raised GeneratorExit"

_TURN_S = 0.001
"""Seconds after which the pump lets the loop do other things."""

_PAUSE_S = 0.05
"""Seconds without new starts after all tasks of the loop were cancelled."""


class Drivers(Generic[M, R]):
    """Starts the task of each run and reports its end.

    Args:
        work: The function that executes a run.
        finish: Called once for each started run, outside of its context; may start and cancel runs.
    """

    def __init__(self, work: Work[M, R], finish: Callable[[Run[M, R], Outcome], None]) -> None:
        self._work = work
        # What calls no code of the user need not be called in the context of the run.
        self._plain = iscoroutinefunction(work)
        self._finish = finish
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._ready: deque[Run[M, R]] = deque()
        """Runs that may start. Some may have been cancelled since."""
        self._pump: asyncio.Task[None] | None = None
        self._beginning: Run[M, R] | None = None
        """The run that was started last."""
        self._waiting: dict[asyncio.Task[None], Run[M, R]] = {}
        """The runs that have waited, by the task that each of them keeps."""
        self._making_task = False
        self._pause: asyncio.TimerHandle | None = None

    def start(self, run: Run[M, R]) -> None:
        """Start a run soon."""
        self._ready.append(run)
        if self._pump is None:
            self._send_pump()

    def cancel(self, run: Run[M, R]) -> None:
        """Cancel a started run, whether its first step was executed or not."""
        if run.task is not None:
            run.task.cancel()
        else:
            # It is passed over when its turn comes. That may be never, if the loop shuts down.
            self._loop.call_soon(self._finish, run, _CANCELLED)

    def current(self) -> Run[M, R] | None:
        """Return the run of the current task."""
        task = asyncio.current_task()
        if task is None:
            return None
        last = self._beginning
        return last if last is not None and last.task is task else self._waiting.get(task)

    # ------------------------------------------------------------------ tasks

    def _send_pump(self) -> None:
        if self._pause is None:
            self._pump = self._make_task(self._begin_all())

    def _make_task(self, steps: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self._making_task = True
        try:
            # In a context of ours: the current one may be that of a run.
            task = self._context.run(self._loop.create_task, steps)
        finally:
            self._making_task = False
        task.add_done_callback(self._on_killed)
        return task

    async def _become_pump(self) -> asyncio.Task[None]:
        """Make the current task a pump."""
        if self._making_task:
            # An eager task factory: the code that started the run has not finished its step.
            await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        task.remove_done_callback(self._on_killed)
        return task

    def _on_killed(self, task: asyncio.Task[None]) -> None:
        """Handle a task of ours that was cancelled by others before its first step."""
        if self._pump is task:
            self._pump = None
        self._back_off()
        self._go_on()

    def _go_on(self) -> None:
        if self._ready and self._pump is None:
            self._send_pump()

    def _beware(self) -> None:
        """Check the meaning of a cancellation that is not ours."""
        if all(task.cancelling() for task in asyncio.all_tasks(self._loop)):
            self._back_off()

    def _back_off(self) -> None:
        """Start nothing for a while.

        ``asyncio.run`` cancels all tasks when it ends. New runs would be torn down half-way.
        """
        if self._pause is None:
            self._pause = self._loop.call_later(_PAUSE_S, self._end_pause)

    def _end_pause(self) -> None:
        self._pause = None
        self._go_on()

    # ------------------------------------------------------------------ runs

    async def _begin_all(self) -> None:
        """Start what is ready, until a run keeps the task."""
        task = await self._become_pump()
        ready = self._ready
        try:
            turn_ends = monotonic() + _TURN_S
            while ready:
                rest = self._begin(ready.popleft(), task)
                if rest is not None:
                    self._pump = self._beginning = None
                    # The others are likely to wait as well.
                    for _ in range(len(ready)):
                        self._make_task(self._begin_one())
                    await rest
                    return
                if task.cancelling():
                    self._beware()
                    return  # it would pass this on to the next one
                if ready and monotonic() > turn_ends:
                    await asyncio.sleep(0)
                    turn_ends = monotonic() + _TURN_S
        except asyncio.CancelledError:
            self._beware()
            raise
        finally:
            if self._pump is task:
                self._pump = self._beginning = None
                self._go_on()

    async def _begin_one(self) -> None:
        """Start the next ready run."""
        task = await self._become_pump()
        if self._ready:
            rest = self._begin(self._ready.popleft(), task)
            self._beginning = None
            if rest is not None:
                await rest

    def _begin(self, run: Run[M, R], task: asyncio.Task[None]) -> Coroutine[Any, Any, None] | None:
        """Execute a run up to its first wait; return the rest, if there is one."""
        if run.state is not _RUNNING:
            return None  # cancelled meanwhile
        context = (self._context if run.context is None else run.context).copy()
        run.task = task
        self._beginning = run
        work: Any = _NOT_CALLED
        try:
            work = self._work(run) if self._plain else context.run(self._work, run)
            awaited = context.run(work.send, None)
        except StopIteration as stop:
            run.result = stop.value
        except BaseException as error:
            if work is not _NOT_CALLED and not hasattr(work, "send"):
                said = f"work returned {work!r} and no coroutine; write it with `async def`"
                error = _because(TypeError(said), error)
            elif isinstance(error, GeneratorExit):
                error = _because(RuntimeError(_EXITED), error)
            self._fail(run, error)
            return None
        else:
            return self._work_on(run, _rest(work, awaited, context), task)
        run.task = None
        self._finish(run, _COMPLETED)
        return None

    async def _work_on(
        self, run: Run[M, R], rest: Coroutine[Any, Any, R], task: asyncio.Task[None]
    ) -> None:
        """Execute the rest of a run."""
        self._waiting[task] = run
        task.set_name(f"run {run.id}")
        try:
            result = await rest
        except GeneratorExit:
            raise  # the loop is gone
        except BaseException as error:
            del self._waiting[task]
            self._fail(run, error)
        else:
            del self._waiting[task]
            run.task = None
            if run.ended is None:
                run.result = result
            self._finish(run, _COMPLETED)

    def _fail(self, run: Run[M, R], error: BaseException) -> None:
        """Handle an exception of a run."""
        run.task = None
        if isinstance(error, asyncio.CancelledError):
            if run.state is _RUNNING:
                self._beware()
            self._finish(run, _CANCELLED)
            return
        if run.state is _RUNNING:
            fatal = isinstance(error, _FATAL)
            run.result = RunFailure(run.id, run.session, error, error.__traceback__, fatal)
        else:
            facts = {"run_id": run.id, "session": run.session}
            log.warning("stopped_run_failed", extra=facts, exc_info=error)
        self._finish(run, _FAILED)
        if isinstance(error, _FATAL):
            raise error


@coroutine
def _rest(work: Coroutine[Any, Any, R], awaited: Any, context: Context) -> Generator[Any, None, R]:
    """Await what a coroutine waits for, and execute its next step, until it ends."""
    enter = context.run
    thrown: BaseException | None = None
    while True:
        try:
            yield awaited
        except GeneratorExit:
            enter(work.close)
            raise
        except BaseException as error:
            thrown = error
        try:
            if thrown is None:
                awaited = enter(work.send, None)
            else:
                awaited = enter(work.throw, thrown)
                thrown = None
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]  # typing knows no result of a send
        except GeneratorExit as error:
            # Let through, it would say that this one is to be closed.
            raise RuntimeError(_EXITED) from error


def _because(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error.with_traceback(cause.__traceback__)
