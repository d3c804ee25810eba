"""Stores the end of an occurrence, together with its notifications."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from goclaw_py.common.retry import retry_until_available
from goclaw_py.common.text import cut_bytes
from goclaw_py.jobs.decisions import Finish, settled
from goclaw_py.jobs.execution import JobExecution, facts_of
from goclaw_py.jobs.execution_models import (
    OUTPUT_BYTES,
    Attempt,
    JobUpdate,
    OccurrenceEnd,
    OccurrenceStatus,
    Why,
)
from goclaw_py.jobs.models import Job, JobState
from goclaw_py.jobs.policy import JobPolicy
from goclaw_py.model.errors import Fenced, RunNotStarted
from goclaw_py.model.ids import SessionKey
from goclaw_py.model.messages import OutboundMessage, OutFile
from goclaw_py.model.metrics_port import NO_METER, MetricsRecorder
from goclaw_py.model.outcomes import Outcome
from goclaw_py.model.run_events import Usage
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import EndedOccurrence, JobStore, RunEnd
from goclaw_py.runs.run_persistence import RunEndStore, store_attempt, store_end

log = logging.getLogger(__name__)

NOTHING = Attempt(Outcome.REJECTED)
"""What is known of an attempt that never began."""

Messages = tuple[OutboundMessage, ...]


@dataclass(frozen=True, slots=True)
class AttemptOutput:
    """The output and usage of an attempt."""

    text: str = ""
    usage: Usage | None = None
    files: tuple[OutFile, ...] = ()


@dataclass(frozen=True, slots=True)
class EndReport:
    """The notifications about an end.

    Args:
        silent: Why nobody is told what went well.
        no_route: Why there is no chat that could be told; "" if there is.
    """

    say: Messages = ()
    silent: Why | None = None
    no_route: str = ""


class JobHandler(Protocol):
    """Executes jobs."""

    def busy(self, job: Job, policy: JobPolicy) -> Why | None:
        """Why there is no room for a job now; None: there is."""

    def session(self, job: Job, policy: JobPolicy) -> SessionKey | None:
        """The session that a job needs for its run; None: none that others could hold."""

    async def perform(self, held: JobExecution) -> None:
        """Begin an attempt; whatever comes of it, ``JobExecutions.ended`` is told.

        Cancelled, it has not begun.
        """

    async def tell(
        self,
        held: JobExecution,
        end: Finish,
        update: JobUpdate | None,
        attempt: Attempt,
        said: AttemptOutput,
    ) -> EndReport:
        """What people are told of the end of an occurrence. Raises ``StoreUnavailable``."""

    async def told(
        self,
        held: JobExecution,
        end: Finish,
        say: Sequence[OutboundMessage],
        said: AttemptOutput,
        error: str,
    ) -> None:
        """The end is stored, and with it what is told; ``error`` is the cause of a failure."""


class JobRunStore(JobStore, RunEndStore, Protocol):
    """The store operations that this module needs."""


class JobExecutionEnds:
    """Stores the ends of occurrences for the node that has claimed them.

    Args:
        base: The policy of the settings.
    """

    def __init__(
        self, store: JobRunStore, clock: Clock, base: JobPolicy, meter: MetricsRecorder = NO_METER
    ) -> None:
        self._store = store
        self._meter = meter
        self._clock = clock
        self._base = base

    def connect(self, performer: JobHandler) -> None:
        """Give it who knows what people are told. Call it once, before anything ends."""
        self._performer = performer

    async def store(
        self,
        held: JobExecution,
        end: Finish,
        attempt: Attempt,
        said: AttemptOutput,
        run: RunEnd | None,
    ) -> Messages:
        """Store an end, with that of its ``run``; waits for the database. Returns what is told.

        An end that cannot be stored because of a bug is stored barely. That of an occurrence which
        belongs to somebody else by now is not stored, and nothing is told.
        """
        done, say = await self._written(held, end, attempt, said)
        bare = replace(done, output="", error="its result could not be stored")
        whole = await store_end(
            "occurrence",
            lambda: self._store_end(held, done, say, run),
            lambda: self._store_end(held, bare, (), None),
            facts_of(held),
        )
        return say if whole else ()

    async def store_unclaimed(self, held: JobExecution, end: Finish) -> bool:
        """The same of one that waits for its session; False: a node has claimed it by now.

        Raises ``StoreUnavailable``.
        """
        done, say = await self._written(held, end, NOTHING, AttemptOutput())
        try:
            await self._store.end_occurrences([EndedOccurrence(done, say)], node=None)
        except Fenced:
            return False
        self._meter.occurrence_ended(done.status, None)
        return True

    async def store_run(self, held: JobExecution, run: RunEnd | None) -> None:
        """Store the end of an attempt that another one follows."""
        await store_attempt(self._store, run, held.node)

    async def give_back(self, held: JobExecution) -> None:
        """Let it be claimed again; waits for the database."""
        status = OccurrenceStatus.INTERRUPTED
        try:
            await retry_until_available(
                lambda: self._store.give_back([held.id], node=held.node, status=status)
            )
        except Fenced as error:
            log.debug("claim_lost", extra={"error": str(error)})

    async def _written(
        self, held: JobExecution, end: Finish, attempt: Attempt, said: AttemptOutput
    ) -> tuple[OccurrenceEnd, Messages]:
        """An end as it is stored, and what is told of it."""
        claimed, now = held.claimed, self._clock.now()
        end, update = self._settled(held, end)
        error = attempt.error or held.fault
        report = await self._told(held, end, update, replace(attempt, error=error), said)
        say, status = report.say, end.status
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
            why=end.why or report.silent,
            output=cut_bytes(said.text, OUTPUT_BYTES),
            error=error,
            attempts=held.attempt,
            started_at=held.started_at,
            usage=said.usage,
            keep=held.policy.history_keep,
        )
        return done, say

    def _settled(self, held: JobExecution, end: Finish) -> tuple[Finish, JobUpdate | None]:
        """The end with what it makes of the job; one that cannot be made out is switched off."""
        claimed, now = held.claimed, self._clock.now()
        try:
            if not held.fault:
                update = settled(claimed, self._base, end, started_at=held.started_at, now=now)
                return end, update
        except Exception as error:
            # A boundary: a zone, say, that this machine does not know any more.
            log.exception("job_schedule_failed", extra=facts_of(held))
            held.fault = f"{type(error).__name__}: {error}"
        off = JobUpdate(next_run_at=None, state=JobState.DISABLED)
        return end, None if claimed.by_hand else off

    async def _told(
        self,
        held: JobExecution,
        end: Finish,
        update: JobUpdate | None,
        attempt: Attempt,
        said: AttemptOutput,
    ) -> EndReport:
        try:
            return await retry_until_available(
                lambda: self._performer.tell(held, end, update, attempt, said)
            )
        except Exception:
            # A boundary: a text that cannot be written must not keep its job from going on.
            log.exception("job_result_failed", extra=facts_of(held))
            return EndReport()

    async def _store_end(
        self, held: JobExecution, done: OccurrenceEnd, say: Messages, run: RunEnd | None
    ) -> None:
        if run is not None:
            try:
                await self._store.finish_run(replace(run, occurrence=done, say=say), node=held.node)
            except RunNotStarted:
                run = None
        if run is None:
            await self._store.end_occurrences([EndedOccurrence(done, say)], node=held.node)
        self._meter.occurrence_ended(done.status, _lag_s(held))


def _lag_s(held: JobExecution) -> float | None:
    """How late it began; None if it never did, or nobody had planned it."""
    if held.started_at is None or held.claimed.by_hand:
        return None
    return (held.started_at - held.claimed.due_at).total_seconds()
