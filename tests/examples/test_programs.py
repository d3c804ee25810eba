"""Every program in ``examples/`` prints what it says (SPEC CRON-21)."""

from __future__ import annotations

import asyncio
import random
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from goclaw_py.schedule.jobs.embedded import job_scheduler as library
from goclaw_py.testing.clock import LoopClock
from goclaw_py.testing.loop import VirtualLoop
from tests.examples.programs import FOLDER, NAMES, PROGRAMS, program
from tests.support.guides import ROOT, programs

WITH_A_DATABASE = "shared_jobs"
"""tests/integration/test_jobs_library.py runs it."""


class _Clock(LoopClock):
    """Also tells the time before the loop runs: a service may be made there."""

    def now(self) -> datetime:
        try:
            return super().now()
        except RuntimeError:
            return self._start


def test_there_are_ten_programs() -> None:
    assert len(PROGRAMS) == 10
    assert WITH_A_DATABASE in PROGRAMS


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != WITH_A_DATABASE])
def test_a_program_prints_what_it_says(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(asyncio.events, "new_event_loop", VirtualLoop)
    monkeypatch.setattr(library, "SharedClock", _Clock)
    monkeypatch.setattr(random, "random", lambda: 0.5)
    shown = program(name)
    exec(compile(shown.code, name, "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (shown.prints, "")


def test_the_list_of_examples_has_each_of_them() -> None:
    text = (FOLDER / "README.md").read_text("utf-8")
    assert set(re.findall(r"\]\((\w+)\.py\)", text)) == set(NAMES)


@pytest.mark.slow
def test_examples_and_programs_of_guides_satisfy_a_strict_type_checker(tmp_path: Path) -> None:
    files = [FOLDER / f"{name}.py" for name in NAMES]
    for number, guide in enumerate(("library.md", "jobs-library.md")):
        for shown in programs(guide):
            files.append(tmp_path / f"program_{number}.py")
            files[-1].write_text(shown.code, encoding="utf-8")
    # With the settings and the cache of `make check`, which has just read all of the product.
    command = [sys.executable, "-m", "mypy", "--scripts-are-modules", "--no-error-summary"]
    done = subprocess.run(
        [*command, *map(str, files)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout + done.stderr == ""
