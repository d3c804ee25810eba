"""Rows of jobs and of their log to values and back."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import orjson

from goclaw_py.core.ids import JobId, NodeId, OccurrenceId, Owner, RunId
from goclaw_py.core.job_json import job_json, job_of, spec_of
from goclaw_py.core.jobs import Job, JobState, Maker
from goclaw_py.core.messages import Target
from goclaw_py.core.occurrence import Claimed, JobStats, Logged, OccurrenceEnd, Status, Why
from goclaw_py.core.schedule import schedule_json
from goclaw_py.ports.store import OutboxState
from goclaw_py.store import job_rules
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.pool import Row
from goclaw_py.store.text import storable


def packed(job: Job) -> str:
    """A job as the JSON of a row of ``cron_jobs``."""
    job = storable(job)
    target = job.spec.target
    place = rows.Place.of(target if isinstance(target, Target) else None)
    line = job_json(job) | {
        "slug": job.spec.slug,
        "name": job.spec.name,
        "words": job_rules.words(job.spec.slug, job.spec.name),
        "agent": job.spec.agent,
        "kind": schedule_json(job.spec.schedule)["kind"],
        "notify": job.spec.notify,
        "channel": place.channel,
        "account": place.account,
        "chat": place.chat,
    }
    return orjson.dumps(line).decode()


def job(row: Row) -> Job:
    """A row of ``cron_jobs``."""
    return Job(
        id=JobId(row["id"]),
        owner=Owner(row["owner"]),
        maker=Maker(row["maker"]),
        spec=spec_of(orjson.loads(row["spec"])),
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
    )


def claimed(row: Row, now: datetime) -> Claimed:
    """A job with the occurrence that was claimed, as ``occurrences.claim_due`` tells of it."""
    occurrence = OccurrenceId(row["id"])
    return Claimed(
        id=occurrence,
        job=_defined(row["definition"], occurrence),
        due_at=row["scheduled_at"],
        claimed_at=now,
        claims=row["claims"],
        attempts=row["attempts"],
        interrupted=row["interrupted"],
    )


def end_line(end: OccurrenceEnd) -> dict[str, object]:
    """One record of what ``occurrences.end`` takes."""
    line: dict[str, object] = {
        "id": end.id,
        "revision": end.revision,
        "status": end.status,
        "why": end.why,
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
            "state": update.state,
            "failures": update.failures,
            "coalesced": update.coalesced,
            "ran": update.ran,
            "removes": update.delete,
            "forgets": update.forget,
        }
    if (usage := end.usage) is not None:
        line |= {
            "requests": usage.requests,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cached_tokens": usage.cached_tokens,
            "cost_usd": None if usage.cost_usd is None else str(usage.cost_usd),
        }
    return line


def logged(row: Row) -> Logged:
    """A row of ``cron_run_logs`` with its runs and the states of its messages."""
    occurrence = OccurrenceId(row["id"])
    return Logged(
        id=occurrence,
        job=JobId(row["job"]),
        slug=row["slug"],
        owner=Owner(row["owner"]),
        scheduled_at=row["scheduled_at"],
        claimed_at=row["claimed_at"],
        started_at=row["started_at"] or row["began_at"],
        finished_at=row["finished_at"],
        status=Status(row["status"]),
        why=None if row["why"] is None else Why(row["why"]),
        attempts=row["attempts"],
        claims=row["claims"],
        by_hand=row["by_hand"],
        node=None if row["node"] is None else NodeId(row["node"]),
        output=row["output"],
        error=row["error"],
        usage=None if row["requests"] is None else rows.usage(row),
        runs=tuple(map(RunId, row["runs"])),
        delivery=job_rules.delivery([OutboxState(state) for state in row["deliveries"]]),
        definition=job_json(_defined(row["definition"], occurrence)),
    )


def _defined(definition: str, occurrence: OccurrenceId) -> Job:
    """A job as it was claimed. The database wrote it when the job was about to be marked."""
    return replace(job_of(orjson.loads(definition)), running=occurrence)


def stats(row: Row) -> JobStats:
    """What ``occurrences.stats`` counts."""
    return JobStats(
        runs=row["runs"],
        ok=row["ok"],
        failed=row["failed"],
        skipped=row["skipped"],
        mean_s=None if row["mean_s"] is None else float(row["mean_s"]),
        p95_s=None if row["p95_s"] is None else float(row["p95_s"]),
        cost_usd=row["cost_usd"],
    )
