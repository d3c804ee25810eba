"""``goclaw cron add`` and ``edit`` (SPEC CRON-1, CRON-2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from goclaw_py.cli.context import AsJson, cli, named
from goclaw_py.cli.cron import options as said
from goclaw_py.cli.cron.options import NONE, JobOptions
from goclaw_py.cli.cron.texts import JobName, JobSnapshot, operator, routed, say_next
from goclaw_py.cli.options import with_options
from goclaw_py.jobs.models import SLUG, Job, Notify, Payload, Prompt
from goclaw_py.model.errors import BadJob
from goclaw_py.ports.control import Control
from goclaw_py.ports.jobs import JobChange, JobDraft

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="-- PROMPT", help="What the agent should do. - reads it from standard input."
    ),
]


@with_options(JobOptions)
def add(
    ctx: typer.Context,
    wish: JobOptions,
    called: Annotated[str, typer.Argument(metavar="NAME", callback=named, help="Name of the job.")],
    words: Words = None,
    *,
    paused: Annotated[bool, typer.Option("--paused", help="Create the job paused.")] = False,
    as_json: AsJson = False,
) -> None:
    """Create a job. Give one of --at, --every or --cron, and the prompt after --.

    Example: goclaw cron add standup --cron "0 9 * * 1-5" --tz Europe/Berlin -- What is new?
    """
    if wish.at is None and wish.every is None and wish.cron is None:
        raise typer.BadParameter("give a schedule: --at, --every or --cron")
    wish = _named(wish, called)
    payload = said.payload_of(wish, words)

    async def ask(control: Control) -> JobSnapshot:
        draft = await _draft(control, wish, payload)
        made = await control.jobs.create(replace(draft, paused=paused), operator())
        return await routed(control.jobs, made)

    say_next(cli(ctx).ask(ask, create=True), as_json=as_json)


def _named(wish: JobOptions, name: str) -> JobOptions:
    """Take the name as the job's slug if it has that form, else as its display name."""
    if wish.slug is None and SLUG.fullmatch(name):
        return replace(wish, slug=name)
    return replace(wish, name=wish.name or name)


async def _draft(control: Control, wish: JobOptions, payload: Payload | None) -> JobDraft:

    service = control.jobs
    zone, now = wish.tz or await service.zone(operator()), service.now()
    schedule = said.schedule_of(wish, now=now, zone=zone)
    assert schedule is not None
    if wish.model and payload is None:
        raise BadJob("prompt", "is required")
    place = await said.target_of(wish, control)
    return JobDraft(
        schedule=schedule,
        payload=payload,
        slug=wish.slug or "",
        name=wish.name or "",
        zone=zone,
        agent=said.agent_of(wish),
        target=place and place[0],
        peer=place and place[1],
        notify=said.notify_of(wish) or Notify.ALWAYS,
        session=said.session_of(wish),
        policy=said.policy_of(wish, new=True),
        max_runs=said.max_runs_of(wish),
        not_after=said.end_of(wish, now=now, zone=zone),
        wake_heartbeat=bool(wish.wake_heartbeat),
        source=wish.source or "",
    )


# ---------------------------------------------------------------------------- edit


@with_options(JobOptions)
def edit(
    ctx: typer.Context,
    wish: JobOptions,
    job: JobName,
    words: Words = None,
    *,
    revision: Annotated[
        int | None, typer.Option(min=1, help="Fail unless the job still has this revision.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change a job. Options that you leave out stay unchanged.

    --until none and --max-runs none remove these limits.
    """
    if wish == JobOptions() and not words:
        raise typer.BadParameter("nothing to change: give at least one option or a prompt")
    payload = said.payload_of(wish, words)

    async def ask(control: Control) -> JobSnapshot:
        service, by = control.jobs, operator()
        before = await service.get(job, by)
        change = await _change(control, wish, payload, before)
        change = replace(change, revision=revision or change.revision)
        return await routed(service, await service.edit(before.id, change, by))

    say_next(cli(ctx).ask(ask), as_json=as_json)


async def _change(
    control: Control, wish: JobOptions, payload: Payload | None, before: Job
) -> JobChange:

    zone, now = wish.tz or before.spec.zone, control.jobs.now()
    payload, from_old = _completed(wish, payload, before)
    place = await said.target_of(wish, control)
    given: dict[str, object] = {
        "slug": wish.slug,
        "name": wish.name,
        "schedule": said.schedule_of(wish, now=now, zone=zone),
        "zone": wish.tz,
        "payload": payload,
        "agent": said.agent_of(wish),
        "target": place and place[0],
        "peer": place and place[1],
        "notify": said.notify_of(wish),
        "session": said.session_of(wish) if wish.session is not None else None,
        "policy": said.policy_of(wish, new=False) or None,
        "wake_heartbeat": wish.wake_heartbeat,
        "source": "" if wish.source == NONE else wish.source,
        # Part of the new payload was copied from this revision: fail if the job changed since.
        "revision": before.revision if from_old else None,
    }
    changed = {key: value for key, value in given.items() if value is not None}
    # For these two None is a value: it removes the limit.
    if wish.max_runs is not None:
        changed["max_runs"] = said.max_runs_of(wish)
    if wish.until is not None:
        changed["not_after"] = said.end_of(wish, now=now, zone=zone)
    return JobChange(**changed)  # type: ignore[arg-type]  # each is of the type of its field


def _completed(
    wish: JobOptions, payload: Payload | None, before: Job
) -> tuple[Payload | None, bool]:
    """Return the new payload, and whether a part of it was copied from the old one."""
    old = before.spec.payload
    if isinstance(old, Prompt):
        if payload is None and wish.model is not None:
            return replace(old, model=wish.model), True
        if isinstance(payload, Prompt) and wish.model is None:
            return replace(payload, model=old.model), True
    if payload is None and wish.model is not None:
        raise typer.BadParameter("--model is only for jobs with a prompt")
    return payload, False
