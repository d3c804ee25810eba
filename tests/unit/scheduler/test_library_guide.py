"""The program in the guide of the library is run as it is written; tests/examples runs others."""

from __future__ import annotations

import asyncio

import pytest

from goclaw_py.testing.loop import VirtualLoop
from tests.support.guides import programs

GUIDE = "library.md"
(PROGRAM,) = programs(GUIDE)


def test_the_program_prints_what_the_guide_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(asyncio.events, "new_event_loop", VirtualLoop)
    exec(compile(PROGRAM.code, GUIDE, "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (PROGRAM.prints, "")


def test_the_program_has_at_most_fifteen_lines() -> None:
    assert len([line for line in PROGRAM.code.splitlines() if line.strip()]) <= 15
