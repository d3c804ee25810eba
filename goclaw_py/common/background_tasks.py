"""Background tasks that are awaited only at shutdown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")


class BackgroundTasks:
    """Keeps tasks alive and logs their errors. ``what`` names them in the log, such as ``jobs``."""

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
