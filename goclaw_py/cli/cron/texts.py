"""What operators read about jobs: times, reasons, results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from goclaw_py.cli import completion
from goclaw_py.cli.context import named
from goclaw_py.cli.messages import display
from goclaw_py.cli.output import duration, plain, show_json

if TYPE_CHECKING:
    from datetime import datetime

    from goclaw_py.jobs.execution_models import Logged
    from goclaw_py.jobs.models import Job, JobTarget
    from goclaw_py.ports.jobs import Asker, JobDesk

_REASON = 80


def operator(owner: str | None = None) -> Asker:
    """Who asks: the operator, of everybody's jobs or in the name of one owner."""
    from goclaw_py.model.ids import Owner  # noqa: PLC0415  (not needed for --help)
    from goclaw_py.ports.jobs import Asker  # noqa: PLC0415

    return Asker(None if owner is None else Owner(owner))


def maybe_named(text: str | None) -> str | None:
    """Check a name that need not be given."""
    return None if text is None else named(text)


def asked_for(text: str) -> str:
    """Check what is to be a slug, an id or its beginning. Raises ``UnknownJob``: none is so."""
    from goclaw_py.jobs.models import SLUG  # noqa: PLC0415
    from goclaw_py.model.errors import UnknownJob  # noqa: PLC0415

    text = named(text)
    if not SLUG.fullmatch(text):
        raise UnknownJob(text)
    return text


def _maybe_asked_for(text: str | None) -> str | None:
    return None if text is None else asked_for(text)


JobName = Annotated[
    str,
    typer.Argument(
        metavar="JOB",
        callback=asked_for,
        autocompletion=completion.jobs,
        help="Its short name, or its id.",
    ),
]
OfJob = Annotated[
    str | None,
    typer.Option(
        "--job",
        callback=_maybe_asked_for,
        autocompletion=completion.jobs,
        help="Only of this job.",
    ),
]


# ---------------------------------------------------------------------------- times


def local(at: datetime | None, zone: str) -> str:
    """An instant in a zone, with its weekday; "" for none."""
    if at is None:
        return ""
    from datetime import UTC  # noqa: PLC0415

    from goclaw_py.common.timezones import zone as zone_named  # noqa: PLC0415
    from goclaw_py.model.errors import UnknownZone  # noqa: PLC0415

    try:
        there = at.astimezone(zone_named(zone))
    except UnknownZone:
        # The database of zones is not the one that it was stored with.
        return f"{at.astimezone(UTC):%a %Y-%m-%d %H:%M:%S} UTC"
    return f"{there:%a %Y-%m-%d %H:%M:%S}"


def away(at: datetime, now: datetime) -> str:
    """How far an instant is from now."""
    seconds = (at - now).total_seconds()
    if seconds >= 0:
        return f"in {duration(seconds)}"
    return f"{duration(-seconds)} ago"


def when(at: datetime | None, zone: str, now: datetime) -> str:
    """An instant in a zone, and how far away it is; "" for none."""
    return f"{local(at, zone)} ({away(at, now)})" if at is not None else ""


# ---------------------------------------------------------------------------- reasons


def plan(job: Job) -> str:
    """When a job runs, in plain words."""
    from goclaw_py.jobs import view_texts  # noqa: PLC0415

    return view_texts.plan(job)


def obstacle(desk: JobDesk, job: Job) -> str:
    """Why a job will not run, "" if it will."""
    from goclaw_py.jobs import view_texts  # noqa: PLC0415

    enabled = desk.enabled
    return plain(view_texts.obstacle(job, is_enabled=enabled, reason_chars=_REASON))


def remark(desk: JobDesk, job: Job) -> str:
    """What is special about a job: why it will not run, or what it does now; else ""."""
    from goclaw_py.jobs import view_texts  # noqa: PLC0415

    if found := obstacle(desk, job):
        return found
    if job.running is not None:
        return "runs now"
    return plain(view_texts.trouble(job, reason_chars=_REASON))


