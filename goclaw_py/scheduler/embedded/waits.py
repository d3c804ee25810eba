"""Detection of deadlocks when a run awaits another run.

A cycle can be closed by an ``await``, so it is checked when the wait begins. Rarely, it can be
closed later, when other runs get the limited agent that the awaited run needs, or when lanes
shrink; so the check is repeated at growing intervals.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from goclaw_py.core.ids import RunId
from goclaw_py.scheduler.embedded.run import Run, WouldDeadlock
from goclaw_py.scheduler.models import Family

_FIRST_LOOK_S = 1.0
_MAX_PAUSE_S = 60.0

WouldWait = Callable[[RunId, RunId], bool]
"""Whether the second run cannot end before the first one has."""


class InnerWait:
    """The wait of a run for another run, from its beginning to ``end``.

    Raises ``WouldDeadlock`` if it would last forever; if that is found later, ``waiter`` gets it.
    """

    def __init__(
        self,
        run: Run[Any, Any],
        awaited: Run[Any, Any],
        waiter: asyncio.Future[None],
        would_wait: WouldWait,
    ) -> None:
        self._run = run
        self._awaited = awaited
        self._waiter = waiter
        self._would_wait = would_wait
        self._pause_s = _FIRST_LOOK_S
        if would_wait(run.id, awaited.id):
            raise self._error()
        self._family = run.family = run.family or Family()
        self._family.awaits = awaited
        self._timer = waiter.get_loop().call_later(self._pause_s, self._check)

    def end(self) -> None:
        """End the wait."""
        self._family.awaits = None
        self._timer.cancel()

    def _check(self) -> None:
        if self._waiter.done():
            return
        if self._would_wait(self._run.id, self._awaited.id):
            self._waiter.set_exception(self._error())
            return
        self._pause_s = min(2 * self._pause_s, _MAX_PAUSE_S)
        self._timer = self._waiter.get_loop().call_later(self._pause_s, self._check)

    def _error(self) -> WouldDeadlock:
        run, awaited = self._run.id, self._awaited.id
        return WouldDeadlock(
            f"run {run} awaits run {awaited}, which cannot end before run {run} has; submit it to "
            "a session of its own, with parent=run and awaited=True"
        )
