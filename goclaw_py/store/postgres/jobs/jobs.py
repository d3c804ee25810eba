"""Jobs, and the zones of their owners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from goclaw_py.jobs.models import Job, JobState
from goclaw_py.model.errors import SlugTaken, TooManyJobs
from goclaw_py.model.ids import JobId, Owner
from goclaw_py.ports.store import MOST_COUNTED, JobPage, JobQuery, Notice
from goclaw_py.store import job_rules
from goclaw_py.store.postgres.jobs import rows
from goclaw_py.store.postgres.part import PostgresPart, notify
from goclaw_py.store.postgres.pool import Row
from goclaw_py.store.postgres.rows import TargetColumns
from goclaw_py.store.postgres.runs.endings import end_left
from goclaw_py.store.sql import queries

_SQL = queries("jobs")
_LAST_CHARACTER = chr(0x10FFFF)


class PostgresJobs(PostgresPart):
    """Implements what people do, of ``JobStore``."""

    async def add_job(self, job: Job, *, most: int | None) -> None:
        """Adding the same job again is harmless, so a lost answer can be repeated."""
        owner, slug = job.owner, job.spec.slug
        async with self._pool.transaction() as connection:
            await connection.fetch(_SQL["lock_owner"], owner)
            added = await connection.row(
                _SQL["add"], rows.packed(job), owner, slug, list(job_rules.COUNTED), most
            )
            if added is not None:
                await notify(connection, [Notice.CRON])
                return
            same = await connection.row(_SQL["named"], owner, slug)
        if same is None:
            assert most is not None, "only the limit keeps out a job with a new slug"
            raise TooManyJobs(owner, most)
        if same["id"] != job.id:
            raise SlugTaken(slug)

    async def job(self, job_id: JobId) -> Job | None:
        """None if it is deleted."""
        async with self._pool.connection() as connection:
            row = await connection.row(_SQL["job"], job_id)
        return None if row is None else rows.job(row)

    async def find_jobs(self, text: str, *, owner: Owner | None = None) -> list[Job]:
        """The text is compared character by character; nothing in it is a pattern."""
        async with self._pool.connection() as connection:
            found = await connection.fetch(_SQL["with_slug"], text, owner)
            if not found and len(text) >= job_rules.FEWEST:
                found = await connection.fetch(_SQL["with_id"], text, text + _LAST_CHARACTER, owner)
        return _jobs(found)

    async def jobs(self, query: JobQuery) -> JobPage:
        """Lists come from indexes; whatever else is asked for is looked for in all there are."""
        place = TargetColumns.of(query.target)
        # One more than is asked for: whether others follow.
        page = (query.limit + 1, query.offset, MOST_COUNTED)
        async with self._pool.connection() as connection:
            if (listed := _list(query)) is not None:
                found = await connection.fetch(listed[0], *page, *listed[1:])
            else:
                found = await connection.fetch(
                    _SQL["search"] if query.owner is None else _SQL["search_of_owner"],
                    *page,
                    query.owner,
                    query.agent,
                    query.name.casefold(),
                    list(query.states),
                    list(query.kinds),
                    query.notify,
                    place.channel,
                    place.account,
                    place.chat,
                )
        there = [row for row in found if row["id"] is not None]
        total = max(found[0]["total"], query.offset + len(there)) if there else found[0]["total"]
        return JobPage(tuple(_jobs(there[: query.limit])), total)

    async def slugs(self, owner: Owner, prefix: str) -> frozenset[str]:
        """Of all states."""
        async with self._pool.connection() as connection:
            found = await connection.fetch(_SQL["slugs"], owner, prefix, prefix + _LAST_CHARACTER)
        return frozenset(row["slug"] for row in found)

    async def change_job(self, job: Job, *, most: int | None = None) -> bool:
        """Also raises ``SlugTaken`` only if the revision is right."""
        async with self._pool.transaction() as connection:
            await connection.fetch(_SQL["lock_owner"], job.owner)
            known = await connection.row(_SQL["lock"], job.id)
            if known is None or (known["owner"], known["revision"]) != (job.owner, job.revision):
                return False
            # What another release wrote would be lost.
            rows.readable_job(known)
            same = await connection.row(_SQL["named"], job.owner, job.spec.slug)
            if same is not None and same["id"] != job.id:
                raise SlugTaken(job.spec.slug)
            if most is not None and job_rules.comes_to_count(JobState(known["state"]), job.state):
                counted = await connection.row(
                    _SQL["count"], job.owner, list(job_rules.COUNTED), most
                )
                if counted is None:
                    raise TooManyJobs(job.owner, most)
            await connection.fetch(_SQL["change"], job.id, rows.packed(job))
            if (known["state"], known["next_run_at"]) != (job.state, job.next_run_at):
                await end_left(connection, job.id)
            await notify(connection, [Notice.CRON])
        return True

    async def delete_job(self, job_id: JobId, *, forget: bool) -> bool:
        """The end of a run that goes on finds no row then, which is no error."""
        async with self._pool.transaction() as connection:
            if await connection.row(_SQL["delete"], job_id) is None:
                return False
            if forget:
                await connection.fetch(_SQL["forget"], job_id)
            else:
                await end_left(connection, job_id)
            await notify(connection, [Notice.CRON])
        return True

    async def zone_of(self, owner: Owner) -> str | None:
        """None if the owner has chosen none."""
        async with self._pool.connection() as connection:
            row = await connection.row(_SQL["zone"], owner)
        return None if row is None else str(row["zone"])

    async def choose_zone(self, owner: Owner, zone: str | None) -> None:
        """Jobs that exist keep theirs."""
        async with self._pool.connection() as connection:
            if zone is None:
                await connection.fetch(_SQL["forget_zone"], owner)
            else:
                await connection.fetch(_SQL["choose_zone"], owner, zone)


def _list(query: JobQuery) -> tuple[str, ...] | None:
    """The statement for a list that has an index, with what it is asked for; None: none has."""
    bare = replace(query, owner=None, states=(), limit=1, offset=0)
    if bare != JobQuery(limit=1):
        return None
    match query.owner, query.states:
        case None, ():
            return (_SQL["all"],)
        case owner, () if owner is not None:
            return _SQL["all_of_owner"], owner
        case None, (state,) if state is not JobState.ACTIVE:
            return _SQL["all_of_state"], state
    return None


def _jobs(found: Sequence[Row]) -> list[Job]:
    return [rows.job(row) for row in found]
