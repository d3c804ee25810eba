"""Texts about jobs that several commands share: times, reasons, results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Annotated

import typer

from goclaw_py.cli import completion
from goclaw_py.cli.context import named, note_stored
from goclaw_py.cli.messages import display
from goclaw_py.cli.names import DisplayNames
from goclaw_py.cli.output import Printer, clock, plain, show_text, when
from goclaw_py.core.display_names import address
from goclaw_py.core.errors import JobError, UnknownJob
from goclaw_py.core.ids import Owner
from goclaw_py.core.outcomes import outcome_text
from goclaw_py.core.targets import chat_of, target_text
from goclaw_py.core.text import usd
from goclaw_py.core.time.zones import zone as zone_named
from goclaw_py.operations.jobs.models import JobSettingsView, Requester
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.schedule.jobs.execution_models import LoggedOccurrence, Why
from goclaw_py.schedule.jobs.job_json import job_json
from goclaw_py.schedule.jobs.models import SLUG, Job, JobTarget, TargetKind
from goclaw_py.schedule.jobs.schedule import At
from goclaw_py.schedule.jobs.view_texts import obstacle, plan, trouble

_REASON = 80


def operator(owner: str | None = None) -> Requester:
    """Return the operator as the one who asks: for all jobs, or for those of one owner."""
    return Requester(None if owner is None else Owner(owner))


def valid_job_name(text: str) -> str:
    """Validate a slug, an id or the beginning of one, in lower case as all of them are.

    Raises ``UnknownJob`` for other forms.
    """
    text = named(text)
    if not SLUG.fullmatch(text.lower()):
        raise UnknownJob(text)
    return text.lower()


JobName = Annotated[
    str,
    typer.Argument(
        metavar="JOB",
        callback=valid_job_name,
        autocompletion=completion.jobs,
        help="Short name of the job, its id, or a unique beginning of the id.",
    ),
]


def _maybe_job(text: str | None) -> str | None:
    return None if text is None else valid_job_name(text)


MaybeJob = Annotated[
    str | None,
    typer.Argument(
        metavar="JOB",
        callback=_maybe_job,
        autocompletion=completion.jobs,
        help="List only runs of this job; also of a deleted one.",
    ),
]
OfJob = Annotated[
    str | None,
    typer.Option(
        "--job",
        callback=_maybe_job,
        autocompletion=completion.jobs,
        help="List only runs of this job.",
    ),
]
former_job_option = typer.Option(
    "--job", callback=_maybe_job, help="Former way to name the job.", hidden=True
)


# ---------------------------------------------------------------------------- reasons


def ended(row: LoggedOccurrence) -> str:
    """Return the outcome of an occurrence, with the reason, as people read them."""
    silent = {
        Why.NO_NOTIFY: "not delivered: the reply did not begin with [NOTIFY]",
        Why.NO_REPLY: "not delivered: the reply was empty",
    }
    why = f" ({silent.get(row.why) or outcome_text(row.why)})" if row.why else ""
    return f"{outcome_text(row.status)}{why}"


def cost(row: LoggedOccurrence) -> str:
    """Return the cost of an occurrence, "" if it is not known."""
    if row.usage is None or row.usage.cost_usd is None:
        return ""
    return usd(row.usage.cost_usd)


# ---------------------------------------------------------------------------- definitions


def target(place: JobTarget, names: DisplayNames) -> str:
    """Return the delivery target of a job, by name and id if it is a chat."""
    if isinstance(place, TargetKind):
        return place.value
    return f"{names.chat(place)} ({display.cell(target_text(place))})"


def schedule(job: Job) -> str:
    """Return the schedule in words; a single time is in the zone of this machine, as all times.

    Where clocks of the job's zone show another time, that is what was asked for, and comes first.
    """
    once, text = job.spec.schedule, plan(job)
    # Otherwise the text is an error: another release may know the zone of the job.
    if isinstance(once, At) and text.startswith("once at "):
        zone = zone_named(job.spec.zone)
        is_same = once.at.astimezone(zone).utcoffset() == once.at.astimezone().utcoffset()
        return f"once at {clock(once.at)}" if is_same else f"{text}; here {clock(once.at)}"
    return text


def owner_keys(job: Job) -> list[str]:
    """Return the key that names the chat of a job's owner, if it is one."""
    chat = chat_of(job.owner)
    return [] if chat is None else [address(chat[0])]


