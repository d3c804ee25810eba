"""``docs/guide/library.md`` says what happens: each program in it is run as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "library.md"
PROGRAMS = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", GUIDE.read_text(), re.DOTALL)


def test_every_program_has_its_output() -> None:
    assert len(PROGRAMS) == GUIDE.read_text().count("```python") == 4


@pytest.mark.real_time
@pytest.mark.parametrize(("program", "output"), PROGRAMS, ids=range(1, len(PROGRAMS) + 1))
def test_a_program_of_the_guide_prints_what_the_guide_says(
    program: str, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(program, str(GUIDE), "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == output


def test_lanes_and_queues_take_fifteen_lines() -> None:
    lines = [line for line in PROGRAMS[0][0].splitlines() if line.strip()]
    assert len(lines) <= 15
