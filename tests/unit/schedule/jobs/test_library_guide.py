"""The guide of the job library: its program is run as it is written (SPEC CRON-21)."""

from __future__ import annotations

import asyncio

import pytest

from goclaw_py.schedule.jobs.embedded import job_scheduler as library
from goclaw_py.testing.clock import LoopClock
from goclaw_py.testing.loop import VirtualLoop
from tests.support.guides import programs

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
