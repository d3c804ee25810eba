"""Run all tests, the quick ones with coverage, and fail if too little of the product was reached.

``make check`` calls it. Slow tests mostly wait for other processes and reach little that the quick
ones do not reach, so they run afterwards, unmeasured. ``TEST_WORKERS`` sets the number of
processes. The data lies in a temporary folder: no file is left in the tree.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

GATES = {"goclaw_py/scheduler/*": 95, "goclaw_py/schedule/jobs/*": 95, "*": 90}
"""Files, and the least percentage of their lines and branches that the quick tests reach."""


def main() -> int:
    """Return 0 if all tests and all gates passed, else 1."""
    with tempfile.TemporaryDirectory(prefix="goclaw-coverage-") as folder:
        os.environ["COVERAGE_FILE"] = str(Path(folder, "data"))
        # Measured tests compute more than they wait: fewer processes than in `make test`.
        tests = pytest("coverage", "run", "-m", marks="not slow", workers=(os.cpu_count() or 1) + 1)
        passed = [tests, run("coverage", "combine", "-q"), run("coverage", "report")]
        for files, percent in GATES.items():
            print(f"coverage of {files}, at least {percent} %:", flush=True)
            gate = (f"--include={files}", f"--fail-under={percent}", "--format=total")
            passed.append(run("coverage", "report", *gate))
        del os.environ["COVERAGE_FILE"]
    passed.append(pytest(marks="slow"))
    return 0 if all(passed) else 1


def pytest(*before: str, marks: str, workers: int | str = "auto") -> bool:
    """Run the tests with these marks in several processes; name the 40 slowest at the end."""
    number = os.environ.get("TEST_WORKERS", str(workers))
    options = ["-n", number, "--dist", "worksteal", "--durations", "40", "--durations-min", "3"]
    return run(*before, "pytest", "-q", "-m", marks, *options)


def run(*command: str) -> bool:
    """Run a Python module in the root folder; true if it succeeded."""
    return subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
