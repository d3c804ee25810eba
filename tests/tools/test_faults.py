"""The tool that plants faults: which ones there are, and that they are found or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.faults import ROOT, all_faults, faults_in, judge, sample, suite_for

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


def test_tests_that_import_the_module_run_first() -> None:
    near, far = suite_for("goclaw_py/runs/usage_report.py", ROOT)
    assert all(Path(ROOT, name).is_file() for name in near)
    assert far == ["tests/unit/runs"]


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
    assert judge(number, tmp_path, limit_s).found_by == found
    assert (tmp_path / "product/m.py").read_text() == source
