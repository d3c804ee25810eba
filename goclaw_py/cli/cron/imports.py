"""``goclaw cron import`` and ``export``: jobs from and to files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goclaw_py.cli.context import AsJson, cli
from goclaw_py.cli.cron import texts as words
from goclaw_py.cli.cron.listing import PAGE
from goclaw_py.cli.cron.texts import maybe_named
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.output import plain, show_json, show_table
from goclaw_py.common.text import count

if TYPE_CHECKING:
    from goclaw_py.cli.cron.files import Definition
    from goclaw_py.jobs.models import Job
    from goclaw_py.ports.control import Control
    from goclaw_py.ports.jobs import Asker, JobChange, JobDesk


@dataclass(frozen=True, slots=True)
class _Brought:
    """What became of a definition.

    Args:
        result: ``new``, ``updated``, ``unchanged`` or ``failed``.
        changed: The parts that an update has changed.
        problem: Why it failed.
    """

    where: str
    slug: str
    result: str
    changed: tuple[str, ...] = ()
    next_run_at: datetime | None = None
    zone: str = "UTC"
    problem: str = ""


# ---------------------------------------------------------------------------- import


def import_(
    ctx: typer.Context,
    paths: Annotated[list[Path], typer.Argument(metavar="FILE|FOLDER", help="Where they are.")],
    agent: Annotated[
        str | None, typer.Option(callback=maybe_named, help="The agent of all of them.")
    ] = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be made, and make nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make jobs of files: what export writes, folders of caco, schedules of herdctl (YAML).

    One that is there already is brought up to what its file says. Exit code 1 if any failed.
    """
    from goclaw_py.cli.cron.files import Trouble, read_all  # noqa: PLC0415

    definitions: list[Definition] = []
    failed: list[_Brought] = []
    for each in read_all(paths):
        if isinstance(each, Trouble):
            failed.append(_Brought(each.where, "", "failed", problem=each.why))
        else:
            definitions.append(_for_agent(each, agent))

    async def ask(control: Control) -> list[_Brought]:
        seen: set[tuple[str, str]] = set()
        return [await _bring(control.jobs, each, seen, dry_run=dry_run) for each in definitions]

    brought = [*(cli(ctx).ask(ask, create=not dry_run) if definitions else ()), *failed]
    _show(brought, dry_run=dry_run, as_json=as_json)


def _for_agent(found: Definition, agent: str | None) -> Definition:
    from goclaw_py.model.ids import AgentName  # noqa: PLC0415

    if agent is None:
        return found
    return replace(found, draft=replace(found.draft, agent=AgentName(agent)))


async def _bring(
    desk: JobDesk, found: Definition, seen: set[tuple[str, str]], *, dry_run: bool
) -> _Brought:
    from goclaw_py.model.errors import BadJob, JobError  # noqa: PLC0415

    slug = found.draft.slug
    try:
        if (found.owner, slug) in seen:
            raise BadJob("slug", f"{slug} was there before, in the same import")
        seen.add((found.owner, slug))
        _askable(slug)
        _storable(found)
        return await _brought(desk, found, dry_run=dry_run)
    except JobError as error:
        return _Brought(found.where, slug, "failed", problem=str(error))


def _askable(slug: str) -> None:
    """Raise ``BadJob`` for what no job is called: whether it is there cannot even be asked."""
    from goclaw_py.jobs.models import SLUG  # noqa: PLC0415
    from goclaw_py.model.errors import BadJob  # noqa: PLC0415

    if not SLUG.fullmatch(slug):
        raise BadJob("slug", "must be up to 64 characters of a-z 0-9 _ -, the first no sign")


def _storable(found: Definition) -> None:
    """Raise ``BadJob`` for text that no database keeps as it is: it would differ every time."""
    from goclaw_py.jobs.view_texts import kind_and_text  # noqa: PLC0415
    from goclaw_py.model.errors import BadJob  # noqa: PLC0415

    payload = found.draft.payload
    kind, text = ("prompt", "") if payload is None else kind_and_text(payload)
    for key, each in ((kind, text), ("name", found.draft.name)):
        if "\0" in each:
            raise BadJob(key, "must not have NUL characters")
        if any("\ud800" <= char <= "\udfff" for char in each):
            raise BadJob(key, "must not have half of a surrogate pair")


async def _brought(desk: JobDesk, found: Definition, *, dry_run: bool) -> _Brought:
    """Make it, or bring the job of its name up to it. Raises ``JobError``."""
    from goclaw_py.ports.jobs import Asker  # noqa: PLC0415

    # An import is an operator's: the agent that they name is the one that asks.
    by = Asker(found.owner, found.maker, found.draft.agent)
    before = await _existing(desk, found.draft.slug, by)
    if before is None:
        return await _made(desk, found, by, dry_run=dry_run)
    parts, change = _difference(before, found)
    if not parts:
        return _result("unchanged", found, before)
    if dry_run:
        await desk.preview(replace(found.draft, paused=True), by, 1)
        return replace(_result("updated", found, before), changed=parts, next_run_at=None)
    after = await desk.edit(before.id, change, by)
    return replace(_result("updated", found, after), changed=parts)


async def _existing(desk: JobDesk, slug: str, by: Asker) -> Job | None:
    from goclaw_py.model.errors import UnknownJob  # noqa: PLC0415

    try:
        found = await desk.get(slug, by)
    except UnknownJob:
        return None
    # What is asked for may be the beginning of an id as well.
    return found if found.spec.slug == slug else None


