"""What operators, chats and tools do with jobs (SPEC CRON-2, CRON-11, CRON-15, SEC-3)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime

from goclaw_py.core.actors import Least
from goclaw_py.core.display_names import short_id
from goclaw_py.core.errors import (
    BadJob,
    BadSchedule,
    GoclawError,
    JobChanged,
    NotFound,
    NotYours,
    SlugTaken,
    UnknownJob,
)
from goclaw_py.core.ids import JobId, OccurrenceId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.pagination import FOUND, Cursor
from goclaw_py.core.session_keys import chat_session
from goclaw_py.core.targets import Maker
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.clocks import new_id
from goclaw_py.core.time.zones import zone as zone_named
from goclaw_py.operations.declare import operation
from goclaw_py.operations.jobs import answers, changes
from goclaw_py.operations.jobs.lookup import find_jobs, names_like
from goclaw_py.operations.jobs.models import (
    JobChange,
    JobDraft,
    JobSettingsView,
    Requester,
    RunNow,
    StartedNow,
)
from goclaw_py.records import (
    FixedAccounts,
    JobPage,
    JobQuery,
    JobStore,
    RunQuery,
    Store,
    StoredRun,
)
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
from goclaw_py.schedule.jobs.policy import History, JobPolicy
from goclaw_py.schedule.jobs.targets import route_of

log = logging.getLogger(__name__)

_UTC = "UTC"
_MOST_RUNS = 1000
"""Limit of active runs, newest first, among which blocking runs are found (SPEC OPS-4)."""

_TRIES = 5
"""Limit of attempts of a change that conflicts with concurrent changes."""


def refused(_name: str, _arguments: object, error: GoclawError) -> GoclawError:
    """Return the error for what the API could not read, as without a gateway."""
    if isinstance(error, NotFound):
        return error
    key, colon, allowed = str(error).partition(": ")
    return BadJob(key, allowed) if colon else BadJob("job", str(error))


class JobService:
    """Jobs, selected by id, unique prefix of an id, slug, or name.

    A finished job never takes precedence over open ones with the same name, and a name of several
    open jobs selects none, nor does a slug that open jobs of several owners have, for an operator.
    In chats, names count as much as slugs; elsewhere an open job is selected by its slug whatever
    others are named.

    Each method may raise ``StoreUnavailable``; methods that take a job, ``UnknownJob`` and
    ``NotYours``.

    Args:
        run_now: Starts a manual run of a job in any state; None: this process has none.
        gateway: The chats to which results go, and the runs for which occurrences wait; None: there
            are none, as in the library.
        check_scheduling: Raises ``JobError`` if a requester may not let a job run (AGENT-14);
            None: nobody is limited, as outside of a gateway no run schedules.
    """

    def __init__(
        self,
        store: JobStore,
        clock: Clock,
        rules: JobCreationRules,
        *,
        run_now: Callable[[Job], Awaitable[StartedNow | RunNow]] | None = None,
        gateway: Store | None = None,
        check_scheduling: Callable[[Requester], Awaitable[None]] | None = None,
    ) -> None:
        self._gateway = gateway
        self._store = store
        self.clock = clock
        self.rules = rules
        self._run_now = run_now
        self._check_scheduling = check_scheduling

    @operation("GET /api/scheduler", Least.VIEWER)
    async def scheduler(self) -> JobSettingsView:
        """Return the settings of all jobs, and the present time."""
        rules = self.rules
        return JobSettingsView(rules.profile, rules.enabled, rules.most, self.clock.now())

    def _most(self, by: Requester) -> int | None:
        """Return the most jobs that an owner may have; None: no limit (CRON-15)."""
        limited = by.maker is not Maker.OPERATOR or self.rules.limits_operators
        return self.rules.most if limited else None

    # ------------------------------------------------------------------ making and changing

    @operation(
        "POST /api/jobs", Least.OPERATOR, changes.CREATE, body=answers.draft_json, read=job_of
    )
    async def create(self, draft: JobDraft, by: Requester) -> Job:
        """Create a job. Raises ``JobError``.

        A derived slug gets a number if it is taken.
        """
        if self._check_scheduling is not None:
            await self._check_scheduling(by)
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

    @operation(
        "PATCH /api/jobs/{job}", Least.OPERATOR, changes.EDIT, body=answers.change_json, read=job_of
    )
    async def edit(self, job: str, change: JobChange, by: Requester) -> Job:
        """Change a job, and compute its next run if the schedule changed.

        A job whose schedule is over can be resumed only with a new schedule. Raises ``JobError``.

        Without a revision, edit the newest one.
        """
        for _ in range(_TRIES):
            before = await self.get(job, by)
            if change.revision not in (None, before.revision):
                break
            after = changed(self.rules, before, change, by, now=self.clock.now())
            if not by.chained or reschedules(self.rules, before, after):
                if self._check_scheduling is not None:
                    await self._check_scheduling(by)
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

    @operation("DELETE /api/jobs/{job}", Least.OPERATOR, changes.DELETE, read=job_of)
    async def delete(self, job: str, by: Requester) -> Job:
        """Delete a job and return it.

        The policy says whether its log is deleted.
        """
        found = await self.get(job, by)
        forget = found.policy(self.rules.base).history_on_delete is History.DELETE
        if not await self._store.delete_job(found.id, forget=forget):
            raise UnknownJob(job)
        log.info("job_deleted", extra=_facts(found))
        return found

    @operation("POST /api/jobs/{job}/run", Least.OPERATOR, changes.RUN, read=answers.started_now)
    async def run_now(self, job: str, by: Requester) -> StartedNow | RunNow:
        """Run a job in any state now (SPEC CRON-11)."""
        found = await self.get(job, by)
        if self._run_now is None or not self.rules.enabled:
            return RunNow.OFF
        return await self._run_now(found)

    # ------------------------------------------------------------------ looking

    @operation("GET /api/jobs/{job}", Least.VIEWER, read=job_of)
    async def get(self, job: str, by: Requester, *, is_slug: bool = False) -> Job:
        """Return a job.

        With ``is_slug``, ``job`` is an id or a slug, whatever other jobs are called.
        """
        found = await find_jobs(self._store, job, by, is_slug=is_slug)
        if len(found) > 1:
            # Only operators see jobs of several owners.
            owned = len({one.owner for one in found}) > 1
            names = ", ".join(
                f"{one.spec.slug} ({short_id(one.id)}{f', of {one.owner}' if owned else ''})"
                for one in sorted(found, key=lambda one: (one.spec.slug, one.owner, one.id))[:FOUND]
            )
            raise UnknownJob(job, several=names)
        if not found:
            raise UnknownJob(job, alike=await names_like(self._store, job, by))
        return found[0]

    @operation("GET /api/jobs", Least.VIEWER, read=answers.page_of)
    async def search(self, query: JobQuery, by: Requester) -> JobPage:
        """Return the requester's jobs; only operators may select an owner in ``query``."""
        return await self._store.jobs(_visible(query, by))

    @operation("GET /api/scheduler/counts", Least.VIEWER, key="counts")
    async def counts(self, query: JobQuery, by: Requester) -> dict[JobState, int]:
        """Return how many of the jobs of ``search`` are in each state, whatever its states."""
        return await self._store.job_counts(_visible(query, by))

    @operation("GET /api/jobs/{job}/log", Least.VIEWER, without="/api/occurrences")
    async def log(
        self,
        job: str | None,
        by: Requester,
        *,
        limit: int = 50,
        status: OccurrenceStatus | None = None,
        before: Cursor | None = None,
    ) -> list[LoggedOccurrence]:
        """Return the occurrences of a job, the newest first; also of a deleted job.

        The short name of a deleted job is found in the last 1,000 occurrences of all jobs.

        ``job=None`` selects all jobs, for operators.
        """
        found, unknown = None, None
        if job is not None:
            try:
                found = (await self.get(job, by)).id
            except UnknownJob as error:
                found, unknown = await self._deleted(job, by), error
        elif by.owner is not None:
            raise NotYours("", by.owner)
        rows = await self._store.log_of(found, limit=limit, status=status, before=before)
        if unknown is not None and (not rows or by.owner not in (None, rows[0].owner)):
            raise unknown
        return await self._with_waits(rows)

    async def _deleted(self, name: str, by: Requester) -> JobId:
        """Return the id of a deleted job, from its slug; any other name unchanged."""
        rows = await self._store.log_of(None, limit=_MOST_RUNS)
        mine = (row for row in rows if row.slug == name and by.owner in (None, row.owner))
        return next((row.job for row in mine), JobId(name))

    async def _with_waits(self, rows: Sequence[LoggedOccurrence]) -> list[LoggedOccurrence]:
        """Return the rows, each with the session that it waits for and the run that blocks it."""
        base = self.rules.base
        sessions = {row.id: key for row in rows if (key := _awaited(row, base)) is not None}
        if not sessions or self._gateway is None:
            return list(rows)
        working: dict[SessionKey, StoredRun] = {}
        for run in await self._gateway.runs(RunQuery(limit=_MOST_RUNS, active=True)):
            working[run.session] = run  # the oldest run of a session comes last and stays
        return [_with_wait(row, sessions.get(row.id), working) for row in rows]

    @operation("GET /api/occurrences/{occurrence}", Least.VIEWER)
    async def logged(self, occurrence: OccurrenceId, by: Requester) -> LoggedOccurrence:
        """Return an occurrence. Raises ``UnknownJob`` if the requester has no such occurrence."""
        found = await self._store.logged(occurrence)
        if found is None or by.owner not in (None, found.owner):
            raise UnknownJob(occurrence)
        return (await self._with_waits([found]))[0]

    @operation("GET /api/jobs/{job}/stats", Least.VIEWER, without="/api/scheduler/stats")
    async def stats(self, job: str | None, by: Requester, *, since: datetime) -> JobStats:
        """Return statistics of a job; None: of all jobs, for operators."""
        if job is None:
            if by.owner is not None:
                raise NotYours("", by.owner)
            return await self._store.job_stats(None, since=since)
        return await self._store.job_stats((await self.get(job, by)).id, since=since)

    @operation("GET /api/jobs/{job}/route", Least.VIEWER, key="problem")
    async def no_route(self, job: str, by: Requester) -> str:
        """Return why the result of a job could not be delivered now, "" if it could.

        A channel may still refuse the message.
        """
        found = await self.get(job, by)
        if self._gateway is None or found.spec.notify is Notify.NEVER:
            return ""
        accounts = FixedAccounts(self.rules.places, self.rules.owners())
        route = await route_of(self._gateway, accounts, found)
        target = found.spec.target
        if route.problem or not isinstance(target, Target):
            return route.problem
        chat = await self._gateway.chat(target.whole_chat)
        if chat is not None:
            return chat.gone
        # Chats of people with access are not stored until they block the bot.
        session = chat_session(found.spec.agent, target, found.spec.peer)
        if await self._gateway.session(session) is not None:
            return ""
        known = await self._gateway.names([target.whole_chat])
        return "" if known.targets else "no message has come from this chat yet"

    @operation("POST /api/scheduler/preview", Least.OPERATOR, body=answers.draft_json, key="times")
    async def preview(self, draft: JobDraft, by: Requester, count: int = 3) -> list[datetime]:
        """Return the first ``count`` runs that a new job would have. Raises ``JobError``."""
        job = replace(await self._made(draft, by), state=JobState.ACTIVE)
        return job.upcoming(self.rules.base, count)

    # ------------------------------------------------------------------ zones

    @operation("GET /api/scheduler/zone", Least.VIEWER, key="zone")
    async def zone(self, by: Requester) -> str:
        """Return the default time zone of the requester's new jobs."""
        return await self._store.zone_of(owner_for(by)) or self.rules.profile.zone or _UTC

    @operation("PUT /api/scheduler/zone", Least.OPERATOR, changes.CHOOSE_ZONE, key="zone")
    async def choose_zone(self, zone: str | None, by: Requester) -> str:
        """Set the requester's default time zone; None resets it to the settings.

        Returns the new default. Existing jobs keep their zones. Raises ``UnknownZone``.
        """
        if zone is not None:
            zone_named(zone)
        await self._store.choose_zone(owner_for(by), zone)
        return zone or self.rules.profile.zone or _UTC

    async def _made(self, draft: JobDraft, by: Requester) -> Job:
        zone = draft.zone or await self.zone(by)
        now = self.clock.now()
        job_id = JobId(new_id(self.clock))
        return made(self.rules, draft, by, zone, job_id=job_id, now=now)


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
