"""A plugin of pytest that notes which files with tests reach which lines of the product.

``tests.tools.faults`` runs all quick tests with it once, and then for each fault only the files
that reach its line. The folder that ``REACHED_FOLDER`` names gets two files of each process.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import coverage
import pytest

FOLDER = "REACHED_FOLDER"


@dataclass(frozen=True, slots=True)
class Reached:
    """Files with tests by the line of the product that they reach, and how long each takes.

    ``failed`` are tests that fail without any fault: they would find each.
    """

    files: dict[tuple[str, int], set[str]] = field(default_factory=lambda: defaultdict(set))
    seconds: Counter[str] = field(default_factory=Counter)
    failed: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, folder: Path, root: Path) -> Reached:
        """Read what the processes of one run have written."""
        found = cls()
        for part in folder.glob("*.json"):
            noted = json.loads(part.read_text())
            found.seconds.update(noted["seconds"])
            found.failed.update(noted["failed"])
        for part in folder.glob("lines.*"):
            data = coverage.CoverageData(str(part))
            data.read()
            for measured in data.measured_files():
                path = Path(measured).relative_to(root).as_posix()
                for line, contexts in data.contexts_by_lineno(measured).items():
                    found.files[path, line].update(filter(None, contexts))
        return found


class _Notes:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seconds: Counter[str] = Counter()
        self._failed: set[str] = set()
        self._measured = coverage.Coverage(
            data_file=str(folder / "lines"), data_suffix=True, config_file=False,
            source=["goclaw_py", "channels"],
        )  # fmt: skip
        self._measured.start()
        self._now = ""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        file, begun = item.nodeid.partition("::")[0], time.monotonic()
        if file != self._now:
            self._measured.switch_context(file)
            self._now = file
        result = yield
        self._seconds[file] += time.monotonic() - begun  # type: ignore[assignment]
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self._measured.stop()
        self._measured.save()
        noted = {"seconds": self._seconds, "failed": sorted(self._failed)}
        (self._folder / f"{os.getpid()}.json").write_text(json.dumps(noted))


def pytest_configure(config: pytest.Config) -> None:
    # The process that only distributes the tests measures nothing.
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(_Notes(Path(os.environ[FOLDER])))
