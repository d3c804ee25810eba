"""The job service that API, CLI, chats and tools call (SPEC CRON-2, CRON-11, CRON-15, SEC-3)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from goclaw_py.core.display_names import short_id
from goclaw_py.core.errors import BadJob, BadSchedule, JobChanged, NotYours, SlugTaken, UnknownJob
from goclaw_py.core.ids import JobId, OccurrenceId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.targets import Maker
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.clocks import new_id
from goclaw_py.core.time.zones import zone as zone_named
from goclaw_py.operations.jobs import JobChange, JobDraft, Requester, RunNow, StartedNow
from goclaw_py.records import ChatStore, JobPage, JobQuery, JobStore, RunQuery, RunStore, StoredRun
from goclaw_py.schedule.jobs.creation import JobCreationRules, changed, made, owner_for, reschedules
from goclaw_py.schedule.jobs.execution_models import JobStats, LoggedOccurrence, OccurrenceStatus
from goclaw_py.schedule.jobs.job_json import job_of
from goclaw_py.schedule.jobs.models import (
    FixedMessage,
    Job,
    JobState,
    Notify,
    session_for,
    slug_for,
)
from goclaw_py.schedule.jobs.policy import History, JobPolicy, Profile
from goclaw_py.schedule.jobs.schedule import upcoming
from goclaw_py.schedule.jobs.targets import route_of

log = logging.getLogger(__name__)

_UTC = "UTC"
_MOST_RUNS = 1000
"""Limit of active runs, newest first, among which blocking runs are found (SPEC OPS-4)."""

_TRIES = 5
"""Limit of attempts of a change that conflicts with concurrent changes."""


class ManualJobRuns(Protocol):
    """Starts manual runs of jobs."""

    async def run_now(self, job: Job) -> StartedNow | RunNow:
        """Run a job in any state. Raise ``StoreUnavailable`` or ``UnknownJob``."""


class GatewayJobService:
    """Implements ``operations.jobs.JobService`` over a store.

    Args:
        hand: The service for manual runs; None: this process has none.
        chats: The chats to which results go; None: results are not sent.
        runs: The runs for which occurrences wait; None: this process stores no runs.
    """

    def __init__(
        self,
        store: JobStore,
        clock: Clock,
        rules: JobCreationRules,
        hand: ManualJobRuns | None = None,
        chats: ChatStore | None = None,
        runs: RunStore | None = None,
    ) -> None:
        self._runs = runs
        self._chats = chats
        self._store = store
        self._clock = clock
        self._rules = rules
        self._hand = hand
        self.check_scheduling: Callable[[Requester], Awaitable[None]] = _allow
        """Raises ``JobError`` if the requester may not let a job run (SPEC AGENT-14)."""

    def connect(self, hand: ManualJobRuns) -> None:
        """Set the service that starts manual runs."""
        self._hand = hand

    @property
    def profile(self) -> Profile:
        return self._rules.profile

    @property
    def enabled(self) -> bool:
        return self._rules.enabled

    @property
    def most(self) -> int:
        return self._rules.most

    def now(self) -> datetime:
        return self._clock.now()

    def _most(self, by: Requester) -> int | None:
        """Return the most jobs that an owner may have; None: no limit (CRON-15)."""
        limited = by.maker is not Maker.OPERATOR or self._rules.limits_operators
        return self.most if limited else None

    # ------------------------------------------------------------------ making and changing

    async def create(self, draft: JobDraft, by: Requester) -> Job:
        """See ``operations.jobs.JobService``. A derived slug gets a number if it is taken."""
        await self.check_scheduling(by)
        job = await self._made(draft, by)
        for _ in range(_TRIES):
            try:
                await self._store.add_job(job, most=self._most(by))
            except SlugTaken:
                if draft.slug:
                    raise
                taken = await self._store.slugs(job.owner, job.spec.slug)
                slug = slug_for(job.spec.slug, taken)
                job = replace(job, spec=replace(job.spec, slug=slug))
            else:
                log.info("job_created", extra=_facts(job))
                return job
        raise SlugTaken(job.spec.slug)

    async def edit(self, asked: str, change: JobChange, by: Requester) -> Job:
        """See ``operations.jobs.JobService``. Without a revision, edit the newest one."""
        for _ in range(_TRIES):
            before = await self.get(asked, by)
            if change.revision not in (None, before.revision):
                break
            after = changed(self._rules, before, change, by, now=self._clock.now())
            if not by.chained or reschedules(self._rules, before, after):
                await self.check_scheduling(by)
                after = replace(after, chained=by.chained)
            if after == replace(before, updated_at=after.updated_at):
                return before
            if await self._store.change_job(after, most=self._most(by)):
                log.info("job_updated", extra=_facts(after))
                return replace(after, revision=before.revision + 1)
            if change.revision is not None:
                break
        raise JobChanged(
            "the job was changed by someone else in the meantime; read it again and repeat "
            "the change"
        )

    async def delete(self, asked: str, by: Requester) -> Job:
        """See ``operations.jobs.JobService``. The policy says whether its log is deleted."""
        job = await self.get(asked, by)
        forget = job.policy(self._rules.base).history_on_delete is History.DELETE
        if not await self._store.delete_job(job.id, forget=forget):
            raise UnknownJob(asked)
        log.info("job_deleted", extra=_facts(job))
        return job

    async def run_now(self, asked: str, by: Requester) -> StartedNow | RunNow:
        job = await self.get(asked, by)
        if self._hand is None or not self.enabled:
            return RunNow.OFF
        return await self._hand.run_now(job)

    # ------------------------------------------------------------------ looking

    async def get(self, asked: str, by: Requester) -> Job:
        own = await self._store.find_jobs(asked, owner=owner_for(by))
        found = own or await self._store.find_jobs(asked)
        if by.owner is not None and not own:
            # Only a caller with the full id learns that the job exists.
            if any(job.id == asked for job in found):
                raise NotYours(asked, by.owner)
            raise UnknownJob(asked)
        if len(found) > 1:
            names = ", ".join(f"{job.spec.slug} ({short_id(job.id)})" for job in found)
            raise UnknownJob(asked, several=names)
        if not found:
            raise UnknownJob(asked)
        return found[0]

    async def search(self, query: JobQuery, by: Requester) -> JobPage:
        return await self._store.jobs(_visible(query, by))

    async def counts(self, query: JobQuery, by: Requester) -> dict[JobState, int]:
        return await self._store.job_counts(_visible(query, by))

    async def log(
        self,
        asked: str | None,
        by: Requester,
        *,
        limit: int = 50,
        status: OccurrenceStatus | None = None,
        before: Cursor | None = None,
    ) -> list[LoggedOccurrence]:
        job, unknown = None, None
        if asked is not None:
            try:
                job = (await self.get(asked, by)).id
            except UnknownJob as error:
                # The log of a deleted job can be read by its full id.
                job, unknown = JobId(asked), error
        elif by.owner is not None:
            raise NotYours("", by.owner)
        rows = await self._store.log_of(job, limit=limit, status=status, before=before)
        if unknown is not None and (not rows or by.owner not in (None, rows[0].owner)):
            raise unknown
        return await self._with_waits(rows)

    async def _with_waits(self, rows: Sequence[LoggedOccurrence]) -> list[LoggedOccurrence]:
        """Return the rows, each with the session that it waits for and the run that blocks it."""
        base = self._rules.base
        sessions = {row.id: key for row in rows if (key := _awaited(row, base)) is not None}
        if not sessions or self._runs is None:
            return list(rows)
        working: dict[SessionKey, StoredRun] = {}
        for run in await self._runs.runs(RunQuery(limit=_MOST_RUNS, active=True)):
            working[run.session] = run  # the oldest run of a session comes last and stays
        return [_with_wait(row, sessions.get(row.id), working) for row in rows]

    async def logged(self, occurrence: OccurrenceId, by: Requester) -> LoggedOccurrence:
        found = await self._store.logged(occurrence)
        if found is None or by.owner not in (None, found.owner):
            raise UnknownJob(occurrence)
        return (await self._with_waits([found]))[0]

    async def stats(self, asked: str | None, by: Requester, *, since: datetime) -> JobStats:
        if asked is None:
            if by.owner is not None:
                raise NotYours("", by.owner)
            return await self._store.job_stats(None, since=since)
        return await self._store.job_stats((await self.get(asked, by)).id, since=since)

    def upcoming(self, job: Job, count: int = 3) -> list[datetime]:
        if job.state is not JobState.ACTIVE or job.next_run_at is None or count < 1:
            return []
        timing = job.timing(self._rules.base)
        return [job.next_run_at, *upcoming(timing, after=job.next_run_at, count=count - 1)]

    async def no_route(self, asked: str, by: Requester) -> str:
        """See ``operations.jobs.JobService``. A channel may still refuse the message."""
        job = await self.get(asked, by)
        if self._chats is None or job.spec.notify is Notify.NEVER:
            return ""
        route = await route_of(self._chats, self._rules.places, job)
        target = job.spec.target
        if route.problem or not isinstance(target, Target):
            return route.problem
        place = (target.channel, target.account, target.chat)
        for chat in await self._chats.chats():
            if (chat.channel, chat.account, chat.chat) == place:
                return chat.gone
        return "no message has come from this chat yet"

    async def preview(self, draft: JobDraft, by: Requester, count: int = 3) -> list[datetime]:
        return self.upcoming(replace(await self._made(draft, by), state=JobState.ACTIVE), count)

    # ------------------------------------------------------------------ zones

    async def zone(self, by: Requester) -> str:
        return await self._store.zone_of(owner_for(by)) or self.profile.zone or _UTC

    async def choose_zone(self, zone: str | None, by: Requester) -> str:
        if zone is not None:
            zone_named(zone)
        await self._store.choose_zone(owner_for(by), zone)
        return zone or self.profile.zone or _UTC

    async def _made(self, draft: JobDraft, by: Requester) -> Job:
        zone = draft.zone or await self.zone(by)
        now = self._clock.now()
        job_id = JobId(new_id(self._clock))
        return made(self._rules, draft, by, zone, job_id=job_id, now=now)


async def _allow(by: Requester) -> None:
    """Let everybody schedule: outside of a gateway no run does."""
    del by


def _facts(job: Job) -> dict[str, object]:
    return {"job": job.id, "slug": job.spec.slug, "owner": job.owner, "state": job.state}


def _awaited(row: LoggedOccurrence, base: JobPolicy) -> SessionKey | None:
    """Return the session for which an occurrence waits, or None if it needs no shared session."""
    if row.waits_for is not None or row.started_at is not None or row.finished_at is not None:
        return row.waits_for
    try:
        job = job_of(row.definition)
        policy = job.policy(base)
    except (BadJob, BadSchedule):
        return None  # written by another release
    return None if isinstance(job.spec.payload, FixedMessage) else session_for(job, policy, None)


def _with_wait(
    row: LoggedOccurrence, session: SessionKey | None, working: dict[SessionKey, StoredRun]
) -> LoggedOccurrence:
    run = None if session is None else working.get(session)
    if run is None or run.occurrence == row.id:
        return row
    return replace(row, waits_for=session, blocking_run=run.id, blocking_node=run.node)


def _visible(query: JobQuery, by: Requester) -> JobQuery:
    """Return a query for the jobs that a requester may see."""
    return query if by.owner is None else replace(query, owner=by.owner)
