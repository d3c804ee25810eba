"""Tasks in the background and what they work on, wake-up events, threads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from types import MappingProxyType
from typing import Any, Final, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")


class BackgroundTasks:
    """Keeps tasks alive until a shutdown awaits them, and logs their errors.

    ``what`` names them in the log, such as ``jobs``.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._tasks: set[asyncio.Task[Any]] = set()

    def go(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task; its first step runs when the caller awaits something."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    async def run_shielded(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something to its end and return its result, also if the caller is cancelled."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_end)
        return await asyncio.shield(task)

    def _on_end(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # The caller gets the error, unless it was cancelled.
            log.debug("side_task_failed", extra={"part": self._what, "error": str(error)})

    async def until_done(self) -> None:
        """Wait for the tasks in progress."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("side_task_crashed", extra={"part": self._what}, exc_info=error)


# The log context of a task (SPEC OPS-5).
#
# It is bound once where a task starts a run, an occurrence, a heartbeat run or a delivery.
# Everything that it calls inherits it, also libraries, tools and threads.

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


class WakeEvent:
    """Lets a loop sleep until there is work.

    The order is: ``clear``, look for work, ``wait``. If it were cleared after the look, a call in
    between would be lost and its work would wait for the timeout.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def call(self) -> None:
        """Wake the loop: there may be work."""
        self._event.set()

    @property
    def is_called(self) -> bool:
        """Whether the next ``wait`` returns at once."""
        return self._event.is_set()

    def clear(self) -> None:
        """Let later calls wake the next ``wait``."""
        self._event.clear()

    async def wait(self, limit_s: float) -> None:
        """Sleep until called, at most ``limit_s`` seconds."""
        try:
            async with asyncio.timeout(max(0.0, limit_s)):
                await self._event.wait()
        except TimeoutError:
            return


# Work in threads while the event loop goes on: on long texts, and imports, which share one thread.
#
# Two threads that import a package with cycles between its modules at once (``pydantic_ai`` is
# one) may each get modules of the other that are not complete.

LONG: Final = 8_000
"""The length in characters from which a thread is worth its price: formatting takes 40 µs each."""

_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="imports")


async def in_import_thread(work: Callable[[], T]) -> T:
    """Call a function that imports modules, and return its result.

    Whatever a process imports after its start goes through here. A cancellation does not end
    ``work`` that has begun: the import is finished for those who need it next.
    """
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_THREAD, copy_context().run, work)


async def in_thread_if_long(chars: int, work: Callable[[], T]) -> T:
    """Call a function, in a thread if it works on a text of many characters.

    The event loop would answer nobody meanwhile. A cancellation does not end ``work``.
    """
    return work() if chars <= LONG else await asyncio.to_thread(work)
