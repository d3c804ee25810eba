"""All nodes read the clock of their database (SPEC NODE-1, docs/adr/0020)."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.time.clocks import SharedClock, SystemClock, steady_s
from goclaw_py.testing.clock import START


@dataclass
class Machine:
    """A machine whose clock is ``ahead_s`` of the right time, and can be set."""

    ahead_s: float = 0.0
    passed_s: float = 0.0
    shared: SharedClock = field(init=False)

    def __post_init__(self) -> None:
        self.shared = SharedClock(self, lambda: 1_000 + self.passed_s)

    def now(self) -> datetime:
        """What the machine's own clock shows."""
        return self.right() + timedelta(seconds=self.ahead_s)

    def right(self) -> datetime:
        """What time it is."""
        return START + timedelta(seconds=self.passed_s)

    def read(self, *, off_s: float = 0.0, took_s: float = 0.0, way: float = 0.5) -> bool:
        """Ask the database, whose clock is ``off_s`` wrong.

        The answer takes ``took_s``, and ``way`` of that is the way there.
        """
        begun_s = self.shared.begin()
        self.passed_s += took_s * way
        there = self.right() + timedelta(seconds=off_s)
        self.passed_s += took_s * (1 - way)
        return self.shared.read(there, begun_s)

    def error_s(self) -> float:
        """How wrong the shared clock is."""
        return (self.shared.now() - self.right()).total_seconds()


def test_before_the_first_reading_it_is_the_machines_clock() -> None:
    assert Machine(ahead_s=300).error_s() == 300


@pytest.mark.parametrize("ahead_s", [300.0, -300.0, 0.5])
def test_a_wrong_clock_is_put_right(ahead_s: float) -> None:
    machine = Machine(ahead_s)
    assert not machine.read()
    machine.passed_s += 3
    assert machine.error_s() == 0
    assert machine.shared.skew_s == ahead_s


def test_setting_the_machines_clock_changes_nothing() -> None:
    machine = Machine()
    machine.read()
    machine.ahead_s = 3600
    machine.passed_s += 2.5
    assert machine.error_s() == 0
    assert machine.shared.skew_s == 3600


def test_an_operator_is_told_once_for_each_time_that_a_clock_is_off(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    machine = Machine(ahead_s=-301)
    for _ in range(3):
        machine.read()
    (record,) = caplog.records
    words = f"the clock of this machine {machine.shared.warning()}"
    assert (record.message, vars(record)["warning"]) == ("clock_skew", words)
    assert "5 min 1 s behind the database's" in vars(record)["warning"]
    machine.ahead_s = 0
    machine.read()
    assert machine.shared.warning() is None
    machine.ahead_s = 10
    machine.read()
    assert len(caplog.records) == 2


def test_a_jump_of_the_databases_clock_is_told_apart_from_a_slow_answer() -> None:
    machine = Machine()
    assert not machine.read()
    assert not machine.read(took_s=8)
    assert not machine.read(off_s=1)
    assert machine.read(off_s=300)
    assert machine.error_s() == pytest.approx(300)


@given(
    ahead_s=st.floats(-86_400, 86_400),
    readings=st.lists(
        st.tuples(st.floats(0, 30), st.floats(0, 1), st.floats(0, 60)), min_size=1, max_size=8
    ),
)
def test_it_is_never_further_off_than_half_of_what_the_quickest_answer_took(
    ahead_s: float, readings: list[tuple[float, float, float]]
) -> None:
    """However its time is split between there and back."""
    machine = Machine(ahead_s)
    for number, (took_s, way, rest_s) in enumerate(readings, start=1):
        machine.read(took_s=took_s, way=way)
        machine.passed_s += rest_s
        quickest_s = min(took_s for took_s, _, _ in readings[:number])
        assert abs(machine.error_s()) <= quickest_s / 2 + 0.001


def test_the_steady_clock_goes_on() -> None:
    first = steady_s()
    assert steady_s() >= first
    assert abs((SharedClock().now() - SystemClock().now()).total_seconds()) < 60