def owner(job: Job, names: DisplayNames, *, with_key: bool = True) -> str:
    """Return the owner of a job: the name of a chat, and then its key."""
    text = display.cell(job.owner)
    for key in owner_keys(job):
        return f"{names.of(key)} ({text})" if with_key else names.of(key)
    return text


# ---------------------------------------------------------------------------- after a change


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """A job at the time it was read.

    Args:
        ahead: The next runs; a paused job has none.
        enabled: Whether the settings let jobs run.
        no_route: Why its result cannot be delivered, "" if it can.
        new_session: Whether its own session does not exist yet; ``similar_session`` is one whose
            key or name resembles it, "" if there is none.
    """

    job: Job
    now: datetime
    ahead: tuple[datetime, ...]
    enabled: bool
    no_route: str = ""
    new_session: bool = False
    similar_session: str = ""

    @property
    def obstacle(self) -> str:
        """Return why the job will not run, "" if it will."""
        return plain(obstacle(self.job, is_enabled=self.enabled, reason_chars=_REASON))

    @property
    def remark(self) -> str:
        """Return a note: why the job will not run, or that it is running; else ""."""
        running = "" if self.job.running is None else "running"
        return self.obstacle or running or plain(trouble(self.job, reason_chars=_REASON))


async def routed(service: JobService, job: Job) -> JobSnapshot:
    """Describe a job, and whether its result can be delivered."""
    found = seen(await service.scheduler(), job)
    return replace(found, no_route=await service.no_route(job.id, operator()))


def seen(settings: JobSettingsView, job: Job, count: int = 3) -> JobSnapshot:
    """Describe a job, with this many of its next runs."""
    try:
        ahead = tuple(job.upcoming(settings.profile.policy, count))
    except JobError:
        # The schedule is invalid, which the obstacle reports.
        ahead = ()
    return JobSnapshot(job, settings.now, ahead, settings.enabled)


def document(found: JobSnapshot) -> dict[str, object]:
    """Return a job as a JSON document."""
    ahead = [at.isoformat() for at in found.ahead]
    said = {"upcoming": ahead, "remark": found.remark, "no_route": found.no_route}
    return {**job_json(found.job), **said}


def next_runs(ctx: typer.Context, *, as_json: bool) -> Printer[JobSnapshot]:
    """Return how a job is printed after a change: in words, with its next runs (SPEC CRON-2)."""
    return Printer(dict[str, object], partial(_show_next, ctx), as_json, document)


def _show_next(ctx: typer.Context, found: JobSnapshot) -> None:
    job = found.job
    show_text(f"{label(job)}: {schedule(job)}")
    for number, at in enumerate(found.ahead):
        typer.echo(f"{'' if number else 'next':<6}{when(at, found.now, job.spec.zone)}")
    if job.state.value == "paused":
        typer.echo(f"the job is paused; to resume it: goclaw jobs resume {job.spec.slug}")
    elif found.obstacle:
        show_text(f"no upcoming run: {found.obstacle}")
    if found.no_route:
        text = f"results cannot be delivered now: {found.no_route}"
        show_text(f"warning: {text}; they are kept until they can be", err=True)
    if found.new_session:
        meant = f"; did you mean {found.similar_session}?" if found.similar_session else ""
        text = f"there is no session {job.spec.session!r}, so the first run begins it{meant}"
        show_text(f"warning: {text}", err=True)
    note_stored(ctx, unfinished=bool(found.ahead))


def label(job: Job) -> str:
    """Return the short name of a job, with its display name if it has one."""
    return f"{job.spec.slug} ({display.cell(job.spec.name)})" if job.spec.name else job.spec.slug
