"""``goclaw jobs import`` and ``export``: read jobs from files and write them to one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goclaw_py.app.progress import ProgressStep
from goclaw_py.cli.context import AsJson, cli, maybe_named, with_wide
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.output import (
    Column,
    local,
    plain,
    refuse_existing,
    show_json,
    show_table,
)
from goclaw_py.cli.progress import report
from goclaw_py.core.errors import BadJob, JobError, UnknownJob
from goclaw_py.core.ids import AgentName, Owner
from goclaw_py.core.text import count
from goclaw_py.operations.jobs.command import texts as words
from goclaw_py.operations.jobs.command.show import PAGE
from goclaw_py.operations.jobs.models import JobChange, Requester
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.schedule.jobs.job_json import spec_json
from goclaw_py.schedule.jobs.models import SLUG, Job, JobState
from goclaw_py.schedule.jobs.schedule import Every
from goclaw_py.schedule.jobs.view_texts import kind_and_text

if TYPE_CHECKING:
    from goclaw_py.operations.control import Control
    from goclaw_py.operations.jobs.command.files import Definition


@dataclass(frozen=True, slots=True)
class _Imported:
    """Result of importing one definition.

    Args:
        result: ``new``, ``updated``, ``unchanged`` or ``failed``.
        changed: The fields that an update changed.
        problem: Why the import failed.
    """

    where: str
    slug: str
    result: str
    changed: tuple[str, ...] = ()
    next_run_at: datetime | None = None
    zone: str = "UTC"
    problem: str = ""


# ---------------------------------------------------------------------------- import


@with_wide
def import_(
    ctx: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="FILE|FOLDER", help="Files or folders; - is standard input."),
    ],
    agent: Annotated[
        str | None, typer.Option(callback=maybe_named, help="Agent of all imported jobs.")
    ] = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the result without changing anything.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create or update jobs from files.

    Reads JSON of goclaw jobs export, folders of caco and YAML schedules of herdctl. A job that
    exists is updated to match its file. Exit code 1 if any job failed.
    """
    from goclaw_py.operations.jobs.command.files import ImportProblem, read_all  # noqa: PLC0415

    definitions: list[Definition] = []
    failed: list[_Imported] = []
    for each in read_all(paths):
        if isinstance(each, ImportProblem):
            failed.append(_Imported(each.where, "", "failed", problem=each.why))
        else:
            definitions.append(_for_agent(each, agent))

    async def ask(control: Control) -> list[_Imported]:
        seen: set[tuple[str, str]] = set()
        brought = []
        for number, each in enumerate(definitions):
            report(ProgressStep("importing", number, len(definitions), "jobs"))
            brought.append(await _import(control.jobs, each, seen, dry_run=dry_run))
        return brought

    brought = [*(cli(ctx).ask(ask, create=not dry_run) if definitions else ()), *failed]
    _show(brought, dry_run=dry_run, as_json=as_json)


def _for_agent(found: Definition, agent: str | None) -> Definition:
    if agent is None:
        return found
    return replace(found, draft=replace(found.draft, agent=AgentName(agent)))


async def _import(
    service: JobService, found: Definition, seen: set[tuple[str, str]], *, dry_run: bool
) -> _Imported:
    slug = found.draft.slug
    try:
        if (found.owner, slug) in seen:
            raise BadJob("slug", f"{slug} appears twice in this import")
        seen.add((found.owner, slug))
        _askable(slug)
        _storable(found)
        return await _imported(service, found, dry_run=dry_run)
    except JobError as error:
        return _Imported(found.where, slug, "failed", problem=str(error))


def _askable(slug: str) -> None:
    """Raise ``BadJob`` for an invalid slug, which could not even be looked up."""
    if not SLUG.fullmatch(slug):
        raise BadJob("slug", "must be 1 to 64 of a-z 0-9 _ -, and start with a letter or digit")


def _storable(found: Definition) -> None:
    """Raise ``BadJob`` for text that the database cannot store unchanged.

    Such a job would differ from its file at every import.
    """
    payload = found.draft.payload
    kind, text = ("prompt", "") if payload is None else kind_and_text(payload)
    for key, each in ((kind, text), ("name", found.draft.name)):
        if "\0" in each:
            raise BadJob(key, "must not contain NUL characters")
        if any("\ud800" <= char <= "\udfff" for char in each):
            raise BadJob(key, "must not contain half of a surrogate pair")


