"""Run all tests, most of them with coverage, and fail if too little of the product was reached.

``make check`` calls it. What mostly waits for other processes, or tries one law thousands of times,
takes twice as long when it is measured and reaches little that nothing else reaches: it runs
afterwards, without. Arguments go to pytest, which then runs once, measured.
``GOCLAW_TEST_WORKERS=0`` runs the tests in one process. The data lies in a temporary folder: no
file is left in the tree.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Gate:
    """``least_percent`` of lines and branches together, in files whose path begins so."""

    name: str
    prefix: str
    least_percent: float


GATES = (
    Gate("goclaw_py/scheduler", "goclaw_py/scheduler/", 95.0),
    Gate("goclaw_py/jobs", "goclaw_py/jobs/", 95.0),
    Gate("all", "", 90.0),
)


UNMEASURED = (
    "tests/browser",
    "tests/chaos",
    "tests/deploy",
    "tests/e2e",
    "tests/property",
    "tests/simulation",
    "tests/unit/bench",
)


@dataclass(frozen=True, slots=True)
class Reached:
    """Lines and branches: how many there are and how many were executed."""

    lines: int = 0
    lines_reached: int = 0
    branches: int = 0
    branches_reached: int = 0

    @property
    def percent(self) -> float:
        """Both together, as coverage.py counts; 0 if there is nothing."""
        total = self.lines + self.branches
        return 100 * (self.lines_reached + self.branches_reached) / total if total else 0.0

    @property
    def percent_of_branches(self) -> float:
        """Branches alone."""
        return 100 * self.branches_reached / self.branches if self.branches else 100.0


def main(arguments: Sequence[str]) -> int:
    """Return pytest's code if it is not 0, else 0 if every gate is passed, else 1."""
    with tempfile.TemporaryDirectory(prefix="goclaw-coverage-") as folder:
        environment = {**os.environ, "COVERAGE_FILE": str(Path(folder, "data"))}
        chosen = arguments or [f"--ignore={ROOT / folder}" for folder in UNMEASURED]
        # What is measured computes more than it waits.
        few = str((os.cpu_count() or 1) + 1)
        tests = coverage(environment, "run", "-m", "pytest", "-q", *workers(few), *chosen)
        report = Path(folder, "report.json")
        for step in (["combine", "-q"], ["report"], ["json", "-q", "-o", str(report)]):
            if (code := coverage(environment, *step)) != 0:
                return tests or code
        passed = judge(json.loads(report.read_text(encoding="utf-8"))["files"])
    others = 0 if arguments else unmeasured()
    return tests or others or (0 if passed else 1)


def unmeasured() -> int:
    """Run the rest of the tests; pytest's code."""
    sys.stdout.flush()
    command = [sys.executable, "-m", "pytest", "-q", *workers(), *UNMEASURED]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def workers(default: str = "auto") -> list[str]:
    """Return pytest's options for several processes; ``auto`` are as many as ``conftest`` says.

    Who has nothing left to do takes tests from others: the slow ones stand together. These are
    named at the end.
    """
    number = os.environ.get("GOCLAW_TEST_WORKERS", default)
    return ["-n", number, "--dist", "worksteal", "--durations", "40", "--durations-min", "3"]


def coverage(environment: Mapping[str, str], *command: str) -> int:
    """Run one command of coverage.py; its output, and pytest's, goes to ours."""
    sys.stdout.flush()
    return subprocess.run(
        [sys.executable, "-m", "coverage", *command], cwd=ROOT, env=environment, check=False
    ).returncode


def judge(files: Mapping[str, Any]) -> bool:
    """Print one line for each gate and tell whether all were passed."""
    passed = True
    for gate in GATES:
        reached = total(files, gate.prefix)
        good = reached.percent >= gate.least_percent
        passed = passed and good
        print(
            f"coverage of {gate.name}: {reached.percent:.1f} % "
            f"(branches alone {reached.percent_of_branches:.1f} %), "
            f"at least {gate.least_percent:.0f} %: {'ok' if good else 'TOO LITTLE'}"
        )
    return passed


def total(files: Mapping[str, Any], prefix: str) -> Reached:
    """Add up the files of coverage.py's JSON report whose path begins with ``prefix``."""
    parts = [
        report["summary"]
        for name, report in files.items()
        if Path(name).as_posix().startswith(prefix)
    ]
    return Reached(
        lines=sum(part["num_statements"] for part in parts),
        lines_reached=sum(part["covered_lines"] for part in parts),
        branches=sum(part["num_branches"] for part in parts),
        branches_reached=sum(part["covered_branches"] for part in parts),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
