"""Jobs, and the zones of their owners."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from goclaw_py.jobs.models import Job
from goclaw_py.jobs.schedule import schedule_json
from goclaw_py.model.errors import SlugTaken, TooManyJobs
from goclaw_py.model.ids import JobId, Owner
from goclaw_py.model.messages import Target
from goclaw_py.ports.store import MOST_COUNTED, JobPage, JobQuery, Notice
from goclaw_py.store import job_reading, job_rules
from goclaw_py.store.memory.jobs.occurrences import end_left
from goclaw_py.store.memory.tables import MemoryPart
from goclaw_py.store.text import storable

_NEVER = datetime.max.replace(tzinfo=UTC)


class MemoryJobs(MemoryPart):
    """Implements what people do, of ``JobStore``."""

    async def add_job(self, job: Job, *, most: int | None) -> None:
        """Adding the same job again is harmless."""
        job = storable(job)
        same = self._db.cron.slugs(job.owner).get(job.spec.slug)
        if same == job.id:
            return
        if same is not None:
            raise SlugTaken(job.spec.slug)
        if most is not None:
            self._check_number(job.owner, most)
        self._db.cron.put(job)
        self._db.notify(Notice.CRON)

    async def job(self, job_id: JobId) -> Job | None:
        """None if it is deleted."""
        job = self._db.cron.jobs.get(storable(job_id))
        return None if job is None else job_reading.shown(job)

    async def find_jobs(self, text: str, *, owner: Owner | None = None) -> list[Job]:
        """The text is compared character by character; nothing in it is a pattern."""
        text, owner = storable(text), storable(owner)
        jobs = [job for job in self._db.cron.jobs.values() if owner in (None, job.owner)]
        found = [job for job in jobs if job.spec.slug == text]
        if not found and len(text) >= job_rules.FEWEST:
            found = [job for job in jobs if job.id.startswith(text)]
        return [job_reading.shown(job) for job in sorted(found, key=lambda job: job.id)[:2]]

    async def jobs(self, query: JobQuery) -> JobPage:
        """Looks at all of them."""
        query = storable(query)
        found = [job for job in self._db.cron.jobs.values() if _matches(job, query)]
        found.sort(key=lambda job: (job.next_run_at or _NEVER, job.created_at, job.id))
        there = found[query.offset : query.offset + query.limit + 1]
        total = min(len(found), MOST_COUNTED)
        if there:
            total = max(total, query.offset + len(there))
        return JobPage(tuple(map(job_reading.shown, there[: query.limit])), total)

    async def slugs(self, owner: Owner, prefix: str) -> frozenset[str]:
        """Of all states."""
        mine = self._db.cron.slugs(storable(owner))
        return frozenset(slug for slug in mine if slug.startswith(storable(prefix)))

    async def change_job(self, job: Job, *, most: int | None = None) -> bool:
        """Also raises ``SlugTaken`` only if the revision is right."""
        job = storable(job)
        known = self._db.cron.jobs.get(job.id)
        if known is None or known.revision != job.revision:
            return False
        if (flaw := job_reading.flaw(known)) is not None:
            raise flaw
        if self._db.cron.slugs(known.owner).get(job.spec.slug, job.id) != job.id:
            raise SlugTaken(job.spec.slug)
        if most is not None and job_rules.comes_to_count(known.state, job.state):
            self._check_number(known.owner, most)
        changed = replace(
            known,
            maker=job.maker,
            spec=job.spec,
            updated_at=job.updated_at,
            state=job.state,
            failures=job.failures,
            next_run_at=job.next_run_at,
            revision=known.revision + 1,
        )
        self._db.cron.put(changed)
        end_left(self._db, job.id)
        self._db.notify(Notice.CRON)
        return True

    def _check_number(self, owner: Owner, most: int) -> None:
        mine = (self._db.cron.jobs[one] for one in self._db.cron.slugs(owner).values())
        if sum(one.state in job_rules.COUNTED for one in mine) >= most:
            raise TooManyJobs(owner, most)

    async def delete_job(self, job_id: JobId, *, forget: bool) -> bool:
        """The end of a run that goes on finds no row then, which is no error."""
        job_id = storable(job_id)
        if job_id not in self._db.cron.jobs:
            return False
        self._db.cron.remove(job_id, forget=forget)
        end_left(self._db, job_id)
        self._db.notify(Notice.CRON)
        return True

    async def zone_of(self, owner: Owner) -> str | None:
        """None if the owner has chosen none."""
        return self._db.cron.zones.get(storable(owner))

    async def choose_zone(self, owner: Owner, zone: str | None) -> None:
        """Jobs that exist keep theirs."""
        self._db.cron.zones.pop(storable(owner), None)
        if zone is not None:
            self._db.cron.zones[storable(owner)] = storable(zone)


def _matches(job: Job, query: JobQuery) -> bool:
    wanted: Iterable[tuple[object, object]] = (
        (query.owner, job.owner),
        (query.agent, job.spec.agent),
        (query.notify, job.spec.notify),
        (query.target and replace(query.target, thread=None), _chat_of(job)),
    )
    return (
        all(asked is None or asked == has for asked, has in wanted)
        and query.name.casefold() in job_rules.words(job.spec.slug, job.spec.name)
        and (not query.states or job.state in query.states)
        and (not query.kinds or schedule_json(job.spec.schedule)["kind"] in query.kinds)
    )


def _chat_of(job: Job) -> Target | None:
    target = job.spec.target
    return replace(target, thread=None) if isinstance(target, Target) else None