async def _made(desk: JobDesk, found: Definition, by: Asker, *, dry_run: bool) -> _Brought:
    first = found.draft.next_run_at
    # One that is overdue runs once, now.
    first = None if first is None else max(first, desk.now())
    draft = replace(found.draft, next_run_at=first, paused=found.paused)
    if not dry_run:
        return _result("new", found, await desk.create(draft, by))
    ahead = await desk.preview(draft, by, 1)
    zone = draft.zone or await desk.zone(by)
    at = ahead[0] if ahead else None
    return _Brought(found.where, draft.slug, "new", next_run_at=at, zone=zone)


def _result(result: str, found: Definition, job: Job) -> _Brought:
    return _Brought(
        found.where, job.spec.slug, result, next_run_at=job.next_run_at, zone=job.spec.zone
    )


# What a file that does not say everything may leave to the job.
_OFTEN_MISSING = ("name", "zone", "payload", "agent", "source")
_REST = ("target", "peer", "notify", "session", "max_runs", "not_after", "wake_heartbeat")


def _difference(before: Job, found: Definition) -> tuple[tuple[str, ...], JobChange]:
    """What a file wants to be otherwise: the names of that, and the change."""
    from goclaw_py.jobs.job_json import spec_json  # noqa: PLC0415
    from goclaw_py.jobs.models import JobState  # noqa: PLC0415
    from goclaw_py.ports.jobs import JobChange  # noqa: PLC0415

    wanted = _wanted(before, found)
    old, new = spec_json(before.spec), spec_json(replace(before.spec, **wanted))  # type: ignore[arg-type]
    parts = [key for key in old if old[key] != new[key]]
    values = {key: wanted[key] for key in parts}
    if "policy" in values:
        policy = wanted["policy"]
        assert isinstance(policy, dict)
        values["policy"] = dict.fromkeys(before.spec.policy) | policy
    if found.paused and before.state is JobState.ACTIVE:
        parts, values = [*parts, "paused"], {**values, "state": JobState.PAUSED}
    elif not found.paused and before.state is JobState.PAUSED:
        parts, values = [*parts, "resumed"], {**values, "state": JobState.ACTIVE}
    change = JobChange(**values)  # type: ignore[arg-type]  # each is of the type of its field
    return tuple(parts), change


def _wanted(before: Job, found: Definition) -> dict[str, object]:
    draft = replace(found.draft, name=" ".join(found.draft.name.split()))
    if found.whole:
        wanted = {key: getattr(draft, key) for key in (*_OFTEN_MISSING, *_REST)}
        wanted["policy"] = dict(draft.policy)
    else:
        wanted = {key: value for key in _OFTEN_MISSING if (value := getattr(draft, key))}
        wanted["policy"] = {**before.spec.policy, **draft.policy}
    if not _same_interval(before, found):
        wanted["schedule"] = draft.schedule
    return wanted


def _same_interval(before: Job, found: Definition) -> bool:
    """Where its grid begins is often decided when a job is made, and in no file."""
    from goclaw_py.jobs.schedule import Every  # noqa: PLC0415

    old, new = before.spec.schedule, found.draft.schedule
    if not isinstance(old, Every) or not isinstance(new, Every):
        return False
    return old.interval == new.interval and new.origin in (None, old.origin)


def _show(brought: list[_Brought], *, dry_run: bool, as_json: bool) -> None:
    failed = [one for one in brought if one.result == "failed"]
    if as_json:
        show_json(list[_Brought], brought)
    else:
        rows = [
            (
                one.slug,
                ": ".join(filter(None, (one.result, ", ".join(one.changed)))),
                words.local(one.next_run_at, one.zone),
                one.where,
            )
            for one in brought
            if one.result != "failed"
        ]
        verb = "WOULD BE" if dry_run else "RESULT"
        show_table(("JOB", verb, "NEXT RUN", "FROM"), rows, empty="nothing was imported")
    for one in failed:
        typer.echo(f"goclaw: {plain(f'{one.where}: {one.problem}')}", err=True)
    if failed:
        raise typer.Exit(ExitCode.FAILED)


# ---------------------------------------------------------------------------- export


def export(
    ctx: typer.Context,
    file: Annotated[Path | None, typer.Argument(help="Default: standard output.")] = None,
    owner: Annotated[
        str | None, typer.Option(callback=maybe_named, help="Only jobs of this owner.")
    ] = None,
) -> None:
    """Write jobs as JSON, for import. Those that are over are left out."""
    import orjson  # noqa: PLC0415

    async def ask(control: Control) -> list[Job]:
        return await _all_jobs(control.jobs, owner)

    found = cli(ctx).ask(ask)
    jobs = sorted(
        (job for job in found if job.state.value not in ("completed", "failed")),
        key=lambda job: (job.owner, job.spec.slug),
    )
    text = orjson.dumps([_document(job) for job in jobs], option=orjson.OPT_INDENT_2).decode()
    if file is None or str(file) == "-":
        typer.echo(text)
    else:
        file.write_text(f"{text}\n", "utf-8")
    over = len(found) - len(jobs)
    left = f"; {over} that {'is' if over == 1 else 'are'} over stayed behind" if over else ""
    typer.echo(f"{count(len(jobs), 'job')} written{left}", err=True)


async def _all_jobs(desk: JobDesk, owner: str | None) -> list[Job]:
    from goclaw_py.model.ids import Owner  # noqa: PLC0415
    from goclaw_py.ports.store import JobQuery  # noqa: PLC0415

    found: list[Job] = []
    whose = None if owner is None else Owner(owner)
    while True:
        query = JobQuery(owner=whose, limit=PAGE, offset=len(found))
        page = await desk.search(query, words.operator())
        found += page.jobs
        if len(page.jobs) < PAGE:
            return found


def _document(job: Job) -> dict[str, object]:
    from goclaw_py.jobs.job_json import spec_json  # noqa: PLC0415

    paused = job.state.value != "active"
    whose = {"owner": job.owner, "maker": job.maker.value, "paused": paused}
    return {**spec_json(job.spec), **whose}
