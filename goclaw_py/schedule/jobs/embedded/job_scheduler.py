"""Jobs for any program: no agents, no channels (SPEC CRON-21; Halo's ``SchedulerService``).

::

    async def report(due: Due) -> str:
        return await make_report(due.text)

    async with JobScheduler(MemoryStore()) as jobs:
        jobs.on_due(report)
        await jobs.start()
        await jobs.add("daily", Cron("0 9 * * 1-5"), "sales", zone="Europe/Berlin")
        await asyncio.sleep(3600)

Over ``PostgresStore`` any number of processes share the same jobs: each time a job is due, one of
them runs it.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Protocol, Self, TypeVar, cast

from goclaw_py.cluster.membership import Membership
from goclaw_py.core.concurrency import WakeEvent
from goclaw_py.core.errors import StoreError
from goclaw_py.core.ids import NodeId
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.clocks import SharedClock
from goclaw_py.core.time.machine_zone import machine_zone
from goclaw_py.operations.jobs.models import (
    UNCHANGED,
    JobChange,
    JobDraft,
    Requester,
    RunNow,
    StartedNow,
)
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.records import JobPage, JobQuery, JobStore, MembershipStore, Notice, RunEnd, Store
from goclaw_py.records.bound import bind
from goclaw_py.schedule.jobs.creation import JobCreationRules
from goclaw_py.schedule.jobs.embedded.handlers import UNWIND_S, Due, Handler, Handlers
from goclaw_py.schedule.jobs.execution import JobRunStore
from goclaw_py.schedule.jobs.execution_models import JobStats, LoggedOccurrence
from goclaw_py.schedule.jobs.executions import JobExecutions
from goclaw_py.schedule.jobs.models import Job, JobState, Prompt, TargetKind
from goclaw_py.schedule.jobs.policy import DEFAULT_PROFILE, Profile
from goclaw_py.schedule.jobs.poller import JobPoller
from goclaw_py.schedule.jobs.schedule import At, Cron, Every, Schedule

__all__ = ["Due", "Handler", "JobScheduler", "JobStorage"]

log = logging.getLogger(__name__)

H = TypeVar("H", bound=Handler)

_OPERATOR = Requester(owner=None)
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_AGAIN_S = 1.0


class JobStorage(JobStore, MembershipStore, Protocol):
    """The store operations that the scheduler needs."""

    async def finish_run(self, end: RunEnd, *, node: NodeId) -> None: ...

    def on_notice(self, callback: Callable[[Notice], None]) -> None: ...


class JobScheduler:
    """Jobs with one handler, over a store.

    Its jobs can be read and changed whether it was started or not. It can be started once; after
    ``stop`` create another one. A job is selected by its slug, its id, or the beginning of its id.
    All methods that use the store may raise ``StoreUnavailable``.

    Args:
        store: ``MemoryStore()``, or a ``PostgresStore`` whose schema is up to date. The caller
            closes it. All schedulers and gateways of one database share its jobs.
        profile: The profile of the jobs.
        concurrency: The number of concurrent jobs in this process.
        max_jobs: The largest number of active and paused jobs.
        release: A name for this program, shown to operators.
    """

    def __init__(
        self,
        store: JobStorage,
        *,
        profile: Profile = DEFAULT_PROFILE,
        concurrency: int = 10,
        max_jobs: int = 10_000,
        clock: Clock | None = None,
        release: str = "library",
    ) -> None:
        _at_least(1, "concurrency", concurrency)
        _at_least(1, "max_jobs", max_jobs)
        self._store = store
        clock = clock or SharedClock()
        self._wake = wake = WakeEvent()
        self._duties: list[asyncio.Task[None]] = []
        self._begun = False
        self._cluster = Membership(
            store, clock, release, on_recovery=lambda _: wake.call(), on_lost=self._on_lost
        )
        if not profile.zone:
            profile = replace(profile, zone=machine_zone(os.environ))
        rules = JobCreationRules(profile, most=max_jobs, limits_operators=True)
        bound = cast("JobRunStore", bind(cast("Store", store), lambda: self._cluster.node.id))
        self._handlers = Handlers(
            clock,
            concurrency,
            lambda handlers: JobExecutions(
                bound, clock, rules.base, handler=handlers, freed=wake.call
            ),
        )
        self._service = JobService(store, clock, rules, run_now=self._handlers.run_now)
        self._occurrences = self._handlers.occurrences
        self._loop = JobPoller(
            store, clock, self._occurrences, lambda: concurrency, wake, without_runs=True
        )

    # ------------------------------------------------------------------ jobs

    async def add(
        self,
        slug: str,
        schedule: Schedule,
        text: str = "",
        *,
        zone: str = "",
        policy: Mapping[str, object] | None = None,
        max_runs: int | None = None,
    ) -> Job:
        """Add a job.

        ``zone`` is that of a cron expression, ``policy`` contains keys of ``JobPolicy``. Raises
        ``JobError``: ``BadSchedule``, ``BadJob``, ``SlugTaken`` or ``TooManyJobs``.
        """
        draft = JobDraft(
            _schedule(schedule),
            Prompt(text or slug),
            slug=_slug(slug),
            zone=zone,
            target=TargetKind.NONE,
            policy=policy or {},
            max_runs=max_runs,
        )
        return await self._service.create(draft, _OPERATOR)

    async def update(self, job: str, change: JobChange) -> Job:
        """Change a job. Raises ``JobError``.

        A run in progress finishes; the change applies to the next run.
        """
        if change.schedule is not UNCHANGED:
            _schedule(change.schedule)
        return await self._service.edit(job, change, _OPERATOR)

    async def remove(self, job: str) -> Job:
        """Delete a job. A run in progress finishes. Raises ``UnknownJob``."""
        return await self._service.delete(job, _OPERATOR)

    async def pause(self, job: str) -> Job:
        """Pause a job. A run in progress finishes."""
        return await self.update(job, JobChange(state=JobState.PAUSED))

    async def resume(self, job: str) -> Job:
        """Resume a job, also a disabled one, with zero failures."""
        return await self.update(job, JobChange(state=JobState.ACTIVE))

    async def get(self, job: str) -> Job:
        """Return a job. Raises ``UnknownJob``."""
        return await self._service.get(job, _OPERATOR)

    async def list(self, query: JobQuery | None = None) -> JobPage:
        """Return jobs in the order of their next runs; at most 50 without a query."""
        query = query or JobQuery()
        _at_least(1, "limit", query.limit)
        _at_least(0, "offset", query.offset)
        return await self._service.search(query, _OPERATOR)

    async def run(self, job: str) -> StartedNow | RunNow:
        """Run a job in any state now; its schedule does not change (SPEC CRON-11).

        ``RunNow.OFF`` if the scheduler is not started. Raises ``UnknownJob``.
        """
        return await self._service.run_now(job, _OPERATOR)

    async def run_log(self, job: str, *, limit: int = 50) -> Sequence[LoggedOccurrence]:
        """Return the occurrences of a job, the newest first; also of a deleted job."""
        _at_least(1, "limit", limit)
        return await self._service.log(job, _OPERATOR, limit=limit)

    async def stats(self, job: str | None = None, *, since: datetime | None = None) -> JobStats:
        """Return statistics of a job, or of all jobs, since a date."""
        since = since or _BEGINNING
        if since.utcoffset() is None:
            raise ValueError(f"since has no offset: {since.isoformat()}")
        return await self._service.stats(job, _OPERATOR, since=since)

    # ------------------------------------------------------------------ running

    def on_due(self, handler: H) -> H:
        """Set the handler for due jobs, in place of an earlier one. Can be used as a decorator."""
        if not callable(handler):
            raise TypeError(f"a handler is a coroutine function, not {handler!r}")
        self._handlers.handler = handler
        return handler

    async def start(self) -> None:
        """Start to run due jobs. Raises ``RuntimeError`` without a handler, or twice.

        Waits while the database is unavailable.
        """
        if self._handlers.handler is None:
            raise RuntimeError("say with on_due what is to be done, before start")
        if self._begun:
            raise RuntimeError("a service is started once; make another one")
        self._begun = True
        await self._cluster.join()
        self._store.on_notice(self._on_notice)
        self._handlers.open = True
        for duty in (*self._cluster.duties(), self._loop.run):
            self._duties.append(asyncio.create_task(_lasting(duty)))

    def is_running(self) -> bool:
        """Return whether due jobs run: it was started, and not stopped since."""
        return self._handlers.open

    async def stop(self, wait_s: float = 30.0) -> bool:
        """Start no more jobs, wait for handlers, cancel the others and release their jobs.

        Returns whether all handlers ended by themselves; False if some had to be cancelled.

        Released jobs run again: immediately in another process, otherwise at the next start. A
        second call with 0 ends the wait. Raises ``RuntimeError`` in a handler.
        """
        if math.isnan(wait_s):
            raise ValueError("wait_s is a number of seconds")
        if self._handlers.is_inside():
            raise RuntimeError("a handler cannot stop the service that would wait for it")
        self._begun = True
        self._loop.close()
        _, have_ended = await asyncio.gather(
            _at_most(UNWIND_S, self._occurrences.close()), self._handlers.close(wait_s)
        )
        for duty in self._duties:
            duty.cancel()
        await asyncio.gather(*self._duties, return_exceptions=True)
        if not self._duties:
            return have_ended
        self._duties.clear()
        try:
            await self._cluster.leave()
        except StoreError as error:
            log.warning("lease_not_released", extra={"error": str(error)})
        return have_ended

    async def __aenter__(self) -> Self:
        """Return the scheduler, not started."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop; after an exception without waiting for handlers."""
        if kind is None:
            await self.stop()
        else:
            await self.stop(0)

    def _on_notice(self, notice: Notice) -> None:
        if notice is Notice.CRON:
            self._wake.call()
        elif notice is Notice.NODES:
            self._cluster.check_others()

    def _on_lost(self, _: NodeId) -> None:
        """Abandon all claims: they belong to other nodes."""
        self._occurrences.forget()
        self._handlers.abandon()
        self._wake.call()


async def _lasting(duty: Callable[[], Awaitable[None]]) -> None:
    """Run a duty until the scheduler stops."""
    while True:
        try:
            return await duty()
        except Exception:
            # A boundary: a program that silently runs without its jobs is worse than a log line
            # each second.
            log.exception("background_task_crashed")
            await asyncio.sleep(_AGAIN_S)


async def _at_most(limit_s: float, work: Awaitable[None]) -> None:
    try:
        async with asyncio.timeout(limit_s):
            await work
    except TimeoutError:
        log.warning("claims_not_released")


def _at_least(least: int, name: str, value: int) -> None:
    if value < least:
        raise ValueError(f"{name} is at least {least}: {value!r}")


def _schedule(schedule: Schedule) -> Schedule:
    """Check the type, for programs without a type checker. Raises ``TypeError``."""
    if not isinstance(schedule, At | Every | Cron):
        raise TypeError(f"a schedule is At, Every or Cron, not {schedule!r}")
    return schedule


def _slug(slug: str) -> str:
    # An empty one would be made from the text.
    if not slug:
        raise ValueError("a job needs a slug")
    return slug
