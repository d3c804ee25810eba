"""``goclaw cron list`` and ``next``: list jobs, and their next runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import typer

from goclaw_py.cli.context import AsJson, Limit, Watch, cli, is_live, look
from goclaw_py.cli.cron import texts as words
from goclaw_py.cli.cron.texts import JobSnapshot, OfJob, maybe_named, operator, seen
from goclaw_py.cli.messages import display
from goclaw_py.cli.options import with_options
from goclaw_py.cli.output import one_line, show_json, show_table
from goclaw_py.jobs.models import Job, JobState
from goclaw_py.jobs.view_texts import kind_and_text
from goclaw_py.model.ids import AgentName, Owner
from goclaw_py.ports.control import Control
from goclaw_py.ports.jobs import JobService
from goclaw_py.ports.store import JobQuery

_STATES = ("active", "paused", "completed", "failed", "disabled")
_TEXT = 60
PAGE = 500
"""How many jobs one request asks for."""


def _state(text: str | None) -> str | None:
    if text is not None and text not in _STATES:
        raise typer.BadParameter(f"must be one of {', '.join(_STATES)}")
    return text


# ---------------------------------------------------------------------------- list


@dataclass(frozen=True, slots=True)
class _Page:
    jobs: list[JobSnapshot]
    total: int
    live: bool


@dataclass(frozen=True, slots=True)
class Filters:
    """The options that select jobs."""

    everything: Annotated[bool, typer.Option("--all", help="Include finished jobs.")] = False
    owner: Annotated[
        str | None, typer.Option(callback=maybe_named, help="List only jobs of this owner.")
    ] = None
    agent: Annotated[str | None, typer.Option(help="List only jobs of this agent.")] = None
    state: Annotated[
        str | None, typer.Option(callback=_state, help=f"One of {', '.join(_STATES)}.")
    ] = None
    name: Annotated[str | None, typer.Option(callback=maybe_named, help="Part of the name.")] = None
    limit: Limit = 200

    def query(self) -> JobQuery:
        """Return the query for these options."""
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


@with_options(Filters)
def list_(
    ctx: typer.Context, wanted: Filters, *, watch: Watch = None, as_json: AsJson = False
) -> None:
    """List jobs, sorted by their next run."""

    async def ask(control: Control) -> _Page:
        service = control.jobs
        page = await service.search(wanted.query(), operator())
        return _Page(
            [seen(service, job, 1 if as_json else 0) for job in page.jobs],
            page.total,
            await is_live(control),
        )

    look(ctx, lambda asks: _show_all(asks.ask(ask), as_json=as_json), watch, as_json=as_json)


def _show_all(found: _Page, *, as_json: bool) -> None:
    if as_json:
        show_json(list[dict[str, object]], [words.document(one) for one in found.jobs])
        return
    if not found.live and found.jobs:
        typer.echo("no gateway is running here; no job runs until you start one", err=True)
    several = len({one.job.owner for one in found.jobs}) > 1
    columns = ("JOB", *(("OWNER",) if several else ()), "STATE", "SCHEDULE", "NEXT RUN", "LAST RUN")
    rows = [_row(one, with_owner=several) for one in found.jobs]
    show_table((*columns, "RESULT", "NOTE"), rows, empty="no jobs")
    if found.total > len(rows):
        typer.echo(f"showing {len(rows)} of {found.total} jobs; use --limit to see more", err=True)


def _row(found: JobSnapshot, *, with_owner: bool) -> tuple[str, ...]:
    job, zone = found.job, found.job.spec.zone
    return (
        job.spec.slug,
        *((display.cell(job.owner),) if with_owner else ()),
        job.state.value,
        words.plan(job),
        words.when(job.next_run_at, zone, found.now),
        words.when(job.last_run_at, zone, found.now),
        job.last_status,
        found.remark,
    )


# ---------------------------------------------------------------------------- next


@dataclass(frozen=True, slots=True)
class _Due:
    at: datetime
    job: Job


def next_(
    ctx: typer.Context,
    number: Annotated[int, typer.Argument(min=1, max=1000, help="Number of runs to list.")] = 10,
    job: OfJob = None,
    *,
    as_json: AsJson = False,
) -> None:
    """List the next scheduled runs of all jobs.

    Retries and manual runs are not included.
    """

    async def ask(control: Control) -> tuple[list[_Due], datetime, bool]:
        service = control.jobs
        if job is not None:
            one = await service.get(job, operator())
            ahead = [_Due(at, one) for at in service.upcoming(one, number)]
        else:
            ahead = await _ahead(service, number)
        return ahead, service.now(), service.enabled

    found, now, enabled = cli(ctx).ask(ask)
    if as_json:
        shown = [{"at": due.at.isoformat(), "slug": due.job.spec.slug} for due in found]
        show_json(list[dict[str, str]], shown)
        return
    if not enabled:
        typer.echo("jobs are turned off (scheduler.enabled = false)", err=True)
    rows = [_due_row(due, now) for due in found]
    show_table(("WHEN", "TIME ZONE", "JOB", "PAYLOAD"), rows, empty="no upcoming runs")


def _due_row(due: _Due, now: datetime) -> tuple[str, ...]:
    spec = due.job.spec

    _, text = kind_and_text(spec.payload)
    return (words.when(due.at, spec.zone, now), spec.zone, spec.slug, one_line(text, _TEXT))


async def _ahead(service: JobService, number: int) -> list[_Due]:
    """Return the next runs of all jobs.

    Pages are sorted by the next run of a job, so reading stops at the first job that is later.
    """
    found: list[_Due] = []
    offset = 0
    while True:
        query = JobQuery(states=(JobState.ACTIVE,), limit=PAGE, offset=offset)
        page = (await service.search(query, operator())).jobs
        for job in page:
            last = found[number - 1].at if len(found) >= number else None
            if job.next_run_at is None or (last is not None and job.next_run_at > last):
                return found
            found += [_Due(at, job) for at in service.upcoming(job, number)]
            found = sorted(found, key=lambda due: due.at)[:number]
        if len(page) < PAGE:
            return found
        offset += PAGE