def ended(row: Logged) -> str:
    """How an occurrence ended, and why."""
    from goclaw_py.jobs.execution_models import Why  # noqa: PLC0415

    silent = {
        Why.NO_NOTIFY: "nobody told: the reply did not begin with [NOTIFY]",
        Why.NO_REPLY: "nobody told: it had nothing to say",
    }
    return f"{row.status.value} ({silent.get(row.why, row.why.value)})" if row.why else row.status


def waits(row: Logged) -> str:
    """What an occurrence waits for, "" if it waits for no session."""
    from goclaw_py.jobs import view_texts  # noqa: PLC0415

    return plain(view_texts.waits(row))


def took(row: Logged) -> str:
    """How long an occurrence ran, "" if it did not or still does."""
    from goclaw_py.jobs.view_texts import took_s  # noqa: PLC0415

    seconds = took_s(row)
    return "" if seconds is None else duration(seconds)


def cost(row: Logged) -> str:
    """What an occurrence cost, "" if nobody knows."""
    if row.usage is None or row.usage.cost_usd is None:
        return ""
    return f"{row.usage.cost_usd} USD"


# ---------------------------------------------------------------------------- definitions


def target(place: JobTarget) -> str:
    """Where a job tells its results."""
    from goclaw_py.jobs.models import TargetKind  # noqa: PLC0415
    from goclaw_py.model.targets import target_text  # noqa: PLC0415

    return place.value if isinstance(place, TargetKind) else display.cell(target_text(place))


# ---------------------------------------------------------------------------- after a change


@dataclass(frozen=True, slots=True)
class Seen:
    """A job as it was looked at.

    Args:
        ahead: Its next times; a paused one has none.
        obstacle: Why it will not run, "" if it will.
        remark: What is special about it.
        no_route: Why its result would reach nobody, "" if it would reach somebody.
    """

    job: Job
    now: datetime
    ahead: tuple[datetime, ...]
    obstacle: str
    remark: str
    no_route: str = ""


async def routed(desk: JobDesk, job: Job) -> Seen:
    """Look at a job, and at whether its result would reach anybody."""
    return replace(seen(desk, job), no_route=await desk.no_route(job.id, operator()))


def seen(desk: JobDesk, job: Job, count: int = 3) -> Seen:
    """Look at a job, with so many of its next times."""
    from goclaw_py.model.errors import JobError  # noqa: PLC0415

    try:
        ahead = tuple(desk.upcoming(job, count)) if count else ()
    except JobError:
        # What is wrong with it is told where its schedule is.
        ahead = ()
    return Seen(job, desk.now(), ahead, obstacle(desk, job), remark(desk, job))


def document(found: Seen) -> dict[str, object]:
    """A job for programs."""
    from goclaw_py.jobs.job_json import job_json  # noqa: PLC0415

    ahead = [at.isoformat() for at in found.ahead]
    said = {"upcoming": ahead, "remark": found.remark, "no_route": found.no_route}
    return {**job_json(found.job), **said}


def say_next(found: Seen, *, as_json: bool) -> None:
    """Tell when a job runs, in words and by its next three times (SPEC CRON-2)."""
    job = found.job
    if as_json:
        show_json(dict[str, object], document(found))
        return
    typer.echo(plain(f"{label(job)}: {plan(job)}"))
    show_times(found)
    if job.state.value == "paused":
        typer.echo(f"it is paused; to let it run: goclaw cron resume {job.spec.slug}")
    elif found.obstacle:
        typer.echo(plain(f"it will not run: {found.obstacle}"))
    if found.no_route:
        text = f"its result would reach nobody now: {found.no_route}"
        typer.echo(plain(f"warning: {text}; it is kept until it can be told"), err=True)


def show_times(found: Seen) -> None:
    """Write the times at which a job runs, one a line."""
    for number, at in enumerate(found.ahead):
        typer.echo(f"{'' if number else 'next':<6}{when(at, found.job.spec.zone, found.now)}")


def label(job: Job) -> str:
    """What a job is called."""
    return f"{job.spec.slug} ({display.cell(job.spec.name)})" if job.spec.name else job.spec.slug
