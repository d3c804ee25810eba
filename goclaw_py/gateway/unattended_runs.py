"""Finds work of this node that is stored as running although nothing in this process does it.

Only a bug leaves such work. It would stand still for good: its job or heartbeat would count as
running, and its messages would never be answered (SPEC QUEUE-10).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from goclaw_py.chat.outbound import texts
from goclaw_py.cluster.membership import MAX_ATTEMPTS
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.text import count
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import RecoveryReport
from goclaw_py.records.bound import BoundStore
from goclaw_py.schedule.engine import ExecutionEngine
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.operator_warnings import OperatorWarning

log = logging.getLogger(__name__)

LOOK_S: Final = 20.0
"""Seconds between two looks. What both of them find is ended."""

_WARNED_FOR: Final = timedelta(hours=1)


class UnattendedRuns:
    """Ends as lost what two looks in a row have found; it runs again as after a crash.

    Args:
        recovered: Called with what was ended.
    """

    def __init__(
        self,
        store: BoundStore,
        clock: Clock,
        dispatcher: Dispatcher,
        engines: Sequence[ExecutionEngine[Any, Any, Any, Any]],
        recovered: Callable[[RecoveryReport], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._dispatcher = dispatcher
        self._engines = engines
        self._recovered = recovered
        self._suspects: frozenset[str] = frozenset()
        self._ended: list[datetime] = []

    async def watch(self) -> None:
        """Look regularly, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self._check()
            except StoreUnavailable as error:
                log.debug("store_unavailable", extra={"error": str(error), "part": "unattended"})
                self._suspects = frozenset()

    def warnings(self) -> tuple[OperatorWarning, ...]:
        """Return a warning for operators while there was such work within an hour."""
        since = self._clock.now() - _WARNED_FOR
        self._ended = [at for at in self._ended if at > since]
        if not self._ended:
            return ()
        runs = count(len(self._ended), "run")
        return (
            OperatorWarning(
                "gateway.unattended",
                runs,
                "stood still without a task and ended as lost; this is a bug of goclaw, please "
                "report it",
                "/runs?outcome=lost",
                "goclaw runs list --outcome lost",
            ),
        )

    async def _check(self) -> None:
        node = self._store.live()
        if node is None:
            return
        found = await self._store.unattended(node, self._attended())
        # It may have come or gone on while the database was asked.
        sure = self._suspects.intersection(found).difference(self._attended())
        self._suspects = frozenset(found)
        if not sure or self._store.live() != node:
            return
        log.error("runs_unattended", extra={"work": sorted(sure)})
        for engine in self._engines:
            engine.forget_some(sure)
        report = await self._store.recover_work(
            node,
            sure,
            now=self._clock.now(),
            max_attempts=MAX_ATTEMPTS,
            apology=texts.LOST,
        )
        self._ended += [self._clock.now()] * (len(report.cut_runs) or 1)
        self._recovered(report)

    def _attended(self) -> Collection[str]:
        """Return the ids of runs, occurrences and heartbeat runs that this process works on."""
        runs: Iterable[str] = (run.id for run in self._dispatcher.runs())
        mine = set(runs)
        for engine in self._engines:
            mine |= engine.attended(mine)
        return mine
