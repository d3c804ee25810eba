"""Jobs that people name by slug, id, the beginning of an id, or name."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from goclaw_py.core.errors import NotYours
from goclaw_py.core.pagination import FOUND
from goclaw_py.core.targets import Maker
from goclaw_py.operations.jobs.models import Requester
from goclaw_py.records import JobQuery, JobStore
from goclaw_py.schedule.jobs.creation import owner_for
from goclaw_py.schedule.jobs.models import OPEN, Job, is_called

_MOST_NAMED: Final = 1000
"""Limit of jobs with a text in their names, among which those with exactly this name are found."""


async def find_jobs(
    store: JobStore, name: str, by: Requester, *, is_slug: bool = False
) -> list[Job]:
    """Return the jobs that a requester may mean; several make the name ambiguous.

    With ``is_slug``, ``name`` is an id or a slug, whatever other jobs are called, and a requester's
    own job comes first. Raises ``NotYours`` for the full id of another owner's job.
    """
    own_first = is_slug or by.owner is not None
    found = own = await store.find_jobs(name, owner=owner_for(by) if own_first else None)
    if own_first and not any(name in (job.id, job.spec.slug) for job in own):
        # An id of another owner's job, or its slug, wins over the beginning of an own id.
        every = await store.find_jobs(name)
        found = [job for job in every if name in (job.id, job.spec.slug)] or own or every
        if by.owner is not None and not all(job.owner == by.owner for job in found):
            # Only a caller with the full id learns that the job exists.
            if any(job.id == name for job in found):
                raise NotYours(name, by.owner)
            found = own
    is_exact = _is_exact(found, name, by)
    if is_slug or (is_exact and len(found) == 1):
        return found
    query = JobQuery(owner=by.owner, name=name, states=OPEN, limit=_MOST_NAMED)
    called = [job for job in (await store.jobs(query)).jobs if is_called(job, name)]
    if is_exact and found[0].spec.slug == name:
        # One slug of several owners: names do not count, nor do jobs that are over.
        called = [job for job in called if job.spec.slug == name]
    return called or found


async def names_like(store: JobStore, name: str, by: Requester) -> str:
    """Return the short names of open jobs that resemble a name, for an operator; "" for none."""
    if by.owner is not None:
        return ""
    page = await store.jobs(JobQuery(states=OPEN, limit=_MOST_NAMED))
    slugs = sorted({job.spec.slug for job in page.jobs})
    begin = [slug for slug in slugs if slug.startswith(name)]
    return ", ".join((begin or get_close_matches(name, slugs))[:FOUND])


def _is_exact(found: Sequence[Job], name: str, by: Requester) -> bool:
    """Return whether jobs found by slug or id need no comparison with names."""
    if not found or found[0].spec.slug != name:
        return bool(found)
    return by.maker is Maker.OPERATOR and any(job.state in OPEN for job in found)
