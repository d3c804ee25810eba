"""Occurrences from their claim to their end, in this process (SPEC CRON-5 to CRON-8).

The feature that uses this performs them: runs of agents in a gateway, callbacks in other programs.
Decisions are in ``jobs.decisions``; ``execution_ends`` says what an end is and stores it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

from goclaw_py.common.background_tasks import BackgroundTasks
from goclaw_py.common.clock import new_id
from goclaw_py.common.log_context import work_on
from goclaw_py.common.retry import attempt_delay_s, retry_until_available
from goclaw_py.delivery import texts
from goclaw_py.jobs.concurrency import ConcurrencyLimiter
from goclaw_py.jobs.decisions import Finish, RetryLater, after, begin
from goclaw_py.jobs.execution import JobExecution, OccurrenceSuperseded, facts_of
from goclaw_py.jobs.execution_ends import (
    NOTHING,
    AttemptOutput,
    JobExecutionEnds,
    JobHandler,
    JobRunStore,
)
from goclaw_py.jobs.execution_models import Attempt, OccurrenceClaim, OccurrenceStatus, Why
from goclaw_py.jobs.models import Job
from goclaw_py.jobs.policy import JobPolicy, Misfire
from goclaw_py.model.ids import JobId, NodeId, OccurrenceId, SessionKey
from goclaw_py.model.metrics_port import NO_METER, MetricsRecorder
from goclaw_py.model.outcomes import Outcome
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import RunEnd

log = logging.getLogger(__name__)

MISSED_APART_S = 1.0
"""What was missed starts one after the other, so that a restart is no stampede (SPEC CRON-6)."""

_MOMENT_S = 0.1
"""How long an occurrence waits whose session was released while it was refused there."""

_SURE_FOR = timedelta(seconds=1)
"""So long after a look at its job an occurrence begins without another one."""


class JobExecutions:
    """The ones that this process has claimed.

    Args:
        base: The policy of the settings.
        freed: Called when there is room for more.
    """

    def __init__(
        self,
        store: JobRunStore,
        clock: Clock,
        node: Callable[[], NodeId],
        base: JobPolicy,
        freed: Callable[[], None],
        meter: MetricsRecorder = NO_METER,
    ) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._base = base
        self._freed = freed
        self._ends = JobExecutionEnds(store, clock, base, meter)
        self._held: dict[OccurrenceId, JobExecution] = {}
        self._timers: dict[OccurrenceId, asyncio.TimerHandle] = {}
        self._room = ConcurrencyLimiter(self._held)
        self._side = BackgroundTasks("jobs")
        self._beginning: dict[OccurrenceId, asyncio.Task[None]] = {}
        """Those that are about to begin an attempt."""
        self._last_missed = -MISSED_APART_S
        self._closing = False

    def connect(self, performer: JobHandler) -> None:
        """Give it who performs. Call it once, before anything is due."""
        self._performer = performer
        self._ends.connect(performer)

    # ------------------------------------------------------------------ looking

    @property
    def load(self) -> int:
        """How many run or wait for a place to run.

        Not those that wait for their next attempt, or for their turn after they were missed.
        """
        return sum(not held.waits for held in self._held.values())

    def of_agent(self, agent: str) -> int:
        """How many jobs of an agent are in hand and not over."""
        return sum(
            held.claimed.job.spec.agent == agent and not held.is_over
            for held in self._held.values()
        )

    def all(self) -> Iterable[JobExecution]:
        """Those in hand, the first claimed first."""
        return tuple(self._held.values())

    def holds(self, held: JobExecution) -> bool:
        """Whether it is in hand."""
        return self._held.get(held.id) is held

    async def is_wanted(self, held: JobExecution) -> bool:
        """Whether its job is still active and has this time (SPEC CRON-11).

        Waits for the database. What was looked at a moment ago is not looked at again.
        """
        now = self._clock.now()
        # Before its time `withdraw` looks, at all of a crowd together.
        if held.early or held.claimed.by_hand or now - held.looked_at < _SURE_FOR:
            return not held.withdrawn
        gone = await retry_until_available(lambda: self._store.withdrawn([held.id]))
        held.looked_at = now
        held.withdrawn |= bool(gone)
        return not held.withdrawn

    # ------------------------------------------------------------------ sessions of other nodes

    async def startable(
        self, claimed: Sequence[OccurrenceClaim], node: NodeId
    ) -> list[OccurrenceClaim]:
        """Those that can begin on this node; the others wait for their session (SPEC CRON-10).

        Raises ``StoreUnavailable``.
        """
        begins = (one for one in claimed if not self._ends_at_once(one))
        asked = {one.id: key for one in begins if (key := self._session(one.job)) is not None}
        if not asked:
            return list(claimed)
        gone = await self._store.wait_for_sessions(asked, node=node, now=self._clock.now())
        for one in claimed:
            if one.id in gone:
                log.info("job_waits_for_session", extra={"job": one.job.id, "occurrence": one.id})
        return [one for one in claimed if one.id not in gone]

    def _ends_at_once(self, claimed: OccurrenceClaim) -> bool:
        """Whether it does not run, wherever: what another process left behind, for instance."""
        try:
            return isinstance(begin(claimed, self._base, now=self._clock.now(), busy=None), Finish)
        except Exception as error:
            # A boundary: `hold` ends what cannot be made out.
            log.debug("job_session_unknown", extra={"error": repr(error)})
            return True

    def _session(self, job: Job) -> SessionKey | None:
        try:
            return self._performer.session(job, job.policy(self._base))
        except Exception as error:
            # A boundary: `hold` ends what cannot be made out.
            log.debug("job_session_unknown", extra={"error": repr(error)})
            return None

    async def wait_elsewhere(self, held: JobExecution) -> bool:
        """Let one wait for its session if another node holds that; False: it stays here.

        Waits for the database.
        """
        session = held.session or self._session(held.claimed.job)
        if session is None:
            return False
        asked = {held.id: session}
        gone = await retry_until_available(
            lambda: self._store.wait_for_sessions(asked, node=held.node, now=self._clock.now())
        )
        if gone:
            log.info("job_waits_for_session", extra={**facts_of(held), "session": session})
            self._drop(held)
        return bool(gone)

    async def refused(self, held: JobExecution) -> bool:
        """Its run could not begin in its session: it waits for that, or tries again in a moment.

        Whether it waits. Waits for the database.
        """
        if not self.holds(held) or held.is_over:
            return False
        if held.stopped:
            await self.end(held, Finish(OccurrenceStatus.CANCELLED, Why.STOPPED))
        elif await self.wait_elsewhere(held):
            return True
        elif self._closing:
            await self._give_back(held)
        elif self.holds(held):
            # Whoever held its session has released it meanwhile.
            held.attempt -= 1
            self._begin_later(held, asyncio.get_running_loop().time() + _MOMENT_S)
        return False

    async def end_waiting(self, claimed: OccurrenceClaim) -> bool:
        """End one that waits and that no node has claimed, on request; False: one has, by now.

        Raises ``StoreUnavailable``.
        """
        held = self._held_of(claimed)
        return await self._ends.store_unclaimed(
            held, Finish(OccurrenceStatus.CANCELLED, Why.STOPPED)
        )

    # ------------------------------------------------------------------ beginning

    async def take(self, claimed: Sequence[OccurrenceClaim]) -> None:
        """Begin what was claimed, or end what does not run. Returns soon, whatever they do."""
        over: list[tuple[JobExecution, Finish]] = []
        for one in claimed:
            held = self.hold(one)
            held.early = one.due_at > self._clock.now()
            decided = self._decide(held)
            if isinstance(decided, Finish):
                held.is_over = True
                over.append((held, decided))
            elif self._is_missed(held):
                self._begin_later(held, self._turn_of_missed())
            else:
                self._begin(held)
        if over:
            self._side.go(self._end_unbegun(over))

    def _decide(self, held: JobExecution) -> Finish | None:
        """How it ends without having begun, None if it begins."""
        if held.fault:
            return Finish(OccurrenceStatus.FAILED)
        claimed = held.claimed
        try:
            busy = self._performer.busy(claimed.job, held.policy)
            decided = begin(claimed, self._base, now=self._clock.now(), busy=busy)
        except Exception as error:
            # A boundary: a job that this release cannot make out must not stop the others.
            log.exception("job_unreadable", extra=facts_of(held))
            held.fault = f"{type(error).__name__}: {error}"
            return Finish(OccurrenceStatus.FAILED)
        return decided if isinstance(decided, Finish) else None

    async def withdraw(self) -> None:
        """Let those not run that wait for their time, if people have changed their job since.

        Raises ``StoreUnavailable``.
        """
        early = {held.id: held for held in self._held.values() if held.early}
        if early:
            for gone in await self._store.withdrawn(early):
                early[gone].withdrawn = True

    async def claim_by_hand(self, job: JobId) -> JobExecution | None:
        """Claim a job because somebody asks for it; None if one of it runs.

        Waits for the database: if an answer is lost the job may be claimed, and nobody else could
        run it any more. Raises ``UnknownJob`` and ``Fenced``.
        """
        occurrence = OccurrenceId(new_id(self._clock))
        node, now = self._node(), self._clock.now()
        claimed = await retry_until_available(
            lambda: self._store.claim_now(node, job, now=now, occurrence=occurrence)
        )
        return None if claimed is None else self.hold(claimed)

    def hold(self, claimed: OccurrenceClaim) -> JobExecution:
        """Have an occurrence in hand."""
        held = self._held_of(claimed)
        self._held[held.id] = held
        return held

    def _held_of(self, claimed: OccurrenceClaim) -> JobExecution:
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
            self._node(),
            looked_at=claimed.claimed_at,
            attempt=claimed.attempts,
            fault=fault,
        )

    def _begin(self, held: JobExecution) -> None:
        """Begin an attempt as soon as its agent has room (SPEC CRON-10)."""
        if self._room.has(held):
            self.start(held)
        else:
            self._room.enqueue_run(held)

    def start(self, held: JobExecution) -> None:
        """Begin its next attempt."""
        held.attempt += 1
        held.waits = False
        task = self._side.go(self._perform(held))
        self._beginning[held.id] = task
        task.add_done_callback(lambda _: self._beginning.pop(held.id, None))

    async def _perform(self, held: JobExecution) -> None:
        job = held.claimed.job
        work_on(job=job.id, slug=job.spec.slug, occurrence=held.id, session=held.session)
        try:
            if not await self.is_wanted(held):
                raise OccurrenceSuperseded(held.id)
            if self.holds(held) and not held.stopped:
                await self._performer.perform(held)
        except OccurrenceSuperseded:
            await self.end(held, Finish(OccurrenceStatus.CANCELLED, Why.STOPPED))
        except Exception as bug:
            # A boundary: what one job meets must not stop the others.
            log.exception("job_crashed", extra=facts_of(held))
            await self.ended(held, failed_by(bug), AttemptOutput(), None)

    def _is_missed(self, held: JobExecution) -> bool:
        claimed = held.claimed
        grace = timedelta(seconds=held.policy.misfire_grace_s)
        late = claimed.claimed_at - claimed.due_at > grace
        return (
            late and not (claimed.by_hand or claimed.waited) and held.policy.misfire is Misfire.ONCE
        )

    def _turn_of_missed(self) -> float:
        """When the next one that was missed may begin, by the loop's clock."""
        now = asyncio.get_running_loop().time()
        self._last_missed = max(now, self._last_missed + MISSED_APART_S)
        return self._last_missed

    def _begin_later(self, held: JobExecution, at: float) -> None:
        held.waits = True
        loop = asyncio.get_running_loop()
        self._timers[held.id] = loop.call_at(at, self._on_timer, held)

    def _on_timer(self, held: JobExecution) -> None:
        self._timers.pop(held.id, None)
        if self.holds(held):
            self._begin(held)

    # ------------------------------------------------------------------ ending

    async def ended(
        self, held: JobExecution, attempt: Attempt, said: AttemptOutput, run: RunEnd | None
    ) -> None:
        """An attempt is over: store that, and do what follows. Returns when it is stored.

        ``run`` is the end of its run, None if it had none or it never began.
        """
        verdict = after(held.claimed, self._base, attempt, held.attempt)
        if isinstance(verdict, Finish):
            await self._end(held, verdict, attempt, said, run)
            return
        await self._ends.store_run(held, run)
        if not isinstance(verdict, RetryLater) or self._closing:
            await self._give_back(held)
        elif held.stopped:
            await self.end(held, Finish(OccurrenceStatus.CANCELLED, Why.STOPPED))
        elif self.holds(held):
            delay_s = attempt_delay_s(held.attempt)
            log.info(
                "job_retry", extra={**facts_of(held), "retry_in_s": delay_s, "error": attempt.error}
            )
            self._begin_later(held, asyncio.get_running_loop().time() + delay_s)
            self._freed()

    async def end(self, held: JobExecution, end: Finish, attempt: Attempt = NOTHING) -> None:
        """End one that has not begun, or that begins no more."""
        await self._end(held, end, attempt, AttemptOutput(), None)

    async def _end(
        self,
        held: JobExecution,
        end: Finish,
        attempt: Attempt,
        said: AttemptOutput,
        run: RunEnd | None,
    ) -> None:
        held.is_over = True
        try:
            say = await self._ends.store(held, end, attempt, said, run)
        finally:
            self._drop(held)
        error = attempt.friendly or attempt.error or held.fault
        self._side.go(self._performer.told(held, end, say, said, error))

    async def _end_unbegun(self, over: Sequence[tuple[JobExecution, Finish]]) -> None:
        for held, end in over:
            if end.status is not OccurrenceStatus.LOST:
                log.info("job_skipped", extra={**facts_of(held), "reason": end.why})
            attempt = NOTHING
            if end.why is Why.EFFECTS:
                said = texts.not_repeated(held.claimed.called)
                attempt = replace(NOTHING, error=said, friendly=said)
            try:
                await self.end(held, end, attempt)
            except Exception:
                log.exception("job_end_failed", extra=facts_of(held))

    async def _give_back(self, held: JobExecution) -> None:
        if held.claimed.by_hand:
            await self.end(held, Finish(OccurrenceStatus.INTERRUPTED), Attempt(Outcome.INTERRUPTED))
            return
        try:
            await self._ends.give_back(held)
        finally:
            self._drop(held)

    def stop(self, held: JobExecution) -> None:
        """Let it begin no more attempt, on request; one that waits for it ends now."""
        held.stopped = True
        if not held.waits:
            return
        held.waits = False
        self._room.forget(held)
        if (timer := self._timers.pop(held.id, None)) is not None:
            timer.cancel()
        self._side.go(self.end(held, Finish(OccurrenceStatus.CANCELLED, Why.STOPPED)))

    def fail(self, held: JobExecution, error: BaseException) -> None:
        """End one that could not begin, whatever becomes of who asks for that."""
        self._side.go(self.ended(held, failed_by(error), AttemptOutput(), None))

    # ------------------------------------------------------------------ the end of the process

    async def close(self) -> None:
        """Give back what waits; nothing begins any more. What runs is ended by who performs it."""
        self._closing = True
        self._forget_waits()
        unbegun = [held for held in self.all() if held.waits]
        for id_, task in tuple(self._beginning.items()):
            held = self._held.get(id_)
            if held is not None and held.run is None and not held.is_over:
                # A work source, say, that takes its time.
                task.cancel()
                unbegun.append(held)
        await asyncio.gather(*(self._give_back(held) for held in unbegun))
        await self._side.until_done()

    def forget(self) -> None:
        """This node was declared dead: what it had in hand belongs to others."""
        self._forget_waits()
        self._held.clear()

    def _forget_waits(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._room.clear()

    def _drop(self, held: JobExecution) -> None:
        if not self.holds(held):
            return
        del self._held[held.id]
        if (timer := self._timers.pop(held.id, None)) is not None:
            timer.cancel()
        self._room.forget(held)
        for other in self._room.admit():
            self.start(other)
        self._freed()


def failed_by(error: BaseException) -> Attempt:
    """An attempt that met this before it began."""
    return Attempt(Outcome.FAILED, error=f"{type(error).__name__}: {error}")
