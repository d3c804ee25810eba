"""Every program in the guide of the library is run as it is written."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from goclaw_py.testing.loop import VirtualLoop
from tests.support.guides import Program, programs, strictly_typed

GUIDE = "library.md"
PROGRAMS = programs(GUIDE)


def test_there_is_a_program_for_each_part() -> None:
    assert len(PROGRAMS) >= 10


@pytest.mark.parametrize("program", PROGRAMS, ids=range(1, len(PROGRAMS) + 1))
def test_a_program_prints_what_the_guide_says(
    program: Program, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(asyncio.events, "new_event_loop", VirtualLoop)
    exec(compile(program.code, GUIDE, "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (program.prints, "")


def test_the_first_program_has_at_most_fifteen_lines() -> None:
    lines = [line for line in PROGRAMS[0].code.splitlines() if line.strip()]
    assert len(lines) <= 15


@pytest.mark.slow
def test_the_programs_satisfy_a_strict_type_checker(tmp_path: Path) -> None:
    assert strictly_typed(PROGRAMS, tmp_path) == ""
