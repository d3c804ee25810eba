"""Why a job did or did not run, and why nobody was notified.

It needs approvals, runs and nodes as well, so it is in no folder of a noun.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from goclaw_py.core.display_names import short_id
from goclaw_py.core.targets import Maker
from goclaw_py.gateway.why.sources import Sources, Verdict, between, brief, conclude, quoted
from goclaw_py.operations.approvals import why as approvals
from goclaw_py.operations.explanation import (
    Cure,
    Explanation,
    ExplanationStep,
    Subject,
    SubjectKind,
    setting_cure,
)
from goclaw_py.operations.jobs.lookup import find_jobs
from goclaw_py.operations.jobs.models import Requester
from goclaw_py.schedule.jobs.execution_models import (
    ENDED_BADLY,
    LoggedOccurrence,
    OccurrenceStatus,
    Why,
)
from goclaw_py.schedule.jobs.models import Job, JobState, Notify, Program
from goclaw_py.schedule.jobs.view_texts import obstacle, plan, waits, why_words
from goclaw_py.scheduler.operator_warnings import shell_command

OPERATOR: Final = Requester(None, Maker.OPERATOR)

_SHOWN: Final = 5
_ZONES: Final = ("Europe/Berlin", "America/New_York")
"""Examples of time zones."""
_CLAIMED_S: Final = 2.0
"""What is due this long and is not claimed waits for room in its lane."""
_OVERDUE_S: Final = 60.0
"""A job that is overdue for longer, in seconds, will not start by itself."""


def subject(job: Job) -> Subject:
    """Return the job as a subject."""
    return Subject(SubjectKind.JOB, job.id, job.spec.title)


async def explain(src: Sources, job: Job) -> Explanation:
    """Explain the last occurrence of a job, or why it has none."""
    log = await src.control.jobs.log(job.id, OPERATOR, limit=_SHOWN)
    # As people type it, unless another job has that name.
    is_unique = len(await find_jobs(src.store, job.spec.slug, OPERATOR)) == 1
    verdict = await _judge(src, job, log, job.spec.slug if is_unique else short_id(job.id))
    made = ExplanationStep(job.created_at, "made", f"created by {_MAKERS[job.maker]}: {plan(job)}")
    steps = [made, *(_step(row) for row in reversed(log))]
    if job.next_run_at is not None and job.state is JobState.ACTIVE:
        steps.append(ExplanationStep(job.next_run_at, "next", "its next run"))
    return verdict.explanation(subject(job), src.now(), steps)


async def explain_deleted(src: Sources, log: list[LoggedOccurrence]) -> Explanation:
    """Explain a deleted job by its stored occurrences, the newest first."""
    last = log[0]
    verdict = _deleted(last)
    about = Subject(SubjectKind.JOB, last.job, last.slug)
    chain = tuple(_step(row) for row in reversed(log[:_SHOWN]))
    return verdict.explanation(about, src.now(), chain)


_MAKERS: Final = {
    Maker.OPERATOR: "an operator",
    Maker.MODEL: "an agent",
    Maker.PERSON: "a person in a chat",
}


def _deleted(last: LoggedOccurrence) -> Verdict:
    if last.status is OccurrenceStatus.OK:
        answer = f"The job {last.slug} ran and was then deleted, as one-time jobs are by default."
        keep = setting_cure(
            "Keep such jobs: delete_after_run = false under [scheduler] in goclaw.toml",
            "scheduler.delete_after_run",
        )
        return conclude("job.done_and_deleted", answer, _log_of(last), keep)
    answer = f"The job {last.slug} was deleted; its last run {_clause(last)}."
    return conclude("job.deleted", answer, _log_of(last))


def _log_of(row: LoggedOccurrence) -> Cure:
    return Cure("Its last run", f"goclaw jobs runs {row.job}")


# ---------------------------------------------------------------------------- results


async def _judge(src: Sources, job: Job, log: list[LoggedOccurrence], job_id: str) -> Verdict:
    name = f"The job {job.spec.title}"
    if job.state is not JobState.ACTIVE or not (await src.control.jobs.scheduler()).enabled:
        return await _obstacle(src, job, log, job_id)
    if job.running is not None:
        return await _running(src, job, log)
    if job.next_run_at is None:
        new = Cure("Change its schedule, for example", f"goclaw jobs edit {job_id} --every 1d")
        return conclude(
            "job.never_again", f"{name} is active, but its schedule has no further run.", new
        )
    late_s = (src.now() - job.next_run_at).total_seconds()
    if late_s > _OVERDUE_S and await src.status() is None:
        start = Cure("Start a gateway; jobs run in it", "goclaw run")
        answer = (
            f"{name} was due {between(job.next_run_at, src.now())} ago: no gateway is running here."
        )
        return conclude("job.no_gateway", answer, start)
    if late_s > _CLAIMED_S:
        return _not_started(job, between(job.next_run_at, src.now()))
    if log:
        return await _last(src, job, log[0], job_id)
    due = src.time(job.next_run_at, job.spec.zone)
    other = next(zone for zone in _ZONES if zone != job.spec.zone)
    answer = f"{name} has not been due yet: it runs {due}."
    cures = (
        Cure("Its next runs, in its time zone", f"goclaw jobs next --job {job_id}"),
        Cure("Run it now", f"goclaw jobs run {job_id}"),
        Cure("Change its time zone, for example", f"goclaw jobs edit {job_id} --tz {other}"),
    )
    return conclude("job.not_yet", answer, *cures)


async def _obstacle(src: Sources, job: Job, log: list[LoggedOccurrence], job_id: str) -> Verdict:
    """Explain a job that does not run at all."""
    enabled = (await src.control.jobs.scheduler()).enabled
    resume = Cure("Resume it", f"goclaw jobs resume {job_id}")
    answer = f"The job {job.spec.title} does not run: {obstacle(job, is_enabled=enabled)}."
    match job.state:
        case JobState.PAUSED:
            return conclude("job.paused", answer, resume)
        case JobState.DISABLED:
            return conclude("job.disabled", answer, *_run_cures(log), resume)
        case JobState.COMPLETED:
            again = Cure(
                "Change its schedule, for example", f"goclaw jobs edit {job_id} --at 'in 1h'"
            )
            return conclude("job.completed", answer, again)
        case JobState.FAILED:
            now = Cure("Run it now", f"goclaw jobs run {job_id}")
            return conclude("job.failed", answer, *_run_cures(log), now)
        case JobState.ACTIVE:
            on = setting_cure(
                "Turn jobs on: enabled = true under [scheduler] in goclaw.toml",
                "scheduler.enabled",
            )
            return conclude("job.scheduler_off", answer, on)


async def _running(src: Sources, job: Job, log: list[LoggedOccurrence]) -> Verdict:
    if log and log[0].why is Why.APPROVAL:
        return await _asking(src, job, log[0])
    if log and log[0].waits_for is not None and not log[0].runs:
        return _waiting(job, log[0])
    run = log[0].runs[-1] if log and log[0].runs else None
    due = log[0].claimed_at if log else job.updated_at
    lasts = between(due, src.now())
    node = log[0].node if log else None
    if node is not None and not await src.is_reachable(node):
        answer = (
            f"The job {job.spec.title} was interrupted: node {node}, which ran it, does "
            "not respond."
        )
        start = Cure("A gateway that runs takes it over within 15 s", "goclaw status")
        return conclude("job.node_lost", answer, start)
    if run is None:
        return _not_started(job, lasts)
    answer = f"The job {job.spec.title} is running, for {lasts} now."
    return conclude("job.running", answer, Cure("What it does", f"goclaw why run:{run}"))


def _not_started(job: Job, lasts: str) -> Verdict:
    answer = f"The job {job.spec.title} came due {lasts} ago and has not started."
    return conclude("job.waits", answer, Cure("Who is in lane cron, and who waits", "goclaw lanes"))


def _waiting(job: Job, row: LoggedOccurrence) -> Verdict:
    """Explain an occurrence whose session has another run, here or on another node."""
    cures = [Cure("All running and waiting runs there", shell_command("queue", str(row.waits_for)))]
    if row.blocking_run:
        cures.append(Cure("The run in progress there", f"goclaw why run:{row.blocking_run}"))
    answer = f"The job {job.spec.title} {waits(row)}."
    return conclude("job.waits_for_session", answer, *cures)


async def _asking(src: Sources, job: Job, row: LoggedOccurrence) -> Verdict:
    """Explain an occurrence whose run has asked a person about a tool call."""
    (run,) = await src.store.find_run(row.runs[-1])
    asked = await approvals.questions(src, run.id, run.session)
    verdict = await approvals.judge(src, asked, run.id)
    return replace(verdict, answer=f"The job {job.spec.title} {waits(row)}. {verdict.answer}")


async def _last(src: Sources, job: Job, row: LoggedOccurrence, job_id: str) -> Verdict:
    """Explain the newest occurrence."""
    zone = job.spec.zone
    begin = f"The last run of job {job.spec.title}, {src.time(row.scheduled_at, zone)},"
    code = f"job.{(row.why or row.status).value}"
    cures = [*_cures(job, row, job_id), *_run_cures([row])]
    clause = _clause(row)
    if row.status is OccurrenceStatus.OK and row.why is None and job.spec.notify is Notify.NEVER:
        code, clause = (
            "job.tells_nobody",
            "completed; its result is not sent, because the job has notify = never",
        )
        tell = Cure("Send its results", f"goclaw jobs edit {job_id} --notify always")
        cures.insert(0, tell)
    elif row.status is OccurrenceStatus.OK and row.why is None and row.delivery == "waiting":
        code, clause = "job.delivery_waiting", "completed, and its message waits to be sent"
    elif row.status is OccurrenceStatus.OK and row.why is None and row.delivery == "failed":
        code, clause = "job.undelivered", "completed, but its message could not be delivered"
        cures.insert(0, Cure("The message, and why", "goclaw deliveries list --state failed"))
    next_at = (
        "" if job.next_run_at is None else f" It is due again {src.time(job.next_run_at, zone)}."
    )
    return conclude(code, f"{begin} {clause}.{next_at}", *cures)


def _clause(row: LoggedOccurrence) -> str:
    """Return the result of an occurrence: ``was skipped: there was no work for it``."""
    verb = waits(row) or _VERBS[row.status]
    cause = why_words(row.why) if row.why and not waits(row) else ""
    error = brief(row.error)
    told = f"{verb}: {cause}" if cause else verb
    if not error:
        return told
    return f"{told} ({error})" if cause else f"{told}: {error}"


_VERBS: Final = {
    OccurrenceStatus.RUNNING: "is running",
    OccurrenceStatus.WAITING: "waits for its session",
    OccurrenceStatus.OK: "completed",
    OccurrenceStatus.FAILED: "failed",
    OccurrenceStatus.TIMED_OUT: "timed out",
    OccurrenceStatus.CANCELLED: "was cancelled",
    OccurrenceStatus.SKIPPED: "was skipped",
    OccurrenceStatus.INTERRUPTED: "was interrupted by a shutdown",
    OccurrenceStatus.LOST: "was lost: its process ended during the run, or forgot it",
    OccurrenceStatus.NO_ROUTE: "completed, but there was no chat to send its result to",
    OccurrenceStatus.UNDELIVERED: "completed, but the channel refused its result",
}


def _step(row: LoggedOccurrence) -> ExplanationStep:
    begin = "run by hand" if row.manual else "due"
    said = f"; it said {quoted(row.output)}" if row.output.strip() else ""
    sent = f"; its message: {row.delivery}" if row.delivery else ""
    runs = f"; run {short_id(row.runs[-1])}" if row.runs else ""
    words = f"{begin}: {_clause(row)}{said}{sent}{runs}"
    return ExplanationStep(row.scheduled_at, f"occurrence_{row.status.value}", words)


# ---------------------------------------------------------------------------- cures


def _run_cures(log: list[LoggedOccurrence]) -> list[Cure]:
    """Return the command for the run of the newest occurrence, if it had one."""
    run = log[0].runs[-1] if log and log[0].runs else None
    return [] if run is None else [Cure("That run", f"goclaw why run:{run}")]


def _cures(job: Job, row: LoggedOccurrence, job_id: str) -> list[Cure]:
    """Return the remedies for the newest occurrence."""
    wanted = _BY_STATUS.get(row.status) or (_BY_WHY.get(row.why, ()) if row.why else ())
    if not wanted and row.status in (*ENDED_BADLY, OccurrenceStatus.CANCELLED):
        wanted = (_PROGRAM, _NOW) if isinstance(job.spec.payload, Program) else (_NOW,)
    return [Cure(words, command.format(job=job_id)) for words, command in wanted]


_NOW: Final = ("Run it now", "goclaw jobs run {job}")
_PROGRAM: Final = ("Change the program that it runs", "goclaw jobs edit {job} --help")
_TO: Final = (
    ("Send its results to the last chat", "goclaw jobs edit {job} --to last"),
    ("Or write to the agent in the chat that should get the result", ""),
)
_BUSY: Final = (
    ("Let it wait for its turn", "goclaw jobs edit {job} --policy on_busy=queue"),
    _NOW,
)
_BY_STATUS: Final = {OccurrenceStatus.NO_ROUTE: _TO, OccurrenceStatus.UNDELIVERED: _TO}
_BY_WHY: Final = {
    Why.MISSED: (
        _NOW,
        ("Make up for missed times", "goclaw jobs edit {job} --policy misfire=once"),
    ),
    Why.BUSY: _BUSY,
    Why.AT_CAPACITY: _BUSY,
    Why.NO_WORK: (("It runs when its source has work", "goclaw jobs show {job}"),),
    Why.TOO_FREQUENT: (("A longer interval, for example", "goclaw jobs edit {job} --every 1h"),),
    Why.BUDGET: (
        ("Give it more", "goclaw jobs edit {job} --policy usd=2 --policy turns=30"),
        _NOW,
    ),
    Why.NO_NOTIFY: (
        ("Send every result", "goclaw jobs edit {job} --notify always"),
        ("Or change its prompt so that the reply begins with [NOTIFY]", ""),
    ),
    Why.OUTAGE: (("Check key, address and model of its agent", "goclaw doctor"), _NOW),
}
