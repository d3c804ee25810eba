"""The benchmark of the inbox runs to its end; nothing here is timed."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

from bench.inbox import __main__ as inbox
from bench.inbox.contenders import CONTENDERS
from bench.inbox.measure import cpu_s
from tests.unit.bench.reports import assert_all_was_measured

pytestmark = pytest.mark.real_time

HERE = tuple(name for name in CONTENDERS if find_spec(name) is not None)
"""Peers are installed for benchmarks only."""


def test_everybody_stores_messages_and_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "in_child", lambda measure, *a: measure(*a))
    report = inbox.report(inbox.Sizes(rounds=1, seconds=0.05, callers=(1, 3), contenders=HERE))
    labels = [line.label for line in report.lines]
    for callers in (1, 3):
        assert {f"{callers:3} callers, {name}" for name in HERE} <= set(labels)
    assert sum("/" in label for label in labels) == 2 * (len(HERE) - 1)
    assert_all_was_measured(report)
    for line in report.lines:
        for figure in line.figures:
            assert figure.unit.startswith("ms") or min(figure.values) > 0


def test_our_figures_of_a_hundred_callers_have_bounds() -> None:
    assert (str(inbox.RATE[100]), str(inbox.P99_MS[100])) == ("≥ 15,000", "< 10")


def test_the_cpu_of_a_process_and_its_children_is_counted() -> None:
    begin = cpu_s(os.getpid())
    while cpu_s(os.getpid()) - begin < 0.02:
        sum(range(100_000))
    assert cpu_s(2**30) == 0
