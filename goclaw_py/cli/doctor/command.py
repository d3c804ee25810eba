"""The command. The checks are imported only when it runs, so that ``--help`` stays fast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from goclaw_py.cli.context import cli
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.output import show_json, show_text
from goclaw_py.cli.progress import progress
from goclaw_py.core.text import count

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
                show_text(f"{report.subject}: {report.fact}", f"{_MARKS[report.level]}  ")
                if report.cure:
                    show_text(report.cure, "       → ")
        typer.echo(f"\n{_summary([report.level for report in reports])}")
    if any(report.level == "wrong" for report in reports):
        raise typer.Exit(ExitCode.FAILED)


def _summary(levels: Sequence[str]) -> str:
    problems, hints = levels.count("wrong"), levels.count("hint")
    found = "No problems" if not problems else count(problems, "problem")
    return f"{found}, {count(hints, 'hint')}." if hints else f"{found}."
