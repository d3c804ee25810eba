"""The command. The checks are imported only when it runs, so that ``--help`` stays fast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from goclaw_py.cli.context import cli
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.output import plain, show_json
from goclaw_py.cli.progress import progress
from goclaw_py.core.text import count

if TYPE_CHECKING:
    from goclaw_py.cli.doctor.checks import DoctorReport

_MARKS = {"ok": "ok   ", "hint": "hint ", "wrong": "WRONG"}


def doctor(
    ctx: typer.Context,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check installation, settings, database and channels.

    Prints each problem with a fix first. Exit code 1 if a check fails; hints do not count.
    """
    from goclaw_py.cli.doctor.checks import DoctorReport, examine  # noqa: PLC0415

    with progress("checking installation and settings"):
        reports = list(examine(cli(ctx)))
    if as_json:
        show_json(list[DoctorReport], reports)
    else:
        for level in ("wrong", "hint", "ok"):
            for report in (one for one in reports if one.level == level):
                typer.echo(_words(report))
        typer.echo(f"\n{_summary([report.level for report in reports])}")
    if any(report.level == "wrong" for report in reports):
        raise typer.Exit(ExitCode.FAILED)


def _summary(levels: Sequence[str]) -> str:
    problems, hints = levels.count("wrong"), levels.count("hint")
    found = "No problems" if not problems else count(problems, "problem")
    return f"{found}, {count(hints, 'hint')}." if hints else f"{found}."


def _words(report: DoctorReport) -> str:
    text = f"{_MARKS[report.level]}  {report.subject}: {plain(report.fact)}"
    return f"{text}\n       → {plain(report.cure)}" if report.cure else text
