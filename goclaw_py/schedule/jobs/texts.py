"""Texts about jobs for people in chats, and prompts for agents in scheduled runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from goclaw_py.chat.outbound.ok_token import NO_REPLY, is_silent, without_token
from goclaw_py.core.display_names import KnownNames, address, display_name, short_id
from goclaw_py.core.errors import JobError, NotYours, TooManyJobs, UnknownJob
from goclaw_py.core.text import clause, curly, sentence, truncate
from goclaw_py.core.time.texts import ChatZone, friendly, named, rough, weekday, zone_or_utc
from goclaw_py.schedule.jobs.execution_models import UnreportedOccurrence, Why
from goclaw_py.schedule.jobs.models import Job, JobSpec, JobState, Notify
from goclaw_py.schedule.jobs.schedule import At, describe
from goclaw_py.scheduler.operator_warnings import (
    OperatorWarning,
    refusals_text,
    shell_command,
    undelivered_text,
)

NOTIFY: Final = "[NOTIFY]"
"""With ``Notify.CONDITIONAL``, only a reply that begins so is sent (SPEC CRON-13)."""

"""A reply that consists only of this is not sent."""

LATE: Final = timedelta(seconds=60)
"""A reminder that is later than this contains a note about it (SPEC CRON-6)."""

_TITLE_CHARS: Final = 60
_REASON_CHARS: Final = 400

OFF: Final = "Jobs are turned off, so none of them runs. The operator can turn them on."
NO_JOBS: Final = (
    "This chat has no jobs. Ask me for one, for example: remind me in 20 minutes to call Ann."
)
ANSWERED: Final = "A button below this reminder was already used."
GONE: Final = "This reminder is no longer stored."
HOW: Final = "To change a job: /jobs pause N, /jobs resume N, /jobs run N or /jobs delete N."
IS_RUNNING: Final = "This job is already running."
NO_ROOM: Final = "Too many jobs are running. Please try again later."
NO_WORK: Final = "There is no work for this job right now."
NO_JOB_ANY_MORE: Final = "This job does not exist any more."
NOT_CARRIED_OUT: Final = "No jobs are run at the moment. Please try again later."

# ---------------------------------------------------------------------------- what is delivered


def notify_text(reply: str, notify: Notify) -> tuple[str, Why | None]:
    """Return the part of a job's reply to send, "" for none, and the reason for none if any.

    Source: SPEC CRON-13, HB-6.
    """
    if notify is Notify.NEVER:
        return "", None
    text = without_token(reply)
    marked = text.lstrip().startswith(NOTIFY)
    if notify is Notify.CONDITIONAL and marked:
        # Without the preceding word, the rest may contain the token as a word.
        text = without_token(text.lstrip().removeprefix(NOTIFY).strip())
    if is_silent(text):
        return "", Why.NO_REPLY
    if notify is Notify.CONDITIONAL and not marked:
        return "", Why.NO_NOTIFY
    return text, None


@dataclass(frozen=True, slots=True)
class DueTimeText:
    """When a job was due, as told to a chat at ``now``.

    ``zone``: that of the chat, or of the job where the chat has chosen none.
    """

    at: datetime
    now: datetime
    zone: ChatZone

    @property
    def is_late(self) -> bool:
        """Whether the message needs a note that it is late."""
        return self.now - self.at > LATE

    def when(self, instant: datetime) -> str:
        """Return a point in time, for the readers of the chat."""
        return self.zone.when(instant, self.now)

    def __str__(self) -> str:
        """Return when it was due."""
        return self.when(self.at)


def delivery(spec: JobSpec, text: str, due: DueTimeText) -> str:
    """Return the message of a job to a chat, in Markdown (SPEC CRON-13).

    A reminder has no title, and a note if it is late (SPEC CRON-6); other messages show the title
    of their job.
    """
    if not isinstance(spec.schedule, At):
        return f"🗓 {_title(spec.title)}\n\n{text}"
    # On the same line, the sign would turn a list or a code block into plain text.
    said = f"⏰\n\n{text}" if _BLOCK.match(text) else f"⏰ {text.lstrip()}"
    late = reminder_late(due)
    return f"{said}\n\n{late}" if late else said


_BLOCK = re.compile(r"\s*\n|\s*(?:```|~~~|#{1,6}\s|>|\||[-*+]\s|\d+[.)]\s)| {4}|\t")
"""The beginning of a Markdown block."""


def reminder_late(due: DueTimeText) -> str:
    """Return the note of a late reminder, "" if it is on time (SPEC CRON-6)."""
    late = rough((due.now - due.at).total_seconds())
    return f"(Late by {late}: it was due {due}.)" if due.is_late else ""


def delivered_from(title: str, text: str) -> str:
    """Return the history entry for a message of a job in a chat (SPEC AGENT-7)."""
    return f"[from the job “{_title(title)}”]\n{text}"


def undelivered(title: str, place: str, why: str, text: str, due: DueTimeText) -> str:
    """Return the notice about a result that could not be delivered; its ``text`` if readable."""
    fate = undelivered_text(place, clause(why, _REASON_CHARS))
    said = f".\n\n{text}" if text else "."
    return f"⚠️ “{_title(title)}”, due {due}, {fate}{said}"


# ---------------------------------------------------------------------------- failures


def job_failed(
    title: str,
    due: DueTimeText,
    reason: str,
    next_try: datetime | None,
    state: JobState = JobState.ACTIVE,
) -> str:
    """Return the notice about a run that failed after its last retry (SPEC CRON-13)."""
    return f"⚠️ “{_title(title)}”, due {due}, failed: {_reason(reason, next_try, due, state)}"


def job_failed_thrice(
    title: str,
    due: DueTimeText,
    reason: str,
    next_try: datetime | None,
    state: JobState = JobState.ACTIVE,
) -> str:
    """Return the notice to owners about a job without notices of single failures (SPEC CRON-13)."""
    why = _reason(reason, next_try, due, state)
    return f"⚠️ “{_title(title)}” has failed three times in a row, last {due}: {why}"


def job_disabled(title: str, failures: int, reason: str) -> str:
    """Return the notice about a job that was disabled after too many failures (SPEC CRON-8).

    A change of the job during its run takes precedence; this text is written before that is known.
    """
    often = f"{failures} times in a row" if failures > 1 else "once"
    return (
        f"⚠️ “{_title(title)}” has failed {often}. I disabled it, unless someone "
        f"has changed it in the meantime. Last error: {_sentence(reason)}"
    )


def _reason(reason: str, next_try: datetime | None, due: DueTimeText, state: JobState) -> str:
    again = "It will not run again."
    if state is JobState.PAUSED or state is JobState.DISABLED:
        again = f"The job is {state}."
    elif state is JobState.ACTIVE and next_try is not None:
        # A job that came due during a manual run runs right after it.
        again = f"Next run: {due.when(next_try) if next_try >= due.now else 'now'}."
    return f"{_sentence(reason)} {again}"


# ---------------------------------------------------------------------------- for the agent


def scheduled_run(title: str, due: datetime, now: datetime, zone: str, notify: Notify) -> str:
    """Return the system text of a scheduled run, beside its prompt (SPEC AGENT-7, CRON-13)."""
    here, name = zone_or_utc(zone)
    due_text, now_text = (
        instant.astimezone(here).isoformat(timespec="seconds") for instant in (due, now)
    )
    return (
        f"This is a scheduled run of the job “{_title(title)}”. It was due at {due_text} and runs "
        f"at {now_text}, in the time zone {name}. Nobody may be there to answer, so do not ask "
        f"questions; do what you can without answers.\n{_TOLD[notify]}"
    )


_TOLD: Final = {
    Notify.ALWAYS: "Your reply is sent to the user. If there is nothing to say, reply with "
    f"{NO_REPLY} and nothing else.",
    Notify.CONDITIONAL: "You are executing a scheduled task. If the result warrants notifying the "
    f"user, begin your response with {NOTIFY} followed by the notification message. If no "
    f"notification is needed, respond normally without {NOTIFY}.",
    Notify.NEVER: "Your reply is stored and not sent to anyone.",
}


def work_prompt(prompt: str, title: str, body: str, url: str) -> str:
    """Return the prompt of a job with the work item to process (SPEC CRON-18).

    All of it is the user's message, never system text (SPEC AGENT-7).
    """
    item = [f"Work item: {' '.join(title.split())}", body.strip(), url and f"URL: {url.strip()}"]
    return "\n\n".join(filter(None, [prompt, *item]))


# ---------------------------------------------------------------------------- commands


def jobs(shown: Sequence[Job], total: int, zone: ChatZone, now: datetime, *, enabled: bool) -> str:
    """Return the answer to ``/jobs``: the jobs ``shown`` out of ``total``, numbered from 1.

    Times are in the zone of the chat; a schedule in another zone is shown with its zone.
    """
    lines = [] if enabled else [OFF]
    if not shown:
        return "\n".join([*lines, NO_JOBS] if enabled else lines)
    titles = Counter(job.spec.title.casefold() for job in shown)
    for number, job in enumerate(shown, 1):
        slug = f" ({job.spec.slug})" if titles[job.spec.title.casefold()] > 1 else ""
        lines.append(f"{number}. {_title(job.spec.title)}{slug}: {_line(job, zone.name, now)}")
    if total > len(shown):
        lines.append(f"… and {total - len(shown)} more.")
    return "\n".join([*lines, *zone.note(lines), HOW])


def next_jobs(coming: Sequence[Job], zone: ChatZone, now: datetime, *, enabled: bool) -> list[str]:
    """Return the lines of ``/status`` about coming jobs, in the zone of the chat."""
    if coming and not enabled:
        return [OFF]
    # One that runs now is among what runs.
    lines = [
        f"- {_title(job.spec.title)}: {friendly(job.next_run_at, zone.name, now)}"
        for job in coming
        if job.next_run_at is not None and (job.running is None or job.next_run_at > now)
    ]
    return ["Next jobs:", *lines, *zone.note(lines)] if lines else []


def _line(job: Job, zone: str, now: datetime) -> str:
    spec = job.spec
    if isinstance(spec.schedule, At):
        when = f"once {friendly(spec.schedule.at, zone, now)}"
    else:
        when = describe(spec.schedule, spec.zone).removesuffix(f" ({zone})")
    facts = [when]
    match job.state:
        case JobState.ACTIVE:
            facts += _ahead(job, zone, now, is_named=when.endswith(f"({spec.zone})"))
        case JobState.PAUSED:
            facts.append("paused")
        case JobState.COMPLETED:
            facts.append("done")
        case JobState.FAILED:
            facts.append(
                f"failed: {clause(job.last_error, _REASON_CHARS)}" if job.last_error else "failed"
            )
        case JobState.DISABLED:
            after = f" after {job.failures} failures" if job.failures > 1 else ""
            facts.append(f"disabled{after}{_cause(job)}")
    if job.running is not None:
        facts.append("running now")
    return "; ".join(facts)


def _ahead(job: Job, zone: str, now: datetime, *, is_named: bool) -> list[str]:
    """Return when an active job runs next, unless its schedule says so, and its last failures.

    ``is_named``: the schedule names a zone of its own.
    """
    spec, facts = job.spec, []
    said = isinstance(spec.schedule, At) and spec.schedule.at == job.next_run_at
    if job.next_run_at is not None and not said:
        ahead = named if is_named else friendly
        facts.append(f"next {ahead(job.next_run_at, zone, now)}")
    if job.failures:
        times = f" {job.failures} times in a row" if job.failures > 1 else ""
        facts.append(f"failed{times}{_cause(job)}")
    return facts


def _cause(job: Job) -> str:
    return f": {clause(job.last_error, _REASON_CHARS)}" if job.last_error else ""


def paused(title: str) -> str:
    """Return the answer to ``/jobs pause``."""
    return f"“{_title(title)}” is paused."


def resumed(job: Job, zone: ChatZone, now: datetime) -> str:
    """Return the answer to ``/jobs resume``, in the zone of the chat."""
    ahead = "" if job.next_run_at is None else f" It runs next {zone.when(job.next_run_at, now)}."
    return f"“{_title(job.spec.title)}” is active.{ahead}"


def sure_to_delete(title: str, slug: str) -> str:
    """Return the answer to ``/jobs delete``, which asks; ``slug`` if several have this title."""
    job = f"“{_title(title)}”" + (f" ({slug})" if slug else "")
    return f"Delete {job}? It cannot be restored. To confirm, send the command again."


def deleted(title: str) -> str:
    """Return the answer to the second ``/jobs delete``, or to the button."""
    return f"Deleted “{_title(title)}”."


def runs_now(title: str) -> str:
    """Return the answer to ``/jobs run`` and to the button “Again”."""
    return f"Started “{_title(title)}”."


def ran_now(title: str) -> str:
    """Return the same answer for a job that has already finished."""
    return f"“{_title(title)}” has run."


def unknown_action(word: str) -> str:
    """Return the answer to ``/jobs`` with an unknown action."""
    return f"There is no command “/jobs {truncate(word, _TITLE_CHARS)}”. {HOW}"


def list_again(list_of_jobs: str) -> str:
    """Return the answer to a number that names no job of the list that was shown last."""
    return f"The numbers may have changed. Please choose from this list:\n{list_of_jobs}"


def which_one(name: str, list_of_jobs: str) -> str:
    """Return the answer to a name of several jobs."""
    return f"Which “{_title(name)}” do you mean? Please use its number:\n{list_of_jobs}"


def refused(error: JobError) -> str:
    """Say why a request was refused; jobs of other owners look like missing ones (SEC-3)."""
    match error:
        case UnknownJob(asked=asked, several=several) if several:
            return _sentence(f"“{truncate(asked, _TITLE_CHARS)}” fits several jobs")
        case UnknownJob() | NotYours():
            return _sentence(f"there is no job “{truncate(error.asked, _TITLE_CHARS)}”")
        case TooManyJobs():
            most = "1 job" if error.most == 1 else f"{error.most} jobs"
            return f"The limit of {most} is reached. Delete a job first."
        case _:
            return _sentence(curly(str(error)))


def done(title: str) -> str:
    """Return the answer to the button “Done” of a reminder."""
    return f"✅ Done: {_title(title)}"


def snoozed(title: str, until: datetime, zone: ChatZone, now: datetime) -> str:
    """Return the answer to a snooze button, in the zone of the chat."""
    return f"💤 I will remind you of “{_title(title)}” again {zone.when(until, now)}."


def already_snoozed(title: str, until: datetime, zone: ChatZone, now: datetime) -> str:
    """Return the answer to a second press of a button that snoozes."""
    return f"💤 “{_title(title)}” is already snoozed until {zone.when(until, now)}."


def timezone(zone: ChatZone, now: datetime) -> str:
    """Return the answer to ``/timezone``."""
    here = _clock(zone.name, now)
    if zone.is_chosen:
        return f"Your time zone is {here} To change it: /timezone Europe/Paris"
    return f"You have not chosen a time zone. Times are in {here} To choose: /timezone Europe/Paris"


def timezone_changed(zone: str, now: datetime) -> str:
    """Return the answer to ``/timezone ZONE``."""
    return f"Your time zone is now {_clock(zone, now)} Existing jobs keep their time zone."


def _clock(zone: str, now: datetime) -> str:
    return f"{zone_or_utc(zone)[1]}, where it is {weekday(now, zone)}."


# ---------------------------------------------------------------------------- inside


def _title(title: str) -> str:
    return truncate(" ".join(title.split()), _TITLE_CHARS)


def _sentence(text: str) -> str:
    """Return a text on one line, with a capital letter and a full stop."""
    return sentence(truncate(" ".join(text.split()), _REASON_CHARS) or "the reason is unknown")


def undelivered_warning(
    lost: Sequence[UnreportedOccurrence], known: KnownNames
) -> tuple[OperatorWarning, ...]:
    """Return the warning about results that no chat has received, all in one."""
    if not lost:
        return ()
    chats = ((one.refused_by, one.error) for one in lost)
    why = refusals_text(
        ("" if chat is None else display_name(address(chat), known), error) for chat, error in chats
    )
    jobs = {one.job.id: one.job for one in lost}
    subject, link, command = f"Results of {len(jobs)} jobs", "/jobs", "goclaw jobs runs"
    if len(jobs) == 1:
        (job,) = jobs.values()
        subject, link = f"The result of job {job.spec.title}", f"/jobs/{job.id}"
        # Not its slug: jobs of several people may share one.
        command = shell_command("jobs", "runs", short_id(job.id))
    elif all(one.refused_by is not None for one in lost):
        link, command = "/deliveries?show=failed", "goclaw deliveries list --state failed"
    words = f"could not be delivered: {why}"
    return (OperatorWarning("gateway.results", subject, words, link, command),)
