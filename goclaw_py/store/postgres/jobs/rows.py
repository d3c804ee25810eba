"""Conversion of rows of jobs and occurrences to values and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import orjson

from goclaw_py.core.errors import BadJob
from goclaw_py.core.ids import JobId, NodeId, OccurrenceId, Owner, RunId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.targets import Maker
from goclaw_py.records import OutboxState
from goclaw_py.schedule.jobs import job_rules
from goclaw_py.schedule.jobs.execution_models import (
    JobStats,
    LoggedOccurrence,
    OccurrenceClaim,
    OccurrenceEnd,
    OccurrenceStatus,
    UnreportedOccurrence,
    Why,
)
from goclaw_py.schedule.jobs.job_json import chained_in, job_json, stored_spec
from goclaw_py.schedule.jobs.models import Job, JobSpec, JobState
from goclaw_py.schedule.jobs.schedule import schedule_json
from goclaw_py.store import job_reading
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.messages import message_json
from goclaw_py.store.postgres.pool import Row
from goclaw_py.store.text import storable


def packed(job: Job) -> str:
    """Return a job as JSON for ``cron_jobs``."""
    job = storable(job)
    target = job.spec.target
    place = rows.TargetColumns.of(target if isinstance(target, Target) else None)
    line = job_json(job) | {
        "spec": stored_spec(job),
        "slug": job.spec.slug,
        "name": job.spec.name,
        "search_text": job_rules.words(job.spec.slug, job.spec.name),
        "agent": job.spec.agent,
        "kind": schedule_json(job.spec.schedule)["kind"],
        "notify": job.spec.notify,
        "channel": place.channel,
        "account": place.account,
        "chat": place.chat,
    }
    return orjson.dumps(line).decode()


def job(row: Row) -> Job:
    """Convert a row of ``cron_jobs``, as far as it can be read: see ``job_reading``."""
    try:
        return readable_job(row)
    except BadJob as flaw:
        # The strictest maker, because the stored one is unknown.
        maker = Maker(row["maker"]) if row["maker"] in {*Maker} else Maker.MODEL
        spec = job_reading.salvaged(
            orjson.loads(row["spec"]), slug=row["slug"], created_at=row["created_at"]
        )
        return replace(_job(row, spec, maker, chained=0), last_error=str(flaw))


def readable_job(row: Row) -> Job:
    """Convert a row of ``cron_jobs``. Raises ``BadJob`` if it cannot be read."""
    stored = orjson.loads(row["spec"])
    spec = job_reading.read_spec(stored)
    if row["maker"] not in {*Maker}:
        raise job_reading.unreadable(BadJob("maker", f"is {row['maker']!r}"))
    return _job(row, spec, Maker(row["maker"]), chained=chained_in(stored))


def is_readable(row: Row) -> bool:
    """Return whether this release can read a row of ``cron_jobs``."""
    try:
        readable_job(row)
    except BadJob:
        return False
    return True


def _job(row: Row, spec: JobSpec, maker: Maker, *, chained: int) -> Job:
    return Job(
        id=JobId(row["id"]),
        owner=Owner(row["owner"]),
        maker=maker,
        spec=spec,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        state=JobState(row["state"]),
        revision=row["revision"],
        next_run_at=row["next_run_at"],
        running=None if row["running"] is None else OccurrenceId(row["running"]),
        last_run_at=row["last_run_at"],
        last_status=row["last_status"],
        last_error=row["last_error"],
        failures=row["failures"],
        runs=row["runs"],
        coalesced=row["coalesced"],
        creator=row["creator"],
        chained=chained,
    )


def claimed(row: Row, now: datetime) -> OccurrenceClaim | OccurrenceEnd:
    """Convert a claim of ``occurrences.claim_due``.

    If its job cannot be read, return the end of the occurrence.
    """
    occurrence, definition = OccurrenceId(row["id"]), orjson.loads(row["definition"])
    try:
        job = job_reading.read_job(definition)
    except BadJob as flaw:
        return job_reading.switched_off(
            occurrence, JobId(row["job"]), definition["revision"], cause=flaw, now=now
        )
    return OccurrenceClaim(
        id=occurrence,
        job=replace(job, running=occurrence),
        due_at=row["scheduled_at"],
        claimed_at=row["claimed_at"],
        claims=row["claims"],
        attempts=row["attempts"],
        manual=row["manual"],
        interrupted=row["interrupted"],
        called=tuple(row["called"] or ()),
        stopped=row["stopped"] is True,
    )


def waited(found: Sequence[Row], claims: Iterable[OccurrenceClaim]) -> list[OccurrenceClaim]:
    """Return claims of occurrences that have waited, from ``occurrences.claim_waiting``."""
    began = {row["id"]: row["began_at"] for row in found}
    return [replace(one, waited=True, began_at=began[one.id]) for one in claims]


def end_line(end: OccurrenceEnd) -> dict[str, object]:
    """Return a record for ``occurrences.end``."""
    line: dict[str, object] = {
        "id": end.id,
        "revision": end.revision,
        "status": end.status,
        "reason": end.why,
        "finished_at": end.finished_at,
        "started_at": end.started_at,
        "attempts": end.attempts,
        "output": end.output,
        "error": end.error,
        "changes": end.update is not None,
        "coalesced": 0,
        "ran": False,
    }
    if (update := end.update) is not None:
        line |= {
            "next_run_at": update.next_run_at,
            "state": job_rules.state_of(update),
            "failed": update.failed,
            "coalesced": update.coalesced,
            "ran": update.ran,
            "removes": update.delete,
            "forgets": update.forget,
            "waits": update.when_delivered,
        }
    if (usage := end.usage) is not None:
        line |= rows.usage_line(usage)
    return line


def logged(row: Row) -> LoggedOccurrence:
    """Convert a row of ``job_runs`` with its runs and the states of its messages."""
    occurrence = OccurrenceId(row["id"])
    return LoggedOccurrence(
        id=occurrence,
        job=JobId(row["job"]),
        slug=row["slug"],
        owner=Owner(row["owner"]),
        scheduled_at=row["scheduled_at"],
        claimed_at=row["claimed_at"],
        started_at=row["started_at"] or row["began_at"],
        finished_at=row["finished_at"],
        status=OccurrenceStatus(row["status"]),
        why=None if row["reason"] is None else Why(row["reason"]),
        attempts=row["attempts"],
        claims=row["claims"],
        manual=row["manual"],
        node=None if row["node"] is None else NodeId(row["node"]),
        output=row["output"],
        error=row["error"],
        usage=None if row["requests"] is None else rows.usage(row),
        runs=tuple(map(RunId, row["runs"])),
        delivery=job_rules.delivery([OutboxState(state) for state in row["deliveries"]]),
        definition=_definition(orjson.loads(row["definition"]), occurrence),
        told_at=row["notified_at"],
        waits_for=SessionKey(row["waits_for"])
        if (row["status"], row["reason"]) == (OccurrenceStatus.WAITING, None)
        else None,
    )


def unreported(row: Row) -> UnreportedOccurrence | None:
    """Convert a row of ``occurrences.not_notified``; None if its job cannot be read."""
    try:
        job = job_reading.read_job(orjson.loads(row["definition"]))
    except BadJob:
        return None
    return UnreportedOccurrence(
        id=OccurrenceId(row["id"]),
        job=job,
        due_at=row["scheduled_at"],
        output=row["output"],
        error=row["error"],
        refused_by=None if row["message"] is None else message_json.outbound(row["message"]).target,
    )


def _definition(stored: object, occurrence: OccurrenceId) -> Mapping[str, object]:
    """Return a job as it was claimed; unchanged if this release cannot read it.

    The database wrote it before the job was marked as running.
    """
    try:
        return job_json(replace(job_reading.read_job(stored), running=occurrence))
    except BadJob:
        return {**stored, "running": occurrence} if isinstance(stored, dict) else {}


def stats(row: Row) -> JobStats:
    """Convert the row of ``occurrences.stats``."""
    return JobStats(
        runs=row["runs"],
        ok=row["ok"],
        failed=row["failed"],
        skipped=row["skipped"],
        mean_s=None if row["mean_s"] is None else float(row["mean_s"]),
        p95_s=None if row["p95_s"] is None else float(row["p95_s"]),
        cost_usd=row["cost_usd"],
    )
