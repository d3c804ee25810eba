"""``goclaw jobs list``, ``show``, ``runs`` and ``next``: jobs, their past and coming runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from goclaw_py.cli import completion
from goclaw_py.cli.context import (
    AsJson,
    Limit,
    Watch,
    answer,
    answer_or_watch,
    check_agent,
    choice,
    cli,
    maybe_named,
    no_rows,
    note_stored,
    selects,
    with_options,
    with_wide,
)
from goclaw_py.cli.messages import display
from goclaw_py.cli.names import DisplayNames, with_names
from goclaw_py.cli.output import (
    TIME,
    Column,
    Printer,
    brief_when,
    local,
    one_line,
    plain,
    short_id,
    show_facts,
    show_json,
    show_table,
    when,
)
from goclaw_py.core.display_names import address
from goclaw_py.core.ids import AgentName, Owner
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import outcome_text
from goclaw_py.core.text import count, usd
from goclaw_py.core.time.texts import duration
from goclaw_py.operations.jobs.command import texts as words
from goclaw_py.operations.jobs.command.texts import (
    JobName,
    JobSnapshot,
    MaybeJob,
    OfJob,
    former_job_option,
    operator,
    routed,
    seen,
)
from goclaw_py.schedule.jobs.execution_models import JobStats, LoggedOccurrence, OccurrenceStatus
from goclaw_py.schedule.jobs.models import Job, JobState
from goclaw_py.schedule.jobs.policy import JobPolicy
from goclaw_py.schedule.jobs.view_texts import failures, kind_and_text, policy_text, waits

if TYPE_CHECKING:
    from goclaw_py.operations.control import Control
    from goclaw_py.operations.jobs.operations import JobService
    from goclaw_py.records import JobQuery

_TEXT = 60
_LAST_RUNS = 5


# ---------------------------------------------------------------------------- show


@dataclass(frozen=True, slots=True)
class _Shown:
    seen: JobSnapshot
    stats: JobStats
    log: list[LoggedOccurrence]
    base: JobPolicy


@with_wide
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
        settings = await service.scheduler()
        since = settings.now - timedelta(days=days)
        return _Shown(
            await routed(service, found),
            await service.stats(found.id, by, since=since),
            await service.log(found.id, by, limit=_LAST_RUNS),
            settings.profile.policy,
        )

    def keys(found: _Shown) -> Iterator[str]:
        spec = found.seen.job.spec
        yield from words.owner_keys(found.seen.job)
        if isinstance(spec.target, Target):
            yield address(spec.target)
        if spec.session:
            yield spec.session

    def show_one(found: _Shown, names: DisplayNames) -> None:
        note_stored(ctx, unfinished=bool(found.seen.ahead or found.seen.job.running))
        statistics = _statistics(found.stats, days)
        show_facts([*_facts(found.seen, names, found.log), *_behaviour(found), *statistics])
        kind, text = kind_and_text(found.seen.job.spec.payload)
        display.show_text(kind, text)
        if found.log:
            typer.echo()
            _show_log(found.log, with_job=False, empty="")

    answer(ctx, *with_names(ask, keys, dict[str, object], show_one, as_json, _document))


def _document(found: _Shown) -> dict[str, object]:
    from goclaw_py.web.api.wire import adapter  # noqa: PLC0415

    return {
        **words.document(found.seen),
        "stats": adapter(JobStats).dump_python(found.stats, mode="json"),
        "log": adapter(list[LoggedOccurrence]).dump_python(found.log, mode="json"),
    }


def _facts(
    found: JobSnapshot, names: DisplayNames, log: Sequence[LoggedOccurrence]
) -> Iterator[tuple[str, str]]:
    job = found.job
    spec = job.spec
    yield "job", words.label(job)
    yield "id", job.id
    yield "owner", f"{words.owner(job, names)}, created by {_maker(job)}"
    # Most obstacles begin with the state: "paused", "disabled after 3 failures".
    is_said = not found.obstacle or found.obstacle.startswith(job.state.value)
    yield (
        "state",
        found.obstacle or job.state.value if is_said else f"{job.state.value}: {found.obstacle}",
    )
    yield "schedule", words.schedule(job)
    for number, at in enumerate(found.ahead):
        yield "" if number else "next runs", when(at, found.now, spec.zone)
    if job.running is not None:
        run = next((one.runs[-1] for one in log if one.id == job.running and one.runs), None)
        yield "running", f"run {short_id(run)}" if run else "not begun yet: waits for its turn"
    last = when(job.last_run_at, found.now)
    yield "last run", f"{last}: {outcome_text(job.last_status)}" if last else "none"
    if job.last_error:
        yield "last error", display.cell(job.last_error)
    yield "agent", display.cell(spec.agent)
    yield "target", f"{words.target(spec.target, names)}, {spec.notify.value}"
    if found.no_route:
        yield "", display.cell(f"cannot deliver there now: {found.no_route}")
    yield from _extras(job, names)
    yield "created", when(job.created_at, found.now)
    yield "changed", f"{when(job.updated_at, found.now)}, revision {job.revision}"


def _maker(job: Job) -> str:
    return {"operator": "an operator", "model": "a model", "person": "a person in a chat"}[
        job.maker.value
    ]


def _extras(job: Job, names: DisplayNames) -> Iterator[tuple[str, str]]:
    """Yield the facts that only some jobs have."""
    spec = job.spec
    if model := getattr(spec.payload, "model", ""):
        yield "model", display.cell(model)
    if spec.session:
        yield "session", names.with_key(spec.session)
    if spec.max_runs is not None:
        yield "ends after", f"{count(spec.max_runs, 'run')}, {job.runs} done"
    if spec.not_after is not None:
        yield "ends at", local(spec.not_after)
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
        shown, usual = policy_text(key, own[key]), policy_text(key, base[key])
        line = f"{key} = {shown} (settings: {usual})"
        yield "" if number else "policy", line


def _statistics(stats: JobStats, days: int) -> Iterator[tuple[str, str]]:
    rate = "" if stats.success_rate is None else f", {stats.success_rate:.0%} successful"
    yield f"last {count(days, 'day')}", f"{count(stats.runs, 'run')}{rate}"
    if stats.skipped:
        yield "skipped", count(stats.skipped, "time")
    if stats.mean_s is not None:
        p95 = "" if stats.p95_s is None else f", 95th percentile {duration(stats.p95_s)}"
        yield "took", f"{duration(stats.mean_s)} on average{p95}"
    if stats.cost_usd is not None:
        yield "cost", usd(stats.cost_usd)


# ---------------------------------------------------------------------------- runs


_COMPLETED = outcome_text(OccurrenceStatus.OK)
_OUTCOMES = tuple(
    _COMPLETED if status is OccurrenceStatus.OK else status.value for status in OccurrenceStatus
)


@dataclass(frozen=True, slots=True)
class RunsOptions:
    """The options that select runs of jobs."""

    outcome: Annotated[str | None, choice(_OUTCOMES, former=(OccurrenceStatus.OK,))] = None
    limit: Limit = 50
    status: Annotated[
        str | None, choice(OccurrenceStatus, "Former name of --outcome.", hidden=True)
    ] = None
    former_job: Annotated[str | None, former_job_option] = None


@with_wide
@with_options(RunsOptions)
def runs(
    ctx: typer.Context, wanted: RunsOptions, job: MaybeJob = None, *, as_json: AsJson = False
) -> None:
    """List past and current runs of jobs, newest first."""
    name = job or wanted.former_job
    outcome = wanted.outcome or wanted.status

    async def ask(control: Control) -> list[LoggedOccurrence]:
        value = OccurrenceStatus.OK if outcome == _COMPLETED else outcome
        status = None if value is None else OccurrenceStatus(value)
        return await control.jobs.log(name, operator(), limit=wanted.limit, status=status)

    def show_all(found: list[LoggedOccurrence]) -> None:
        note_stored(ctx, unfinished=any(one.finished_at is None for one in found))
        everything = "jobs runs" if name is None else f"jobs runs {name}"
        filtered = outcome is not None
        empty = no_rows("runs", everything, filtered=filtered, otherwise="no runs yet")
        _show_log(found, with_job=name is None, empty=empty)

    answer(ctx, ask, Printer(list[LoggedOccurrence], show_all, as_json))


_LOG = (
    "DUE",
    Column("TOOK", drop=3),
    Column("OUTCOME", least=16, state=True),
    Column("ATTEMPTS", drop=5),
    Column("DELIVERY", drop=4),
    Column("COST", drop=4),
    Column("RUN", drop=2),
    Column("OUTPUT", least=16),
)


def _show_log(rows: list[LoggedOccurrence], *, with_job: bool, empty: str) -> None:
    found = [
        (
            *((row.slug,) if with_job else ()),
            f"{display.moment(row.scheduled_at)}{' manual' if row.manual else ''}",
            duration(row.duration_s),
            words.ended(row),
            str(row.attempts),
            row.delivery,
            words.cost(row),
            short_id(row.runs[-1]) if row.runs else "",
            plain(waits(row)) or one_line(row.error or row.output, _TEXT),
        )
        for row in rows
    ]
    show_table((*(("JOB",) if with_job else ()), *_LOG), found, empty=empty)


_Due = tuple[datetime, Job]
"""When a job is due, and the job."""

PAGE = 500
"""How many jobs one request asks for."""


# ---------------------------------------------------------------------------- list


@dataclass(frozen=True, slots=True)
class _Page:
    jobs: list[JobSnapshot]
    total: int


@dataclass(frozen=True, slots=True)
class Filters:
    """The options that select jobs."""

    everything: Annotated[bool, typer.Option("--all", help="Include finished jobs.")] = False
    owner: Annotated[
        str | None, typer.Option(callback=maybe_named, help="List only jobs of this owner.")
    ] = None
    agent: Annotated[
        str | None,
        typer.Option(autocompletion=completion.agents, help="List only jobs of this agent."),
    ] = None
    state: Annotated[str | None, choice(JobState)] = None
    name: Annotated[str | None, typer.Option(callback=maybe_named, help="Part of the name.")] = None
    limit: Limit = 200

    def query(self) -> JobQuery:
        """Return the query for these options."""
        from goclaw_py.records import JobQuery  # noqa: PLC0415  (not needed for --help)

        states: tuple[JobState, ...] = ()
        if self.state is not None:
            states = (JobState(self.state),)
        elif not self.everything:
            states = tuple(state for state in JobState if state is not JobState.COMPLETED)
        return JobQuery(
            owner=None if self.owner is None else Owner(self.owner),
            agent=None if self.agent is None else AgentName(self.agent),
            name=self.name or "",
            states=states,
            limit=self.limit,
        )


@with_wide
@with_options(Filters)
def list_(
    ctx: typer.Context, wanted: Filters, *, watch: Watch = None, as_json: AsJson = False
) -> None:
    """List jobs, sorted by their next run."""

    async def ask(control: Control) -> _Page:
        service, settings = control.jobs, await control.jobs.scheduler()
        page = await service.search(wanted.query(), operator())
        if not page.jobs:
            await check_agent(control, wanted.agent)
        return _Page(
            [seen(settings, job, 1 if as_json else 0) for job in page.jobs],
            page.total,
        )

    def documents(found: _Page) -> list[dict[str, object]]:
        return [words.document(one) for one in found.jobs]

    def keys(found: _Page) -> Iterator[str]:
        return (key for one in found.jobs for key in words.owner_keys(one.job))

    def show_all(found: _Page, names: DisplayNames) -> None:
        note_stored(ctx, unfinished=bool(found.jobs))
        empty = no_rows("jobs", "jobs list --all", filtered=selects(wanted), otherwise="no jobs")
        _show_all(found, names, empty)

    kind = list[dict[str, object]]
    question, output = with_names(ask, keys, kind, show_all, as_json, documents)
    answer_or_watch(ctx, question, output, watch)


_JOBS = (
    Column("STATE", state=True),
    Column("SCHEDULE", drop=2, least=12),
    Column("NEXT RUN", least=TIME),
    Column("LAST RUN", drop=3, least=TIME),
    Column("RESULT", drop=1, state=True),
    Column("NOTE", least=16),
)


def _show_all(found: _Page, names: DisplayNames, empty: str) -> None:
    several = len({one.job.owner for one in found.jobs}) > 1
    rows = [_row(one, names, with_owner=several) for one in found.jobs]
    owner, key = Column("OWNER", drop=4, least=12), Column("KEY", drop=9)
    columns = ("JOB", *((owner,) if several else ()), *_JOBS, *((key,) if several else ()))
    show_table(columns, rows, empty=empty)
    if found.total > len(rows):
        typer.echo(f"showing {len(rows)} of {found.total} jobs; use --limit to see more", err=True)


def _row(found: JobSnapshot, names: DisplayNames, *, with_owner: bool) -> tuple[str, ...]:
    job = found.job
    return (
        job.spec.slug,
        *((words.owner(job, names, with_key=False),) if with_owner else ()),
        job.state.value,
        words.schedule(job),
        brief_when(job.next_run_at, found.now),
        brief_when(job.last_run_at, found.now),
        outcome_text(job.last_status),
        "" if found.remark == job.state.value else found.remark,
        *((display.cell(job.owner),) if with_owner else ()),
    )


# ---------------------------------------------------------------------------- next


@with_wide
def next_(
    ctx: typer.Context,
    number: Annotated[
        int | None,
        typer.Argument(min=1, max=1000, hidden=True, help="Former way to give --limit."),
    ] = None,
    job: OfJob = None,
    *,
    limit: Limit = 10,
    as_json: AsJson = False,
) -> None:
    """List the next scheduled runs of all jobs.

    Retries and manual runs are not included.
    """
    most = number or limit

    async def ask(control: Control) -> tuple[list[_Due], datetime, bool]:
        service, settings = control.jobs, await control.jobs.scheduler()
        base = settings.profile.policy
        if job is not None:
            one = await service.get(job, operator())
            ahead = [(at, one) for at in one.upcoming(base, most)]
        else:
            ahead = await _ahead(service, base, most)
        return ahead, settings.now, settings.enabled

    found, now, enabled = cli(ctx).ask(ask)
    if as_json:
        shown = [{"at": at.isoformat(), "slug": due.spec.slug} for at, due in found]
        show_json(list[dict[str, str]], shown)
        return
    note_stored(ctx, unfinished=bool(found))
    if not enabled:
        typer.echo("jobs are turned off (scheduler.enabled = false)", err=True)
    rows = [
        (
            brief_when(at, now),
            due.spec.slug,
            one_line(kind_and_text(due.spec.payload)[1], _TEXT),
        )
        for at, due in found
    ]
    columns = (
        Column("WHEN", least=TIME),
        "JOB",
        Column("PROMPT", least=16),
    )
    show_table(columns, rows, empty="no upcoming runs")


async def _ahead(service: JobService, base: JobPolicy, number: int) -> list[_Due]:
    """Return the next runs of all jobs.

    Pages are sorted by the next run of a job, so reading stops at the first job that is later.
    """
    from goclaw_py.records import JobQuery  # noqa: PLC0415  (not needed for --help)

    found: list[_Due] = []
    offset = 0
    while True:
        query = JobQuery(states=(JobState.ACTIVE,), limit=PAGE, offset=offset)
        page = (await service.search(query, operator())).jobs
        for job in page:
            last = found[number - 1][0] if len(found) >= number else None
            if job.next_run_at is None or (last is not None and job.next_run_at > last):
                return found
            found += [(at, job) for at in job.upcoming(base, number)]
            found = sorted(found, key=lambda due: due[0])[:number]
        if len(page) < PAGE:
            return found
        offset += PAGE
