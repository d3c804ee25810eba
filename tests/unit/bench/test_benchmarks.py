"""Each benchmark of the scheduler runs to its end; nothing here is timed."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from bench.scheduler import debounce, dispatch, idle, stop
from bench.scheduler.child import in_child, loops
from bench.scheduler.contenders import CONTENDERS, nothing
from bench.scheduler.sizes import TINY
from tests.unit.bench.reports import assert_all_was_measured, wanted

pytestmark = pytest.mark.real_time


@pytest.fixture(autouse=True)
def small_heap() -> Iterator[None]:
    """Each measurement collects garbage first: not that of thousands of tests again and again."""
    gc.freeze()
    yield
    gc.unfreeze()


def test_dispatch_compares_all_contenders_on_all_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    # Starting a Python for each of many tiny measurements would take a minute.
    monkeypatch.setattr(dispatch, "in_child", lambda measure, *a: measure(*a))
    report = dispatch.report(replace(TINY, rounds=2))
    assert_all_was_measured(report)
    labels = [line.label for line in report.lines]
    for loop in loops():
        for name in CONTENDERS:
            assert f"{loop}, lane 2, {name}" in labels
            assert f"{loop}, lane 30, {name}, delays" in labels
        assert f"{loop}, lane 2, goclaw_py / aiojobs" in labels
    assert wanted(report) == {
        (f"{loop}, lane 2, goclaw_py / {peer}", "by CPU"): bound
        for loop in loops()
        for peer, bound in (("floor", "≥ 0.65"), ("semaphore", "≥ 1.5"))
    }


def test_a_contender_that_loses_messages_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lazy(lane: int, batches: object, work: object) -> object:
        return await CONTENDERS["floor"](lane, dispatch.at_once([("ann", 0)]), nothing)

    monkeypatch.setitem(CONTENDERS, "lazy", lazy)
    with pytest.raises(RuntimeError, match="lazy was given 20 messages"):
        dispatch.measure_rate(dispatch.Case("lazy", 2, "asyncio"), TINY)


def test_stop_measures_every_session() -> None:
    report = stop.report(TINY)
    assert_all_was_measured(report)
    assert wanted(report) == {("one after the other", "p99"): "< 5"}
    found = stop.measure(TINY)
    for reaction in (found.apart, found.at_once):
        assert 0 < reaction.p50_ms <= reaction.p99_ms <= reaction.max_ms


def test_debounce_measures_speed_and_weight() -> None:
    report = debounce.report(TINY)
    assert_all_was_measured(report)
    assert wanted(report) == {
        ("debouncing itself", "per CPU second"): "≥ 1,000,000",
        ("debouncing itself", "per armed session"): "≤ 400",
    }
    weight = debounce.measure_weight(TINY)
    assert 0 < weight.collector < weight.submit


def test_idle_measures_what_remains() -> None:
    report = idle.report(TINY)
    assert_all_was_measured(report)
    assert wanted(report) == {
        ("idle session", ""): "≤ 1,536",
        ("one-shot sessions", "growth"): "< 20",
    }


def test_each_measurement_has_a_process_of_its_own() -> None:
    mine, first, second = os.getpid(), in_child(os.getpid), in_child(os.getpid)
    assert len({mine, first, second}) == 3
