"""Heartbeat runs from claim to end, in this process (SPEC HB-1 to HB-4, HB-9 to HB-12).

This is the part of the scheduled-work engine that is specific to heartbeats: the decision before an
attempt, and the evaluation of its reply.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Final

from goclaw_py.core.ids import AgentName, HeartbeatRunId, NodeId
from goclaw_py.core.metrics import MetricsRecorder
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.retry import retry_until_available
from goclaw_py.core.run_events import NO_USAGE
from goclaw_py.core.text import truncate_bytes
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.clocks import new_id
from goclaw_py.records import RunEnd
from goclaw_py.records.bound import BoundStore
from goclaw_py.schedule.engine import ExecutionEngine, Messages
from goclaw_py.schedule.heartbeat.alerts import Alerts
from goclaw_py.schedule.heartbeat.decisions import (
    BUSY_RETRY,
    FRESH,
    AskAgent,
    Deferred,
    Skipped,
    Verdict,
    for_one,
)
from goclaw_py.schedule.heartbeat.execution import HeartbeatExecution, HeartbeatOutcome
from goclaw_py.schedule.heartbeat.models import (
    REPLY_BYTES,
    Heartbeat,
    HeartbeatClaim,
    HeartbeatRunEnd,
    HeartbeatRunStatus,
)
from goclaw_py.schedule.heartbeat.preconditions import Checks
from goclaw_py.schedule.heartbeat.texts import IS_BUSY
from goclaw_py.schedule.models import Attempt, Next

log = logging.getLogger(__name__)

RETRIES: Final = 2
"""The number of retries after a failed run (SPEC HB-10)."""


class HeartbeatExecutions(
    ExecutionEngine[HeartbeatClaim, HeartbeatExecution, HeartbeatOutcome, HeartbeatRunEnd]
):
    """The heartbeat runs that this process has claimed.

    Args:
        ask: Asks the agent of one.
        freed: Called with each one that has ended.
        on_end: Called with each stored end.
    """

    def __init__(
        self,
        store: BoundStore,
        clock: Clock,
        checks: Checks,
        *,
        ask: Callable[[HeartbeatExecution], None],
        alerts: Alerts,
        freed: Callable[[HeartbeatClaim], None],
        on_end: Callable[[HeartbeatRunEnd], None],
        meter: MetricsRecorder,
    ) -> None:
        super().__init__("heartbeat_run", store, clock)
        self._store = store
        self._policies = checks.policies
        self._checks = checks
        self._ask = ask
        self._alerts = alerts
        self._freed = freed
        self.on_end = on_end
        self._meter = meter

    # ------------------------------------------------------------------ beginning

    async def claim_manual(self, agent: AgentName) -> HeartbeatExecution | None:
        """Claim a manual run and start it; None if another run is unfinished.

        Waits for the database: after a lost response the run may be claimed, and no other node
        could run it. Raises ``Fenced``.
        """
        return await self._side.run_shielded(self._claim_manual(agent))

    async def _claim_manual(self, agent: AgentName) -> HeartbeatExecution | None:
        heartbeat_run, node, now = (
            HeartbeatRunId(new_id(self._clock)),
            self.node(),
            self._clock.now(),
        )
        claimed = await self._store.retried.claim_heartbeat_now(
            node, agent, now=now, heartbeat_run=heartbeat_run
        )
        if claimed is None:
            return None
        execution = self.add(claimed)
        self.begin(execution)
        return execution

    def execution_of(self, claimed: HeartbeatClaim) -> HeartbeatExecution:
        return HeartbeatExecution(claimed, self._policies[claimed.agent], node=self.node())

    async def perform(self, execution: HeartbeatExecution) -> None:
        """Decide whether its agent is asked."""
        heartbeat = execution.claimed.heartbeat
        if execution.looked_at is not None:
            # It may have been switched off, or muted, since.
            heartbeat = await self._as_it_stands(heartbeat)
        verdict = await self._decide(execution, heartbeat)
        if not self.holds(execution) or execution.is_over:
            return
        match verdict:
            case Skipped(skip, noted):
                skipped = HeartbeatRunStatus.SKIPPED
                await self.end(
                    execution, HeartbeatOutcome(skipped, execution.detail, skip=skip, noted=noted)
                )
            case AskAgent():
                execution.attempt += 1
                self._ask(execution)
            case Deferred():
                await self._defer(execution)

    async def _decide(self, execution: HeartbeatExecution, heartbeat: Heartbeat) -> Verdict:
        """Decide, and remember what the agent would be asked."""
        claimed = execution.claimed
        checked = await retry_until_available(
            partial(self._checks.check, claimed.kind, heartbeat, claimed.next_at)
        )
        execution.looked_at, execution.detail = checked.at, checked.detail
        if isinstance(checked.verdict, AskAgent):
            execution.go = checked.verdict
            execution.budget = for_one(execution.policy, checked.looks.spent)
        return checked.verdict

    async def _as_it_stands(self, heartbeat: Heartbeat) -> Heartbeat:
        found = await self._store.retried.heartbeats([heartbeat.agent])
        return found[0] if found else heartbeat

    async def _defer(self, execution: HeartbeatExecution) -> None:
        """Defer it because its agent is busy, at the latest until the next one is due."""
        if not execution.deferred:
            execution.deferred = True
            await self._store.retried.defer_heartbeat(
                execution.id, node=execution.node, detail=IS_BUSY
            )
            log.info("heartbeat_deferred", extra=execution.facts)
        wait_s = BUSY_RETRY.total_seconds()
        if execution.claimed.next_at is not None:
            ahead = (execution.claimed.next_at - self._clock.now()).total_seconds()
            wait_s = min(wait_s, max(ahead, 0.0))
        if self.holds(execution):
            self.wait_until(execution, asyncio.get_running_loop().time() + wait_s)

    async def is_wanted(self, execution: HeartbeatExecution) -> bool:
        """Return whether its agent is still to be asked; waits for the database.

        A recent decision is not repeated.
        """
        if (
            execution.looked_at is not None
            and abs(self._clock.now() - execution.looked_at) <= FRESH
        ):
            return True
        heartbeat = await self._as_it_stands(execution.claimed.heartbeat)
        return isinstance(await self._decide(execution, heartbeat), AskAgent)

    def decide_again(self, execution: HeartbeatExecution) -> bool:
        """Decide again after an attempt that did not start because its decision was too old."""
        execution.attempt -= 1
        execution.run = execution.session = None
        self.start(execution)
        return True

    # ------------------------------------------------------------------ ending

    async def after(
        self, execution: HeartbeatExecution, attempt: Attempt
    ) -> Next | HeartbeatOutcome:
        if attempt.usage is not None:
            execution.usage = (execution.usage or NO_USAGE).plus(attempt.usage)
        if attempt.outcome is Outcome.INTERRUPTED:
            return Next.RELEASE
        if attempt.outcome is Outcome.COMPLETED:
            return await retry_until_available(lambda: self._alerts.of(execution, attempt))
        if attempt.outcome is Outcome.CANCELLED or execution.stopped:
            return self.stopped()
        spent = attempt.side_effects or attempt.reason is Reason.BUDGET
        failed = attempt.outcome in (Outcome.FAILED, Outcome.TIMED_OUT)
        if failed and attempt.retryable and not spent and execution.attempt <= RETRIES:
            return Next.RETRY
        return self.failed(attempt)

    def stopped(self) -> HeartbeatOutcome:
        return HeartbeatOutcome(HeartbeatRunStatus.CANCELLED, "it was stopped")

    def failed(self, attempt: Attempt) -> HeartbeatOutcome:
        return HeartbeatOutcome(HeartbeatRunStatus.FAILED, attempt.error or _WORDLESS)

    async def written(
        self, execution: HeartbeatExecution, finish: HeartbeatOutcome, attempt: Attempt
    ) -> tuple[HeartbeatRunEnd, Messages]:
        del attempt
        end = HeartbeatRunEnd(
            id=execution.id,
            agent=execution.claimed.agent,
            status=finish.status,
            finished_at=self._clock.now(),
            skip=finish.skip,
            detail=finish.detail,
            reply=truncate_bytes(finish.reply, REPLY_BYTES),
            target=finish.target,
            started_at=execution.started_at,
            attempts=execution.attempt,
            failed=_FAILED.get(finish.status),
            done=finish.noted,
            noted_at=execution.looked_at,
        )
        if finish.skip is None and finish.status not in _UNHEARD and execution.go is not None:
            events = tuple(event.id for event in execution.go.events)
            end = replace(end, events=events, done=execution.go.due.keys)
        return end, finish.say

    def bare(self, end: HeartbeatRunEnd) -> HeartbeatRunEnd:
        return replace(end, reply="", detail="its end could not be stored", events=(), done=())

    def run_end(self, run: RunEnd, end: HeartbeatRunEnd) -> RunEnd:
        return replace(run, heartbeat_run=end)

    async def store(self, end: HeartbeatRunEnd, say: Messages, node: NodeId | None) -> None:
        assert node is not None, "a heartbeat run that no node has claimed ends nowhere"
        await self._store.end_heartbeat_run(end, say, node=node)

    def count(self, execution: HeartbeatExecution, end: HeartbeatRunEnd) -> None:
        del execution
        self._meter.heartbeat_ended(end.agent, end.status)

    def finished(
        self,
        execution: HeartbeatExecution,
        finish: HeartbeatOutcome,
        end: HeartbeatRunEnd,
        say: Messages | None,
        attempt: Attempt,
    ) -> None:
        del attempt
        if say is None:
            return
        self.on_end(end)
        how = {"status": end.status, "reason": end.skip, "detail": end.detail}
        log.info("heartbeat_ended", extra={**execution.facts, **how})
        if say or end.failed is not None:
            self._side.go(self._alerts.on_stored(execution, end, finish))

    async def release(self, ids: Collection[str], node: NodeId) -> None:
        await self._store.release_heartbeats([HeartbeatRunId(one) for one in ids], node=node)

    async def release_unknown(self) -> None:
        known = [execution.id for execution in self.all()]
        await self._store.release_unclaimed_heartbeats(known, node=self.node())

    def freed(self, execution: HeartbeatExecution) -> None:
        if not self.holds(execution):
            self._freed(execution.claimed)


_WORDLESS: Final = "its run failed without a word"

_FAILED: Final = {
    HeartbeatRunStatus.OK: False,
    HeartbeatRunStatus.ALERTED: False,
    HeartbeatRunStatus.LOGGED: False,
    HeartbeatRunStatus.DUPLICATE: False,
    HeartbeatRunStatus.NO_ROUTE: False,
    HeartbeatRunStatus.FAILED: True,
}
"""How a status changes the number of failures in a row; others keep it."""

_UNHEARD: Final = frozenset(
    {HeartbeatRunStatus.FAILED, HeartbeatRunStatus.CANCELLED, HeartbeatRunStatus.NO_ROUTE}
)
"""Outcomes after which the next run gets the same events and items again."""
