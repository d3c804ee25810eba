"""Calls a handler for each due job (SPEC CRON-21)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from goclaw_py.core.ids import OccurrenceId
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.text import error_text, truncate, truncate_bytes
from goclaw_py.core.time.clock import Clock
from goclaw_py.operations.jobs.models import RunNow, StartedNow
from goclaw_py.schedule.jobs.execution import JobExecution, JobHandler
from goclaw_py.schedule.jobs.execution_models import OUTPUT_BYTES
from goclaw_py.schedule.jobs.executions import JobExecutions
from goclaw_py.schedule.jobs.models import Job, Program
from goclaw_py.schedule.models import Attempt, Superseded, is_transient

log = logging.getLogger(__name__)

UNWIND_S = 10.0
"""Seconds that a cancelled handler has for its clean-up."""

_CUT = Attempt(Outcome.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class Due:
    """A job that is due.

    Args:
        job: The job as it was claimed.
        occurrence: The id of this occurrence, the same in all attempts and processes.
        attempt: From 1; attempts that a crash may have interrupted count.
        manual: Whether it is a manual run.
    """

    job: Job
    occurrence: OccurrenceId
    due_at: datetime
    attempt: int
    manual: bool

    @property
    def text(self) -> str:
        """The text of the job; its slug if it has none."""
        payload = self.job.spec.payload
        return self.job.spec.slug if isinstance(payload, Program) else payload.text


Handler = Callable[[Due], Awaitable[str | None]]
"""Executes a job. Its return value is logged; an exception is a failure."""


class _Phase(StrEnum):
    WAITS = "waits"
    """It waits for another handler to end."""
    WORKS = "works"
    STORES = "stores"
    """The handler has ended; its result is being stored."""


@dataclass(slots=True, eq=False)
class _Work:
    phase: _Phase = _Phase.WAITS
    abandoned: bool = False
    """Its occurrence belongs to another node now."""


class Handlers(JobHandler):
    """Calls the handlers, each attempt in a task; starts manual runs, too.

    Args:
        concurrency: The number of concurrent handlers; others wait in the order of their claims.
        executions: Creates the executions that these handlers perform.
    """

    def __init__(
        self, clock: Clock, concurrency: int, executions: Callable[[JobHandler], JobExecutions]
    ) -> None:
        self.occurrences = executions(self)
        self._clock = clock
        self._slots = asyncio.Semaphore(concurrency)
        self._works: dict[asyncio.Task[None], _Work] = {}
        self.handler: Handler | None = None
        self.open = False
        """Whether jobs run; set by ``start`` and ``stop``."""

    def is_inside(self) -> bool:
        """Return whether the caller is a handler."""
        return asyncio.current_task() in self._works

    # ------------------------------------------------------------------ performing

    async def perform(self, execution: JobExecution) -> None:
        """Call the handler in a task."""
        if not self.open:
            await self.occurrences.ended(execution, _CUT, None)
            return
        work = _Work()
        task = asyncio.create_task(
            self._work(execution, work), name=f"job {execution.claimed.job.spec.slug}"
        )
        self._works[task] = work
        task.add_done_callback(lambda done: self._works.pop(done, None))

    async def _work(self, execution: JobExecution, work: _Work) -> None:
        attempt = _CUT
        try:
            await execution.until_due(self._clock)
            async with self._slots:
                work.phase = _Phase.WORKS
                attempt = await self._attempt(execution)
        except Superseded:
            attempt = Attempt(Outcome.CANCELLED, Reason.STOPPED)
        except asyncio.CancelledError:
            # Recognised by its class: the occurrence is released, and runs again.
            log.info("job_interrupted", extra=execution.facts)
        work.phase = _Phase.STORES
        if work.abandoned:
            return
        try:
            await self.occurrences.ended(execution, attempt, None)
        except Exception:
            # A boundary: this task is not awaited, and other jobs continue.
            log.exception("job_end_failed", extra=execution.facts)

    async def _attempt(self, execution: JobExecution) -> Attempt:
        assert self.handler is not None
        if execution.started_at is None:
            execution.started_at = self._clock.now()
        claimed = execution.claimed
        # Each claim but the first follows a crash, which may have interrupted the handler.
        number = execution.attempt + claimed.claims - 1
        due = Due(claimed.job, claimed.id, claimed.due_at, number, claimed.manual)
        limit = asyncio.timeout(execution.policy.run_timeout or None)
        try:
            async with limit:
                return Attempt(Outcome.COMPLETED, text=_text(await self.handler(due)))
        except asyncio.CancelledError as error:
            if _is_cancelled():
                raise
            # The handler has cancelled itself, or something that it awaits was cancelled. If it
            # were released, it would be due again immediately, in a loop.
            return self._failed(execution, error, Outcome.CANCELLED)
        except Exception as error:
            # A boundary: what a handler raises is how its job ended.
            over = limit.expired()
            return self._failed(execution, error, Outcome.TIMED_OUT if over else Outcome.FAILED)

    def _failed(self, execution: JobExecution, error: BaseException, outcome: Outcome) -> Attempt:
        retryable = is_transient(error)
        words = error_text(error)
        if outcome is Outcome.TIMED_OUT:
            # It would take as long again.
            retryable = False
            words = f"it took longer than {execution.policy.run_timeout:g} s"
        log.warning("job_failed", extra={**execution.facts, "error": truncate(words, 500)})
        return Attempt(outcome, error=truncate_bytes(words, OUTPUT_BYTES), retryable=retryable)

    # ------------------------------------------------------------------ by hand

    async def run_now(self, job: Job) -> StartedNow | RunNow:
        if not self.open:
            return RunNow.OFF
        execution = await self.occurrences.claim_manual(job.id)
        if execution is None:
            return RunNow.ALREADY_RUNNING
        self.occurrences.start(execution)
        return StartedNow(execution.id, None)

    # ------------------------------------------------------------------ the end

    async def close(self, wait_s: float) -> bool:
        """Start no more, let handlers end for some seconds, then cancel the others.

        Returns whether all ended by themselves, with their results stored.

        A handler that ignores its cancellation is abandoned after ``UNWIND_S``, and so is a result
        that cannot be stored: the database does not know their results, so they run again.
        """
        self.open = False
        self._cancel(_Phase.WAITS)
        await self._ended(wait_s)
        have_ended = not any(not task.done() for task in self._works)
        self._cancel(_Phase.WAITS, _Phase.WORKS)
        await self._ended(UNWIND_S)
        self._cancel(*_Phase)
        await self._ended(0)
        return have_ended

    def abandon(self) -> None:
        """Cancel all handlers and store nothing: their occurrences belong to another node."""
        for work in self._works.values():
            work.abandoned = True
        self._cancel(_Phase.WAITS, _Phase.WORKS)

    def _cancel(self, *phases: _Phase) -> None:
        for task, work in self._works.items():
            if work.phase in phases:
                task.cancel()

    async def _ended(self, wait_s: float) -> None:
        if self._works:
            await asyncio.wait(tuple(self._works), timeout=max(wait_s, 0.0))


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _text(result: object) -> str:
    """Return the result of a handler. Raises ``TypeError``."""
    if result is None:
        return ""
    if not isinstance(result, str):
        raise TypeError(f"a handler returns text or None, not {type(result).__name__}")
    return result
