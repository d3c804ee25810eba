"""Every program in the guide of the library is run as it is written."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from goclaw_py.testing.loop import VirtualLoop

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "guide" / "library.md"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

FENCES: list[tuple[str, str]] = _FENCE.findall(GUIDE.read_text(encoding="utf-8"))
PROGRAMS = [code for kind, code in FENCES if kind == "python"]


def test_every_program_is_followed_by_what_it_prints() -> None:
    assert [kind for kind, _ in FENCES] == ["python", "text"] * len(PROGRAMS)
    assert len(PROGRAMS) >= 10


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_prints_what_the_guide_says(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(asyncio.events, "new_event_loop", VirtualLoop)
    code = compile(PROGRAMS[number], f"{GUIDE.name}, program {number + 1}", "exec")
    exec(code, {"__name__": "__main__"})
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (FENCES[2 * number + 1][1], "")


def test_the_first_program_has_at_most_fifteen_lines() -> None:
    lines = [line for line in PROGRAMS[0].splitlines() if line.strip()]
    assert len(lines) <= 15


def test_the_programs_satisfy_a_strict_type_checker(tmp_path: Path) -> None:
    files = []
    for number, program in enumerate(PROGRAMS):
        files.append(tmp_path / f"program_{number + 1}.py")
        files[-1].write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--scripts-are-modules"]
    options = ["--config-file", "", "--cache-dir", str(tmp_path / "cache"), "--no-error-summary"]
    done = subprocess.run(
        [*command, *options, *map(str, files)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("", 0)
