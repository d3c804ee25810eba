"""Stores the end of a heartbeat run for the node that has claimed it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from goclaw_py.common.retry import retry_until_available
from goclaw_py.heartbeat.execution import HeartbeatExecution, facts_of
from goclaw_py.heartbeat.models import HeartbeatRunEnd
from goclaw_py.model.errors import Fenced, RunNotStarted
from goclaw_py.model.messages import OutboundMessage
from goclaw_py.model.metrics_port import NO_METER, MetricsRecorder
from goclaw_py.ports.store import HeartbeatStore, RunEnd
from goclaw_py.runs.run_persistence import RunEndStore, store_attempt, store_end

log = logging.getLogger(__name__)


class HeartbeatEndStore(HeartbeatStore, RunEndStore, Protocol):
    """The store operations that this module needs."""


class HeartbeatExecutionEnds:
    """Stores ends; waits for the database."""

    def __init__(self, store: HeartbeatEndStore) -> None:
        self._store = store
        self._meter: MetricsRecorder = NO_METER

    def connect(self, meter: MetricsRecorder) -> None:
        """Give it who counts."""
        self._meter = meter

    async def store(
        self,
        held: HeartbeatExecution,
        end: HeartbeatRunEnd,
        run: RunEnd | None,
        say: Sequence[OutboundMessage],
    ) -> bool:
        """Store an end, with that of its ``run`` and what is said of it, in one transaction.

        An end that cannot be stored because of a bug is stored barely. False if nothing is said:
        then, and if the beat belongs to somebody else by now.
        """
        bare = replace(end, reply="", detail="its end could not be stored", events=(), done=())
        return await store_end(
            "heartbeat_run",
            lambda: self._store_end(held, end, run, say),
            lambda: self._store_end(held, bare, None, ()),
            facts_of(held),
        )

    async def store_run(self, held: HeartbeatExecution, run: RunEnd | None) -> None:
        """Store the end of an attempt that another one follows."""
        await store_attempt(self._store, run, held.node)

    async def give_back(self, held: HeartbeatExecution) -> None:
        """Let it be claimed again."""
        try:
            await retry_until_available(
                lambda: self._store.release_heartbeats([held.id], node=held.node)
            )
        except Fenced as error:
            log.debug("claim_lost", extra={"error": str(error)})

    async def _store_end(
        self,
        held: HeartbeatExecution,
        end: HeartbeatRunEnd,
        run: RunEnd | None,
        say: Sequence[OutboundMessage],
    ) -> None:
        if run is not None:
            try:
                await self._store.finish_run(replace(run, beat=end, say=tuple(say)), node=held.node)
            except RunNotStarted:
                run = None
        if run is None:
            await self._store.notify_of_heartbeat(end, say, node=held.node)
        self._meter.heartbeat_ended(end.agent, end.status)