async def _imported(service: JobService, found: Definition, *, dry_run: bool) -> _Imported:
    """Create the job, or update the one with the same slug. Raises ``JobError``."""
    # An import acts as the operator; the agent of the definition is the one that asks.
    by = Requester(found.owner, found.maker, found.draft.agent)
    before = await _existing(service, found.draft.slug, by)
    if before is None:
        return await _made(service, found, by, dry_run=dry_run)
    parts, change = _difference(before, found)
    if not parts:
        return _result("unchanged", found, before)
    if dry_run:
        await service.preview(replace(found.draft, paused=True), by, 1)
        return replace(_result("updated", found, before), changed=parts, next_run_at=None)
    after = await service.edit(before.id, change, by)
    return replace(_result("updated", found, after), changed=parts)


async def _existing(service: JobService, slug: str, by: Requester) -> Job | None:
    try:
        found = await service.get(slug, by, is_slug=True)
    except UnknownJob:
        return None
    # ``get`` also accepts the beginning of an id, so another job may have been found.
    return found if found.spec.slug == slug else None


async def _made(
    service: JobService, found: Definition, by: Requester, *, dry_run: bool
) -> _Imported:
    first = found.draft.next_run_at
    # An overdue job runs once, immediately.
    first = None if first is None else max(first, (await service.scheduler()).now)
    draft = replace(found.draft, next_run_at=first, paused=found.paused)
    if not dry_run:
        return _result("new", found, await service.create(draft, by))
    ahead = await service.preview(draft, by, 1)
    zone = draft.zone or await service.zone(by)
    at = ahead[0] if ahead else None
    return _Imported(found.where, draft.slug, "new", next_run_at=at, zone=zone)


def _result(result: str, found: Definition, job: Job) -> _Imported:
    return _Imported(
        found.where, job.spec.slug, result, next_run_at=job.next_run_at, zone=job.spec.zone
    )


# Fields that a file may leave out; then the job keeps its own value.
_OFTEN_MISSING = ("name", "zone", "payload", "agent", "source")
_REST = ("target", "peer", "notify", "session", "max_runs", "not_after", "wake_heartbeat")


def _difference(before: Job, found: Definition) -> tuple[tuple[str, ...], JobChange]:
    """Return the names of the fields that a file changes, and the change itself."""
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
    old, new = before.spec.schedule, found.draft.schedule
    if not isinstance(old, Every) or not isinstance(new, Every):
        return False
    return old.interval == new.interval and new.origin in (None, old.origin)


def _show(brought: list[_Imported], *, dry_run: bool, as_json: bool) -> None:
    failed = [one for one in brought if one.result == "failed"]
    if as_json:
        show_json(list[_Imported], brought)
    else:
        rows = [
            (
                one.slug,
                ": ".join(filter(None, (one.result, ", ".join(one.changed)))),
                local(one.next_run_at),
                one.where,
            )
            for one in brought
            if one.result != "failed"
        ]
        verb = "RESULT (DRY RUN)" if dry_run else "RESULT"
        columns = (
            "JOB",
            Column(verb, least=16),
            Column("NEXT RUN", drop=1),
            Column("FROM", least=16),
        )
        show_table(columns, rows, empty="no jobs imported")
    for one in failed:
        typer.echo(f"goclaw: {plain(f'{one.where}: {one.problem}')}", err=True)
    if failed:
        raise typer.Exit(ExitCode.FAILED)


# ---------------------------------------------------------------------------- export


def export(
    ctx: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(help="File to write (default: standard output).")
    ] = None,
    owner: Annotated[
        str | None, typer.Option(callback=maybe_named, help="Export only jobs of this owner.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Export jobs as JSON, for goclaw jobs import. Finished jobs are left out.

    FILE must be new.
    """
    import orjson  # noqa: PLC0415

    del as_json  # it writes nothing else
    if file is not None:
        refuse_existing(file)

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
    left = f"; left out {count(over, 'finished job')}" if over else ""
    where = "" if file is None or str(file) == "-" else f" to the file {file}"
    typer.echo(plain(f"exported {count(len(jobs), 'job')}{where}{left}"), err=True)
    if any(job.spec.slug == str(file) for job in found):
        typer.echo(
            f"note: {file} is a file now; to show the job: goclaw jobs show {file}", err=True
        )


async def _all_jobs(service: JobService, owner: str | None) -> list[Job]:
    from goclaw_py.records import JobQuery  # noqa: PLC0415  (not needed for --help)

    found: list[Job] = []
    whose = None if owner is None else Owner(owner)
    while True:
        query = JobQuery(owner=whose, limit=PAGE, offset=len(found))
        page = await service.search(query, words.operator())
        found += page.jobs
        report(ProgressStep("exporting", len(found), page.total, "jobs"))
        if len(page.jobs) < PAGE:
            return found


def _document(job: Job) -> dict[str, object]:
    paused = job.state.value != "active"
    whose = {"owner": job.owner, "maker": job.maker.value, "paused": paused}
    return {**spec_json(job.spec), **whose}
