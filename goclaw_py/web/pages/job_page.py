"""What the page of one job shows: everything about it, and what became of its runs (CRON-12)."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from goclaw_py.common.time_texts import at
from goclaw_py.jobs.execution_models import OccurrenceStatus
from goclaw_py.jobs.models import SLUG, Job, Notify, Prompt
from goclaw_py.jobs.view_texts import kind_and_text, plan
from goclaw_py.model.errors import JobError, UnknownJob
from goclaw_py.model.owners import Maker
from goclaw_py.ports.control import NotFound
from goclaw_py.ports.jobs import Requester
from goclaw_py.web.pages.durations import plot_of
from goclaw_py.web.pages.job_texts import (
    STATES,
    logged_line,
    place,
    remark,
)
from goclaw_py.web.pages.services import Facts, PageServices, Query
from goclaw_py.web.pages.services import place as place_in

BY: Final = Requester(owner=None, maker=Maker.OPERATOR)
"""Whoever looks at the dashboard is an operator."""

SHOWN: Final = 50
AHEAD: Final = 5
STATISTICS_DAYS: Final = 30

_TOLD: Final = {
    Notify.ALWAYS: "always",
    Notify.CONDITIONAL: "when the agent says so",
    Notify.NEVER: "never",
}


async def found(service: PageServices, asked: str) -> Job:
    """A job by id, beginning of an id, or slug. Raises ``NotFound``."""
    if not SLUG.fullmatch(asked):
        raise NotFound("there is no such job")
    try:
        return await service.control.jobs.get(asked, BY)
    except UnknownJob as error:
        raise NotFound(str(error)) from error


async def look_at(service: PageServices, query: Query) -> Facts:
    """The job that ``id`` names, with a page of its history."""
    jobs = service.control.jobs
    job = await found(service, query.get("id", ""))
    status = next((one for one in OccurrenceStatus if one == query.get("status")), None)
    before = place_in(query.get("before"))
    since = jobs.now() - timedelta(days=STATISTICS_DAYS)
    rows, stats = await asyncio.gather(
        jobs.log(job.id, BY, limit=SHOWN + 1, status=status, before=before),
        jobs.stats(job.id, BY, since=since),
    )
    lines = [logged_line(row, job.spec.zone) for row in rows[:SHOWN]]
    kind, text = kind_and_text(job.spec.payload)
    return {
        "title": job.spec.title,
        "path": "/jobs",
        "job": job,
        "meaning": STATES[job.state],
        "plan": plan(job),
        "remark": remark(jobs, job),
        "kind": kind,
        "text": text,
        "ahead": _ahead(service, job),
        "facts": _facts(job),
        "stats": stats,
        "days": STATISTICS_DAYS,
        "lines": lines,
        "plot": plot_of(lines),
        "next": rows[SHOWN - 1].cursor if len(rows) > SHOWN else None,
        "later": before is not None,
        "statuses": list(OccurrenceStatus),
        "status": status,
    }


def _ahead(service: PageServices, job: Job) -> list[tuple[str, datetime]]:
    """Its next times, in its zone and as they are."""
    try:
        coming = service.control.jobs.upcoming(job, AHEAD)
    except JobError:
        # What is wrong with it is told where its schedule is.
        return []
    return [(at(each, job.spec.zone), each) for each in coming]


def _facts(job: Job) -> dict[str, str]:
    """What people have decided of it, by names for people; what is not decided is left out."""
    spec, payload = job.spec, job.spec.payload
    facts = {
        "Short name": spec.slug,
        "Agent": spec.agent,
        "Time zone": spec.zone,
        "Results go to": place(job),
        "Results are sent": _TOLD[spec.notify],
        "Model": payload.model if isinstance(payload, Prompt) else "",
        "Session": spec.session,
        "Work source": spec.source,
        "Ends after": f"{spec.max_runs} runs" if spec.max_runs else "",
        "Not after": at(spec.not_after, spec.zone) if spec.not_after else "",
        "Wakes the heartbeat": "yes" if spec.wake_heartbeat else "",
        "Own policy": ", ".join(
            f"{key} = {_value(value)}" for key, value in sorted(spec.policy.items())
        ),
        "Owner": job.owner,
        "Created by": f"{job.maker.value}, {at(job.created_at, spec.zone)}",
        "Changed": at(job.updated_at, spec.zone) if job.updated_at != job.created_at else "",
        "Runs": f"{job.runs:,}",
        "Merged runs": f"{job.coalesced:,}" if job.coalesced else "",
        "Id": job.id,
    }
    return {name: value for name, value in facts.items() if value}


def _value(value: object) -> str:
    if isinstance(value, tuple | list):
        return "/".join(map(_value, value))
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
