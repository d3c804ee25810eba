"""The command. The checks are imported only when it runs, so that ``--help`` stays fast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from goclaw_py.cli.context import cli
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.output import plain, show_json
from goclaw_py.cli.progress import progress

if TYPE_CHECKING:
    from goclaw_py.cli.doctor.checks import DoctorReport

_MARKS = {"ok": "ok   ", "hint": "hint ", "wrong": "WRONG"}


def doctor(
    ctx: typer.Context,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check installation, settings, database and channels.

    Prints each problem with a fix. Exit code 1 if a check fails; hints do not count.
    """
    from goclaw_py.cli.doctor.checks import DoctorReport, examine  # noqa: PLC0415

    with progress("checking installation and settings"):
        reports = list(examine(cli(ctx)))
    if as_json:
        show_json(list[DoctorReport], reports)
    else:
        for report in reports:
            typer.echo(_words(report))
    if any(report.level == "wrong" for report in reports):
        raise typer.Exit(ExitCode.FAILED)


def _words(report: DoctorReport) -> str:
    text = f"{_MARKS[report.level]}  {report.subject}: {plain(report.fact)}"
    return f"{text}\n       → {plain(report.cure)}" if report.cure else text
