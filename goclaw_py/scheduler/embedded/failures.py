"""Exceptions of runs that were not awaited.

An awaited run raises its exception. If it is not awaited for a while, or can no longer be, the
exception is logged, because most programs never await what they submit. It is not logged at once: a
caller that submits ten runs and awaits them in turn reaches a failed one late.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from types import TracebackType

log = logging.getLogger(__name__)

_PATIENCE_S = 10.0


@dataclass(slots=True, eq=False)
class RunFailure:
    """The exception of a run. ``seen``: it was awaited or logged."""

    run_id: str
    session: str
    error: BaseException
    traceback: TracebackType | None
    seen: bool = False

    def again(self) -> BaseException:
        """Return the exception for another caller that awaits the run."""
        self.seen = True
        # Else it would grow with everyone who awaits.
        return self.error.with_traceback(self.traceback)

    def log(self) -> None:
        """Log it, unless it was awaited."""
        if not self.seen:
            self.seen = True
            facts = {"run_id": self.run_id, "session": self.session}
            log.error("run_failed_unawaited", extra=facts, exc_info=self.error)

    def __del__(self) -> None:
        self.log()


class Failures:
    """Failures of a scheduler that were neither awaited nor logged yet."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._unseen: deque[tuple[float, RunFailure]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, failure: RunFailure) -> None:
        """Log it in a while, unless it is awaited by then."""
        self._unseen.append((self._loop.time() + _PATIENCE_S, failure))
        if self._timer is None:
            self._timer = self._loop.call_later(_PATIENCE_S, self._log_due)

    def forget(self) -> None:
        """Stop the timer. Each failure is logged when its run is garbage-collected."""
        self._unseen.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _log_due(self) -> None:
        self._timer = None
        now = self._loop.time()
        while self._unseen and (self._unseen[0][0] <= now or self._unseen[0][1].seen):
            self._unseen.popleft()[1].log()
        if self._unseen:
            self._timer = self._loop.call_at(self._unseen[0][0], self._log_due)
