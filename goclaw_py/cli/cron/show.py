"""``goclaw cron show`` and ``runs``: the details of a job, and its past runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Annotated

import typer

from goclaw_py.cli.context import AsJson, Limit, cli
from goclaw_py.cli.cron import texts as words
from goclaw_py.cli.cron.texts import JobName, JobSnapshot, OfJob, operator, routed
from goclaw_py.cli.messages import display
from goclaw_py.cli.output import duration, one_line, show_facts, show_json, show_table
from goclaw_py.common.text import count
from goclaw_py.jobs.execution_models import JobStats, LoggedOccurrence, OccurrenceStatus
from goclaw_py.jobs.models import Job
from goclaw_py.jobs.policy import JobPolicy
from goclaw_py.jobs.view_texts import failures, kind_and_text
from goclaw_py.ports.control import Control

_STATUSES = (
    *("running", "ok", "failed", "timed_out", "cancelled", "skipped", "interrupted", "lost"),
    *("no_route", "undelivered", "waiting"),
)
_TEXT = 60
_LAST_RUNS = 5


def _status(text: str | None) -> str | None:
    if text is not None and text not in _STATUSES:
        raise typer.BadParameter(f"must be one of {', '.join(_STATUSES)}")
    return text


# ---------------------------------------------------------------------------- show


@dataclass(frozen=True, slots=True)
class _Shown:
    seen: JobSnapshot
    stats: JobStats
    log: list[LoggedOccurrence]
    base: JobPolicy


def show(
    ctx: typer.Context,
    job: JobName,
    *,
    days: Annotated[int, typer.Option(min=1, max=3650, help="Days of statistics.")] = 30,
    as_json: AsJson = False,
) -> None:
    """Show the details of a job, with statistics and its last runs."""

    async def ask(control: Control) -> _Shown:

        service, by = control.jobs, operator()
        found = await service.get(job, by)
        since = service.now() - timedelta(days=days)
        return _Shown(
            await routed(service, found),
            await service.stats(found.id, by, since=since),
            await service.log(found.id, by, limit=_LAST_RUNS),
            service.profile.policy,
        )

    found = cli(ctx).ask(ask)
    if as_json:
        from goclaw_py.web.api.wire import adapter  # noqa: PLC0415

        document = {
            **words.document(found.seen),
            "stats": adapter(JobStats).dump_python(found.stats, mode="json"),
            "log": adapter(list[LoggedOccurrence]).dump_python(found.log, mode="json"),
        }
        show_json(dict[str, object], document)
        return
    show_facts([*_facts(found.seen), *_behaviour(found), *_statistics(found.stats, days)])

    kind, text = kind_and_text(found.seen.job.spec.payload)
    display.show_text(kind, text)
    if found.log:
        typer.echo()
        _show_log(found.log, with_job=False)


def _facts(found: JobSnapshot) -> Iterator[tuple[str, str]]:
    job = found.job
    spec, zone = job.spec, job.spec.zone
    yield "job", words.label(job)
    yield "id", job.id
    yield "owner", f"{display.cell(job.owner)} (created by {_maker(job)})"
    yield "state", f"{job.state.value}{f': {found.obstacle}' if found.obstacle else ''}"
    yield "schedule", words.plan(job)
    for number, at in enumerate(found.ahead):
        yield "" if number else "next runs", words.when(at, zone, found.now)
    if job.running is not None:
        yield "running", f"occurrence {job.running}"
    last = words.when(job.last_run_at, zone, found.now)
    yield "last run", f"{last}: {job.last_status}" if last else "none"
    if job.last_error:
        yield "last error", display.cell(job.last_error)
    yield "agent", display.cell(spec.agent)
    yield "target", f"{words.target(spec.target)} ({spec.notify.value})"
    if found.no_route:
        yield "", display.cell(f"cannot deliver there now: {found.no_route}")
    yield from _extras(job)
    yield "created", words.when(job.created_at, zone, found.now)
    yield "changed", f"{words.when(job.updated_at, zone, found.now)}, revision {job.revision}"


def _maker(job: Job) -> str:
    return {"operator": "an operator", "model": "a model", "person": "a person in a chat"}[
        job.maker.value
    ]


def _extras(job: Job) -> Iterator[tuple[str, str]]:
    """Yield the facts that only some jobs have."""
    spec = job.spec
    if model := getattr(spec.payload, "model", ""):
        yield "model", display.cell(model)
    if spec.session:
        yield "session", display.cell(spec.session)
    if spec.max_runs is not None:
        yield "ends after", f"{count(spec.max_runs, 'run')}, {job.runs} done"
    if spec.not_after is not None:
        yield "ends at", words.local(spec.not_after, spec.zone)
    if spec.source:
        yield "work source", display.cell(spec.source)
    if spec.wake_heartbeat:
        yield "heartbeat", "runs after each run of this job"
    if job.failures:
        yield "failures", failures(job.failures)
    if job.coalesced:
        yield "coalesced", f"{count(job.coalesced, 'due time')} passed while it could not run"


def _behaviour(found: _Shown) -> Iterator[tuple[str, str]]:
    """Yield the policy values that differ from the settings."""
    job = found.seen.job
    own, base = asdict(job.policy(found.base)), asdict(found.base)
    different = [key for key in own if own[key] != base[key]]
    for number, key in enumerate(different):
        line = f"{key} = {_plain(own[key])} (settings: {_plain(base[key])})"
        yield "" if number else "policy", line


def _plain(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(map(_plain, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _statistics(stats: JobStats, days: int) -> Iterator[tuple[str, str]]:
    rate = "" if stats.success_rate is None else f", {stats.success_rate:.0%} successful"
    yield f"in {count(days, 'day')}", f"{count(stats.runs, 'run')}{rate}"
    if stats.skipped:
        yield "skipped", count(stats.skipped, "time")
    if stats.mean_s is not None:
        p95 = "" if stats.p95_s is None else f", 95th percentile {duration(stats.p95_s)}"
        yield "took", f"{duration(stats.mean_s)} on average{p95}"
    if stats.cost_usd is not None:
        yield "cost", f"{stats.cost_usd} USD"


# ---------------------------------------------------------------------------- runs


def runs(
    ctx: typer.Context,
    job: OfJob = None,
    status: Annotated[
        str | None, typer.Option(callback=_status, help=f"One of {', '.join(_STATUSES)}.")
    ] = None,
    limit: Limit = 50,
    *,
    as_json: AsJson = False,
) -> None:
    """List past runs of jobs, newest first.

    For a deleted job give its full id with --job.
    """

    async def ask(control: Control) -> list[LoggedOccurrence]:

        wanted = None if status is None else OccurrenceStatus(status)
        return await control.jobs.log(job, operator(), limit=limit, status=wanted)

    found = cli(ctx).ask(ask)
    if as_json:
        show_json(list[LoggedOccurrence], found)
        return
    _show_log(found, with_job=job is None)


def _show_log(rows: list[LoggedOccurrence], *, with_job: bool) -> None:
    columns = ("DUE", "TOOK", "STATUS", "TRIES", "DELIVERY", "COST", "RUN", "OUTPUT")
    found = [
        (
            *((row.slug,) if with_job else ()),
            f"{words.local(row.scheduled_at, _zone(row))}{' manual' if row.by_hand else ''}",
            words.took(row),
            words.ended(row),
            str(row.attempts),
            row.delivery,
            words.cost(row),
            row.runs[-1] if row.runs else "",
            words.waits(row) or one_line(row.error or row.output, _TEXT),
        )
        for row in rows
    ]
    show_table((*(("JOB",) if with_job else ()), *columns), found, empty="no runs yet")


def _zone(row: LoggedOccurrence) -> str:
    """Return the time zone that the job had at that run."""
    spec = row.definition.get("spec")
    return str(spec.get("zone", "UTC")) if isinstance(spec, dict) else "UTC"
