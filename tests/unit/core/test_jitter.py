"""By how much heartbeats are spread (SPEC HB-1); for jobs see ``test_schedule``."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest

from goclaw_py.core.ids import AgentName
from goclaw_py.schedule.jitter import MAX_OFFSET, heartbeat_offset

SECOND = timedelta(seconds=1)
MILLISECOND = timedelta(milliseconds=1)
MANY = [AgentName(f"agent-{number}") for number in range(1000)]


@pytest.mark.parametrize(
    "interval", [SECOND, timedelta(seconds=90), MAX_OFFSET, timedelta(days=366)]
)
def test_an_offset_is_below_the_interval_and_five_minutes(interval: timedelta) -> None:
    offsets = [heartbeat_offset(agent, interval) for agent in MANY]
    span = min(interval, timedelta(minutes=5))
    assert all(timedelta() <= offset < span for offset in offsets)
    assert all(not offset % MILLISECOND for offset in offsets)


def test_offsets_fill_the_time_evenly() -> None:
    parts = [heartbeat_offset(agent, timedelta(minutes=30)) * 10 // MAX_OFFSET for agent in MANY]
    assert all(60 < parts.count(part) < 140 for part in range(10))


def test_an_offset_does_not_change_with_longer_intervals() -> None:
    main = AgentName("main")
    assert heartbeat_offset(main, MAX_OFFSET) == heartbeat_offset(main, timedelta(hours=2))


@pytest.mark.parametrize(
    ("agent", "expected"), [("main", timedelta(seconds=287.624)), ("b", timedelta(seconds=44.785))]
)
def test_an_offset_is_the_same_in_every_release(agent: str, expected: timedelta) -> None:
    """Otherwise the grid would move with an update."""
    assert heartbeat_offset(AgentName(agent), timedelta(minutes=30)) == expected


@pytest.mark.real_time
def test_an_offset_is_the_same_in_every_process() -> None:
    """Python's own hash of a text is another one in each."""
    code = (
        "from datetime import timedelta; from goclaw_py.schedule.jitter import heartbeat_offset; "
        "print(heartbeat_offset('main', timedelta(hours=1)) // timedelta(milliseconds=1))"
    )
    seeds = ("1", "2")
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in seeds
    }
    assert said == {"287624\n"}
