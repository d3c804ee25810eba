"""How long things took (SPEC LANE-7)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.common.histogram import BOUNDS_S, Histogram, HistogramView

SHARES = st.floats(0.01, 1.0)


def measured(*seconds: float) -> HistogramView:
    histogram = Histogram()
    for each in seconds:
        histogram.add(each)
    return histogram.view()


def test_the_median_is_not_moved_by_one_long_time() -> None:
    times = measured(0.02, 0.02, 0.02, 500)
    assert times.quantile(0.5) == 0.025
    assert times.quantile(0.95) == 900
    assert times.count == 4
    assert times.total_s == pytest.approx(500.06)


def test_a_view_names_its_bounds_so_that_a_program_can_read_it() -> None:
    times = measured(2)
    assert times.bounds_s == BOUNDS_S
    assert len(times.counts) == len(BOUNDS_S) + 1


def test_a_view_does_not_change_when_more_is_measured() -> None:
    histogram = Histogram()
    histogram.add(1)
    view = histogram.view()
    histogram.add(1)
    assert view.count == 1


@given(st.lists(st.floats(0, 10_000), min_size=1), SHARES)
def test_at_least_the_share_of_times_keeps_to_the_quantile(
    times: list[float], share: float
) -> None:
    bound = measured(*times).quantile(share)
    assert bound is not None
    within = sum(seconds <= bound for seconds in times)
    assert within >= math.floor(share * len(times))


@given(st.lists(st.floats(0, 10_000), min_size=1), SHARES, SHARES)
def test_a_larger_share_never_has_a_smaller_quantile(
    times: list[float], one: float, other: float
) -> None:
    view = measured(*times)
    low, high = view.quantile(min(one, other)), view.quantile(max(one, other))
    assert low is not None
    assert high is not None
    assert low <= high
