"""What the tests of benchmarks read out of a report, and the server that they do without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bench.scheduler.report import Report
from goclaw_py.store.postgres import Address


def wanted(report: Report) -> dict[tuple[str, str], str]:
    """What is wanted, by the label of the line and the name of the figure."""
    return {
        (line.label, figure.name): str(figure.wanted)
        for line in report.lines
        for figure in line.figures
        if figure.wanted is not None
    }


def assert_all_was_measured(report: Report) -> None:
    for line in report.lines:
        for figure in line.figures:
            assert len(figure.values) == report.rounds


@contextmanager
def no_server() -> Iterator[Address]:
    yield Address()
