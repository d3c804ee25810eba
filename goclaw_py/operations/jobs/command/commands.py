"""``goclaw jobs``: jobs, and when they run (SPEC OPS-1, section 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from goclaw_py.cli.context import AsJson, answer, cli, confirm
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.messages import display
from goclaw_py.cli.output import Printer, plain, show_json, show_text, started_text
from goclaw_py.operations.jobs import HELP
from goclaw_py.operations.jobs.command import add, imports, show
from goclaw_py.operations.jobs.command.texts import (
    JobName,
    JobSnapshot,
    label,
    next_runs,
    operator,
    routed,
)
from goclaw_py.operations.jobs.models import JobChange, RunNow, StartedNow
from goclaw_py.schedule.jobs.models import Job, JobState

if TYPE_CHECKING:
    from goclaw_py.operations.control import Control

app = typer.Typer(help=HELP, no_args_is_help=True)

_NO_GATEWAY = "no gateway is running here; to start one: goclaw run"

app.command("list")(show.list_)
app.command("show")(show.show)
app.command("add")(add.add)
app.command("edit")(add.edit)


# ---------------------------------------------------------------------------- pause, resume


@app.command()
def pause(ctx: typer.Context, job: JobName, *, as_json: AsJson = False) -> None:
    """Pause a job. A run in progress finishes."""
    _set(ctx, job, JobState.PAUSED, as_json=as_json)


@app.command()
def resume(ctx: typer.Context, job: JobName, *, as_json: AsJson = False) -> None:
    """Resume a job that is paused, or disabled after failures."""
    _set(ctx, job, JobState.ACTIVE, as_json=as_json)


def _set(ctx: typer.Context, job: str, state: JobState, *, as_json: bool) -> None:
    async def ask(control: Control) -> JobSnapshot:

        edited = await control.jobs.edit(job, JobChange(state=state), operator())
        return await routed(control.jobs, edited)

    answer(ctx, ask, next_runs(ctx, as_json=as_json))


# ---------------------------------------------------------------------------- run


_REFUSED = {
    RunNow.ALREADY_RUNNING: "the job is already running",
    RunNow.AT_CAPACITY: "the maximum number of jobs is already running",
    RunNow.NO_WORK: "the work source of the job has no work",
    RunNow.OFF: "jobs are turned off (scheduler.enabled = false)",
}


@app.command()
def run(ctx: typer.Context, job: JobName, *, as_json: AsJson = False) -> None:
    """Run a job now, even if it is paused. Prints the id of the run.

    If no run starts, prints the reason instead: already_running, at_capacity, no_work or off.
    """

    async def ask(control: Control) -> tuple[StartedNow | RunNow, bool]:
        started = await control.jobs.run_now(job, operator())
        return started, (await control.jobs.scheduler()).enabled

    found, enabled = cli(ctx).ask(ask)
    document: dict[str, str | None]
    if isinstance(found, StartedNow):
        document = {"status": "started", "run": found.run, "occurrence": found.occurrence}
        text, reason = started_text(found.run) if found.run else f"ran {plain(job)}", ""
    else:
        document, text, reason = {"status": found.value}, found.value, _REFUSED[found]
    is_away = found is RunNow.OFF and enabled
    if as_json:
        show_json(dict[str, str | None], document)
    elif not is_away:
        typer.echo(text)
    if not reason:
        return
    typer.echo(f"goclaw: {_NO_GATEWAY if is_away else reason}", err=True)
    raise typer.Exit(ExitCode.UNREACHABLE if is_away else ExitCode.FAILED)


app.command("runs")(show.runs)
app.command("next")(show.next_)


# ---------------------------------------------------------------------------- delete


@app.command("rm", hidden=True)
@app.command()
def delete(
    ctx: typer.Context, job: JobName, *, yes: display.Yes = False, as_json: AsJson = False
) -> None:
    """Delete a job. A run in progress finishes."""
    found = cli(ctx).ask(lambda control: control.jobs.get(job, operator()))
    confirm(f"Delete {label(found)}?", yes=yes)

    def show(gone: Job) -> None:
        show_text(f"deleted {label(gone)}")

    def document(gone: Job) -> dict[str, str]:
        return {"deleted": gone.spec.slug, "id": gone.id}

    output = Printer(dict[str, str], show, as_json, document)
    answer(ctx, lambda control: control.jobs.delete(found.id, operator()), output)


app.command("import")(imports.import_)
app.command("export")(imports.export)
