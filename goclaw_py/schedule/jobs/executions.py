"""Occurrences from their claim to their end, in this process (SPEC CRON-5 to CRON-8).

This is the part of the scheduled-work engine that is specific to jobs. A ``JobHandler`` executes
them: as agent runs in a gateway, as callbacks in other programs. Decisions are in
``schedule.jobs.decisions``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from goclaw_py.chat.outbound import texts
from goclaw_py.core.errors import Fenced
from goclaw_py.core.ids import JobId, NodeId, OccurrenceId, SessionKey
from goclaw_py.core.metrics import NO_METER, MetricsRecorder
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.retry import retry_until_available
from goclaw_py.core.text import truncate_bytes
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.clocks import new_id
from goclaw_py.records import RunEnd
from goclaw_py.schedule.engine import ExecutionEngine, Messages
from goclaw_py.schedule.jobs.decisions import MISSED_APART, Finish, after, begin, replanned, settled
from goclaw_py.schedule.jobs.execution import EndReport, JobExecution, JobHandler, JobRunStore
from goclaw_py.schedule.jobs.execution_models import (
    OUTPUT_BYTES,
    JobUpdate,
    OccurrenceClaim,
    OccurrenceEnd,
    OccurrenceStatus,
    Why,
)
from goclaw_py.schedule.jobs.models import Job, JobState
from goclaw_py.schedule.jobs.policy import JobPolicy, Misfire
from goclaw_py.schedule.models import NOTHING, Attempt, Next, Superseded, failed_by

log = logging.getLogger(__name__)

_MOMENT_S = 0.1
"""Seconds until an occurrence tries again whose session became free while it was refused there."""

_SURE_FOR = timedelta(seconds=1)
"""An occurrence starts without checking its job again this long after a check."""


class JobExecutions(ExecutionEngine[OccurrenceClaim, JobExecution, Finish, OccurrenceEnd]):
    """The occurrences that this process has claimed.

    Args:
        base: The policy of the settings.
        freed: Called when there is room for more.
        on_disabled: Called with a job that was disabled after failures.
    """

    def __init__(
        self,
        store: JobRunStore,
        clock: Clock,
        base: JobPolicy,
        *,
        handler: JobHandler,
        freed: Callable[[], None],
        on_disabled: Callable[[Job], Coroutine[None, None, None]] | None = None,
        meter: MetricsRecorder = NO_METER,
    ) -> None:
        super().__init__("occurrence", store, clock)
        self._store = store
        self._base = base
        self._handler = handler
        self._freed = freed
        self._on_disabled = on_disabled
        self._meter = meter
        self._line: dict[OccurrenceId, JobExecution] = {}
        """Occurrences whose agent is at its limit (SPEC CRON-10)."""
        self._last_missed = -MISSED_APART.total_seconds()

    # ------------------------------------------------------------------ looking

    @property
    def load(self) -> int:
        """Return how many are running or wait for a slot.

        Those that wait for a retry, or for their turn after they were missed, do not count.
        """
        return sum(not execution.waits for execution in self._executions.values())

    def of_agent(self, agent: str) -> int:
        """Return how many unfinished occurrences of an agent are claimed here."""
        return sum(
            execution.claimed.job.spec.agent == agent and not execution.is_over
            for execution in self._executions.values()
        )

    def replanned(self, job: Job, now: datetime) -> datetime | None:
        """Return the next run of a waiting job if a clock that was ahead has planned it."""
        try:
            return replanned(job, self._base, now=now)
        except Exception:
            # A boundary: a job that this release cannot make out must not stop the others.
            log.exception("job_unreadable", extra={"job": job.id})
            return None

    async def is_wanted(self, execution: JobExecution) -> bool:
        """Return whether its job is still active and due at its time (SPEC CRON-11).

        Waits for the database, unless the job was checked a moment ago.
        """
        now = self._clock.now()
        # Before its time `withdraw` looks, at all of a crowd together.
        if (
            execution.early
            or execution.claimed.manual
            or abs(now - (execution.looked_at or now)) < _SURE_FOR
        ):
            return not execution.withdrawn
        gone = await self._store.retried.withdrawn([execution.id])
        execution.looked_at = now
        execution.withdrawn |= bool(gone)
        return not execution.withdrawn

    # ------------------------------------------------------------------ sessions of other nodes

    async def startable(
        self, claimed: Sequence[OccurrenceClaim], node: NodeId
    ) -> list[OccurrenceClaim]:
        """Return those that can start on this node; the others wait for their session (CRON-10).

        Raises ``StoreUnavailable``.
        """
        asked = {one.id: key for one in claimed if (key := self._awaited(one)) is not None}
        if not asked:
            return list(claimed)
        gone = await self._store.wait_for_sessions(asked, node=node, now=self._clock.now())
        for one in claimed:
            if one.id in gone:
                log.info("job_waits_for_session", extra={"job": one.job.id, "occurrence": one.id})
        return [one for one in claimed if one.id not in gone]

    def _awaited(self, claimed: OccurrenceClaim) -> SessionKey | None:
        """Return the session that an occurrence needs; None if it needs none or does not run."""
        try:
            if begin(claimed, self._base, now=self._clock.now(), busy=None) is not None:
                return None
            return self._handler.session(claimed.job, claimed.job.policy(self._base))
        except Exception as error:
            # A boundary: `take` ends what cannot be made out.
            log.debug("job_session_unknown", extra={"error": repr(error)})
            return None

    async def wait_elsewhere(self, execution: JobExecution) -> bool:
        """Make an execution wait for its session; return False if no other node owns the session.

        Waits for the database.
        """
        session = execution.session or self._awaited(execution.claimed)
        if session is None:
            return False
        asked = {execution.id: session}
        gone = await retry_until_available(
            lambda: self._store.wait_for_sessions(asked, node=execution.node, now=self._clock.now())
        )
        if gone:
            log.info("job_waits_for_session", extra={**execution.facts, "session": session})
            self._drop(execution)
        return bool(gone)

    async def refused(self, execution: JobExecution) -> bool:
        """Handle a run that could not start in its session: it waits for it, or retries soon.

        Returns whether it waits. Waits for the database.
        """
        if not self.holds(execution) or execution.is_over:
            return False
        if execution.stopped:
            await self.end(execution, self.stopped())
        elif await self.wait_elsewhere(execution):
            return True
        elif self._closing:
            await self.give_back(execution)
        elif self.holds(execution):
            # Its session was released in the meantime.
            execution.attempt -= 1
            self.wait_until(execution, asyncio.get_running_loop().time() + _MOMENT_S)
        return False

    async def end_waiting(self, claimed: OccurrenceClaim) -> bool:
        """End a waiting occurrence on request. Returns False if a node has claimed it.

        Raises ``StoreUnavailable``.
        """
        execution = self.execution_of(claimed)
        end, say = await self.written(execution, self.stopped(), NOTHING)
        try:
            await self.store(end, say, None)
        except Fenced:
            return False
        self._meter.occurrence_ended(end.status, None)
        return True

    # ------------------------------------------------------------------ beginning

    def start_claimed(self, claimed: Sequence[OccurrenceClaim]) -> None:
        """See ``ExecutionEngine``. Missed occurrences start one after the other."""
        for one in claimed:
            execution = self.add(one)
            execution.early = one.due_at > self._clock.now()
            decided = self._decide(execution)
            if decided is not None:
                execution.is_over = True
                self._side.go(self._end_unbegun(execution, decided))
            elif self._is_missed(execution):
                self.wait_until(execution, self._turn_of_missed())
            else:
                self.begin(execution)

    def _decide(self, execution: JobExecution) -> Finish | None:
        """Return the end of an occurrence that does not run, None if it runs."""
        if execution.fault:
            return Finish(OccurrenceStatus.FAILED)
        claimed = execution.claimed
        try:
            busy = self._handler.busy(claimed.job, execution.policy)
            return begin(claimed, self._base, now=self._clock.now(), busy=busy)
        except Exception as error:
            # A boundary: a job that this release cannot make out must not stop the others.
            log.exception("job_unreadable", extra=execution.facts)
            execution.fault = f"{type(error).__name__}: {error}"
            return Finish(OccurrenceStatus.FAILED)

    async def withdraw(self) -> None:
        """Withdraw occurrences that wait for their time and whose job was changed.

        Raises ``StoreUnavailable``.
        """
        early = {
            execution.id: execution for execution in self._executions.values() if execution.early
        }
        if early:
            for gone in await self._store.withdrawn(early):
                early[gone].withdrawn = True

    async def claim_manual(self, job: JobId) -> JobExecution | None:
        """Claim a job for a manual run; None if a run is in progress.

        Waits for the database: after a lost response the job may be claimed, and no other node
        could run it. Raises ``UnknownJob`` and ``Fenced``.
        """
        occurrence = OccurrenceId(new_id(self._clock))
        node, now = self.node(), self._clock.now()
        claimed = await self._store.retried.claim_now(node, job, now=now, occurrence=occurrence)
        return None if claimed is None else self.add(claimed)

    def execution_of(self, claimed: OccurrenceClaim) -> JobExecution:
        fault = ""
        try:
            policy = claimed.job.policy(self._base)
        except Exception as error:
            # A boundary, as above.
            log.exception("job_policy_failed", extra={"job": claimed.job.id})
            policy, fault = self._base, f"{type(error).__name__}: {error}"
        return JobExecution(
            claimed,
            policy,
            node=self.node(),
            looked_at=claimed.claimed_at,
            attempt=claimed.attempts,
            started_at=claimed.began_at,
            fault=fault,
        )

    def begin(self, execution: JobExecution) -> None:
        """Start an attempt once its agent is below its limit (SPEC CRON-10)."""
        if self._has_room(execution):
            self.start(execution)
        else:
            execution.waits = True
            self._line[execution.id] = execution

    def _has_room(self, execution: JobExecution) -> bool:
        """Return whether its agent is below its limit.

        An occurrence that waits for a retry keeps its place.
        """
        agent, most = execution.claimed.job.spec.agent, execution.policy.max_per_agent
        if most is None:
            return True
        others = (other for other in self._executions.values() if other is not execution)
        return sum(o.has_begun for o in others if o.claimed.job.spec.agent == agent) < most

    def start(self, execution: JobExecution) -> None:
        execution.attempt += 1
        super().start(execution)

    async def perform(self, execution: JobExecution) -> None:
        if execution.stopped or not await self.is_wanted(execution) or execution.stopped:
            raise Superseded(execution.id)
        if self.holds(execution):
            await self._handler.perform(execution)

    def _is_missed(self, execution: JobExecution) -> bool:
        claimed = execution.claimed
        grace = timedelta(seconds=execution.policy.misfire_grace)
        late = claimed.claimed_at - claimed.due_at > grace
        return (
            late
            and not (claimed.manual or claimed.waited)
            and execution.policy.misfire is Misfire.ONCE
        )

    def _turn_of_missed(self) -> float:
        """Return when the next missed occurrence may start, by the loop's clock."""
        now = asyncio.get_running_loop().time()
        self._last_missed = max(now, self._last_missed + MISSED_APART.total_seconds())
        return self._last_missed

    # ------------------------------------------------------------------ ending

    async def after(self, execution: JobExecution, attempt: Attempt) -> Next | Finish:
        verdict = after(execution.claimed, self._base, attempt, execution.attempt)
        return self.stopped() if verdict is Next.PARK and execution.stopped else verdict

    def stopped(self) -> Finish:
        return Finish(OccurrenceStatus.CANCELLED, Why.STOPPED)

    def failed(self, attempt: Attempt) -> Finish:
        del attempt
        return Finish(OccurrenceStatus.FAILED)

    async def _end_unbegun(self, execution: JobExecution, end: Finish) -> None:
        if end.status is not OccurrenceStatus.LOST:
            log.info("job_skipped", extra={**execution.facts, "reason": end.why})
        attempt = NOTHING
        if end.status is OccurrenceStatus.LOST:
            attempt = replace(NOTHING, error=texts.crashed(max(1, execution.claimed.claims - 1)))
        if end.why is Why.EFFECTS:
            said = texts.not_repeated(execution.claimed.called)
            attempt = replace(NOTHING, error=said, friendly=said)
        try:
            await self.end(execution, end, attempt)
        except Exception:
            log.exception("job_end_failed", extra=execution.facts)

    async def written(
        self, execution: JobExecution, finish: Finish, attempt: Attempt
    ) -> tuple[OccurrenceEnd, Messages]:
        claimed, now = execution.claimed, self._clock.now()
        update = self._settled(execution, finish)
        error = attempt.error or execution.fault
        report = await self._notifications(execution, finish, update, replace(attempt, error=error))
        say, status = report.say, finish.status
        if report.no_route:
            status, error = OccurrenceStatus.NO_ROUTE, report.no_route
        if update is not None and update.delete:
            # What it says is not lost with it if there is nowhere to say it (SPEC CRON-9).
            kept = bool(report.no_route)
            update = replace(update, delete=not kept, when_delivered=bool(say))
        done = OccurrenceEnd(
            id=claimed.id,
            job=claimed.job.id,
            revision=claimed.job.revision,
            status=status,
            finished_at=now,
            update=update,
            why=finish.why or report.silent,
            output=truncate_bytes(attempt.text, OUTPUT_BYTES),
            error=error,
            attempts=execution.attempt,
            started_at=execution.started_at,
            usage=attempt.usage,
            keep=execution.policy.history_keep,
        )
        return done, say

    def _settled(self, execution: JobExecution, end: Finish) -> JobUpdate | None:
        """Return how the end changes the job; a job that cannot be read is disabled."""
        claimed, now = execution.claimed, self._clock.now()
        try:
            if not execution.fault:
                return settled(claimed, self._base, end, started_at=execution.started_at, now=now)
        except Exception as error:
            # A boundary: a zone, say, that this machine does not know any more.
            log.exception("job_schedule_failed", extra=execution.facts)
            execution.fault = f"{type(error).__name__}: {error}"
        off = JobUpdate(next_run_at=None, state=JobState.DISABLED)
        return None if claimed.manual else off

    async def _notifications(
        self, execution: JobExecution, end: Finish, update: JobUpdate | None, attempt: Attempt
    ) -> EndReport:
        try:
            return await retry_until_available(
                lambda: self._handler.notifications(execution, end, update, attempt)
            )
        except Exception:
            if end.status is OccurrenceStatus.OK:
                raise  # the result cannot be told, so the run has failed
            # A boundary: a text that cannot be written must not keep its job from going on.
            log.exception("job_result_failed", extra=execution.facts)
            return EndReport()

    def bare(self, end: OccurrenceEnd) -> OccurrenceEnd:
        return replace(end, output="", error="its result could not be stored")

    def run_end(self, run: RunEnd, end: OccurrenceEnd) -> RunEnd:
        return replace(run, occurrence=end)

    async def store(self, end: OccurrenceEnd, say: Messages, node: NodeId | None) -> None:
        await self._store.end_occurrence(end, say, node=node)

    def count(self, execution: JobExecution, end: OccurrenceEnd) -> None:
        """See ``ExecutionEngine``. A manual run has no delay to count."""
        lag_s = None
        if execution.started_at is not None and not execution.claimed.manual:
            lag_s = (execution.started_at - execution.claimed.due_at).total_seconds()
        self._meter.occurrence_ended(end.status, lag_s)

    def finished(
        self,
        execution: JobExecution,
        finish: Finish,
        end: OccurrenceEnd,
        say: Messages | None,
        attempt: Attempt,
    ) -> None:
        update = end.update
        if update is not None and update.state is JobState.DISABLED and self._on_disabled:
            self._side.go(self._on_disabled(execution.claimed.job))
        error = attempt.friendly or attempt.error or execution.fault
        told = replace(attempt, friendly=error)
        self._side.go(self._handler.on_notified(execution, finish, say or (), told))

    async def parked(self, execution: JobExecution) -> None:
        """See ``ExecutionEngine``. One that was stopped while it asked ends."""
        if execution.stopped:
            await retry_until_available(lambda: self.end_waiting(execution.claimed))

    async def give_back(self, execution: JobExecution) -> None:
        """See ``ExecutionEngine``. A manual run ends, because it would not be claimed again."""
        if execution.claimed.manual:
            cut = Attempt(Outcome.INTERRUPTED)
            await self.end(execution, Finish(OccurrenceStatus.INTERRUPTED), cut)
        else:
            await super().give_back(execution)

    async def release(self, ids: Collection[str], node: NodeId) -> None:
        claimed, status = [OccurrenceId(one) for one in ids], OccurrenceStatus.INTERRUPTED
        await self._store.give_back(claimed, node=node, status=status)

    async def release_unknown(self) -> None:
        known = [execution.id for execution in self.all()]
        await self._store.release_unclaimed(known, node=self.node())

    def fail(self, execution: JobExecution, error: BaseException) -> None:
        """End an occurrence that could not start, also if the caller is cancelled."""
        self._side.go(self.ended(execution, failed_by(error), None))

    def forget_turn(self, execution: JobExecution) -> None:
        super().forget_turn(execution)
        self._line.pop(execution.id, None)

    def freed(self, execution: JobExecution) -> None:
        """Start occurrences for which there is room now, in order."""
        del execution
        if self._line:
            # Counted once: hundreds may wait, and looking at all for each takes the square of that.
            begun = Counter(
                o.claimed.job.spec.agent for o in self._executions.values() if o.has_begun
            )
            for waiting in tuple(self._line.values()):
                agent, most = waiting.claimed.job.spec.agent, waiting.policy.max_per_agent
                if most is None or begun[agent] - waiting.has_begun < most:
                    begun[agent] += not waiting.has_begun
                    del self._line[waiting.id]
                    self.start(waiting)
        self._freed()
