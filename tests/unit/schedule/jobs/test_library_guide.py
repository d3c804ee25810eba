"""Every program in the guide of the job library is run as it is written (SPEC CRON-21)."""

from __future__ import annotations

import asyncio
import random
from dataclasses import fields
from datetime import datetime
from pathlib import Path

import pytest

from goclaw_py.schedule.jobs.embedded import job_scheduler as library
from goclaw_py.schedule.jobs.policy import DEFAULT_PROFILE, JobPolicy
from goclaw_py.testing.clock import LoopClock
from goclaw_py.testing.loop import VirtualLoop
from tests.support.guides import ROOT, Program, programs, strictly_typed

GUIDE = "jobs-library.md"
ALL = programs(GUIDE)
IN_MEMORY = [program for program in ALL if "PostgresStore" not in program.code]


def test_there_is_a_program_for_each_part() -> None:
    assert (len(IN_MEMORY), len(ALL)) == (6, 7)


class _Clock(LoopClock):
    """Also tells the time before the loop runs: a service may be made there."""

    def now(self) -> datetime:
        try:
            return super().now()
        except RuntimeError:
            return self._start


@pytest.mark.parametrize("program", IN_MEMORY, ids=range(1, len(IN_MEMORY) + 1))
def test_a_program_prints_what_the_guide_says(
    program: Program, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(asyncio.events, "new_event_loop", VirtualLoop)
    monkeypatch.setattr(library, "SharedClock", _Clock)
    monkeypatch.setattr(random, "random", lambda: 0.5)
    code = program.code.replace("datetime.now(UTC)", "datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)")
    exec(compile(code, GUIDE, "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (program.prints, "")


@pytest.mark.slow
def test_the_programs_satisfy_a_strict_type_checker(tmp_path: Path) -> None:
    assert strictly_typed(ALL, tmp_path) == ""


def test_the_table_of_the_policy_is_that_of_the_code() -> None:
    text = (ROOT / "docs" / "guide" / GUIDE).read_text(encoding="utf-8")
    table = text.partition("| key of `policy` |")[2].partition("\n\n")[0]
    rows = [row.split(" | ") for row in table.splitlines()[2:]]
    told = {row[0].strip("| `"): row[1].strip("`") for row in rows}
    assert len(told) > 8
    defaults = {
        field.name: getattr(DEFAULT_PROFILE.policy, field.name) for field in fields(JobPolicy)
    }
    for key, shown in told.items():
        default = defaults[key]
        words = {True: "true", False: "false"}.get(default) if isinstance(default, bool) else None
        number = f"{default:g}" if isinstance(default, int | float) else repr(default)
        plain = f'"{default}"' if isinstance(default, str) else words or number
        assert plain == shown, key
