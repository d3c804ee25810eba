"""How long things took (SPEC LANE-7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.containers import BOUNDS_S, Histogram, HistogramView

LONGER = float("inf")


def measured(*seconds: float) -> HistogramView:
    histogram = Histogram()
    for each in seconds:
        histogram.add(each)
    return histogram.view()


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


def test_nothing_measured_has_no_quantile() -> None:
    view = Histogram().view()
    assert (view, view.count, view.quantile(0.5)) == (HistogramView(), 0, None)


def test_a_time_is_counted_up_to_and_with_its_bound() -> None:
    view = measured(0.0, 0.005, 0.0051, 3600, 3600.1)
    assert (view.counts[0], view.counts[1], view.counts[-2], view.counts[-1]) == (2, 1, 1, 1)
    assert view.count == 5
    assert view.total_s == pytest.approx(7200.1101)


@pytest.mark.parametrize(
    ("share", "bound"),
    [(0, None), (0.1, 0.005), (0.5, 0.1), (0.75, 1), (0.76, LONGER), (1, LONGER)],
)
def test_a_quantile_is_a_bound_that_this_share_does_not_exceed(
    share: float, bound: float | None
) -> None:
    assert measured(0.001, 0.1, 0.9, 7000).quantile(share) == bound


@given(st.lists(st.floats(0, 10_000), min_size=1), st.sampled_from([0.25, 0.5, 0.9, 0.99, 1.0]))
def test_at_least_the_share_lies_within_the_quantile(times: list[float], share: float) -> None:
    bound = measured(*times).quantile(share)
    assert bound is not None
    assert sum(seconds <= bound for seconds in times) >= share * len(times)
    smaller = [other for other in (0.0, *BOUNDS_S) if other < bound]
    if bound != BOUNDS_S[0]:
        assert sum(seconds <= smaller[-1] for seconds in times) < share * len(times)
