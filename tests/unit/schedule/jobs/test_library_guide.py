"""The guide of the job library: its program is run as it is written (SPEC CRON-21)."""

from __future__ import annotations

import asyncio
from dataclasses import fields

import pytest

from goclaw_py.schedule.jobs.embedded import job_scheduler as library
from goclaw_py.schedule.jobs.policy import DEFAULT_PROFILE, JobPolicy
from goclaw_py.testing.clock import LoopClock
from goclaw_py.testing.loop import VirtualLoop
from tests.support.guides import ROOT, programs

GUIDE = "jobs-library.md"
(PROGRAM,) = programs(GUIDE)


def test_the_program_prints_what_the_guide_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(asyncio.events, "new_event_loop", VirtualLoop)
    monkeypatch.setattr(library, "SharedClock", LoopClock)
    exec(compile(PROGRAM.code, GUIDE, "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (PROGRAM.prints, "")


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
