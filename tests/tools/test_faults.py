"""The tool that plants faults: which ones there are, and that they are found or not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.faults import ROOT, Fault, all_faults, faults_in, files_for, judge, sample
from tests.tools.reached import FOLDER, Reached

SOURCE = b'''"""A module."""
from typing import Literal

NAME = "\xc3\xa9"; LIMIT: Literal[1] = 3


@cache(size=1)
def f(a: int, b: int) -> int:
    log.info(f"{a + 1}")
    if a < b and not b:
        g(a)
    return a - b
'''


def test_faults_are_small_changes_of_what_is_executed() -> None:
    assert [str(fault).partition("  ")[2] for fault in faults_in("m.py", SOURCE)] == [
        "number: 3 -> 4",
        "negate: a < b and not b -> (not (a < b and (not b)))",
        "and/or: a < b and not b -> (a < b or not b)",
        "compare: a < b -> (a <= b)",
        "drop: g(a) -> pass",
        "return None: return a - b -> return None",
        "plus/minus: a - b -> (a + b)",
    ]


def test_a_planted_fault_changes_its_place_only() -> None:
    (number, *_) = faults_in("m.py", SOURCE)
    assert number.plant(SOURCE) == SOURCE.replace(b"= 3", b"= 4")


def test_a_seed_chooses_the_same_faults_in_every_package_and_all_can_be_compiled() -> None:
    every = list(all_faults(["goclaw_py/runs", "goclaw_py/chat/access"]))
    chosen = sample(every, 40, seed=3)
    assert chosen == sample(every, 40, seed=3) != sample(every, 40, seed=4)
    assert sum(fault.path.startswith("goclaw_py/chat/access") for fault in chosen) == 20
    for fault in chosen:
        compile(fault.plant((ROOT / fault.path).read_bytes()), fault.path, "exec")


def test_the_quickest_tests_that_reach_the_line_run_first_and_not_for_ever() -> None:
    path = "goclaw_py/runs/usage_report.py"
    reached = Reached({(path, 20): {"slow", "quick", "endless"}})
    reached.seconds.update({"slow": 80, "quick": 1, "endless": 900})

    def chosen(line: int) -> list[str]:
        return files_for(Fault(path, line, "number", 0, "1", "2"), reached)

    assert chosen(20) == chosen(25) == ["quick", "slow"]
    near = chosen(10)
    assert {"quick", "slow"} < set(near)
    assert all(Path(ROOT, name).is_file() for name in set(near) - {"quick", "slow"})


@pytest.mark.real_time
def test_lines_are_noted_with_the_tests_that_reach_them(tmp_path: Path) -> None:
    test = "from goclaw_py.core.text import count\ndef test_m():\n    count(2, 'run')\n"
    (tmp_path / "test_m.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.tools.reached", "--rootdir"]
    subprocess.run(
        [*command, str(tmp_path), "-c", os.devnull, str(tmp_path / "test_m.py")],
        cwd=ROOT,
        env=os.environ | {FOLDER: str(tmp_path)},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    found = Reached.read(tmp_path, ROOT)
    assert {path for (path, _), files in found.files.items() if files} >= {"goclaw_py/core/text.py"}
    assert found.seconds["test_m.py"] > 0


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("test", "limit_s", "found"),
    [
        ("assert f() == 1", 60, "FAILED tests/unit/product/test_m.py::test_f"),
        ("f()", 60, ""),
        ("while f() == 2: pass", 6, "time limit"),
    ],
)
def test_a_fault_is_found_by_a_test_that_fails_or_does_not_end(
    tmp_path: Path, test: str, limit_s: float, found: str
) -> None:
    source = "def f():\n    return 1\n"
    files = {
        "product/m.py": source,
        "tests/unit/product/test_m.py": f"from product.m import f\ndef test_f():\n    {test}\n",
        "pytest.ini": "[pytest]\nmarkers = slow\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (number,) = (f for f in faults_in("product/m.py", source.encode()) if f.kind == "number")
    tests = ["tests/unit/product/test_m.py"]
    assert judge(number, tests, tmp_path, limit_s).found_by == found
    assert (tmp_path / "product/m.py").read_text() == source
