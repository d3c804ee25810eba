"""A model or a person asks for schedules that are bombs (SPEC CRON-1, CRON-2, CRON-15).

Promised: each is refused with a sentence, after little work, and an owner has a limited number of
jobs. Tried: expressions and names of a megabyte, numbers and steps without end, nested and repeated
ranges, days that no calendar has, years of five digits, intervals of nanoseconds and of ages, jobs
of every second, 10,000 jobs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from goclaw_py.core.errors import ToolFailed
from goclaw_py.records import JobQuery
from tests.support.schedules import BOB, OPERATORS, Schedules

MB = 1_000_000
MOST_CALLS = 50_000
"""The work for one request: calls of functions. To print 1 MB a character at a time takes more."""
LONGEST_SENTENCE = 2_000

DAILY = {"cadence_type": "cron", "cadence_value": "0 9 * * *"}

BOMBS: dict[str, dict[str, str]] = {
    "an expression of 1 MB": {"cadence_type": "cron", "cadence_value": "*" * MB},
    "500,000 fields": {"cadence_type": "cron", "cadence_value": "* " * (MB // 2)},
    "500,000 terms": {"cadence_type": "cron", "cadence_value": "1," * (MB // 2) + "1 * * * *"},
    "a number of 200 digits": {"cadence_type": "cron", "cadence_value": f"{'9' * 200} * * * *"},
    "a number of 1 MB": {"cadence_type": "cron", "cadence_value": f"{'9' * MB} * * * *"},
    "a range without end": {"cadence_type": "cron", "cadence_value": "0 0 1-99999999 * *"},
    "a step of nothing": {"cadence_type": "cron", "cadence_value": "*/0 * * * *"},
    "a nested range": {"cadence_type": "cron", "cadence_value": "1-5-9/2/3 * * * *"},
    "ranges, repeated": {"cadence_type": "cron", "cadence_value": "0-59," * 100 + "1 * * * *"},
    "no day of any year": {"cadence_type": "cron", "cadence_value": "0 0 30 2 *"},
    "no weekday of any month": {"cadence_type": "cron", "cadence_value": "0 0 * * 1#6"},
    "a name with a duration": {"cadence_type": "cron", "cadence_value": "@every 1ns"},
    "every nanosecond": {"cadence_type": "interval", "cadence_value": "0.000000001"},
    "every nanosecond in words": {"cadence_type": "interval", "cadence_value": "1ns"},
    "every 10^18 hours": {"cadence_type": "interval", "cadence_value": f"{10**18}h"},
    "every 10^18 seconds": {"cadence_type": "interval", "cadence_value": f"{10**18}"},
    "an interval of 1 MB": {"cadence_type": "interval", "cadence_value": "9" * MB},
    "no number": {"cadence_type": "interval", "cadence_value": "NaN"},
    "the year 99999": {"cadence_type": "once", "cadence_value": "99999-01-01T00:00:00Z"},
    "the last day": {"cadence_type": "once", "cadence_value": "9999-12-31T23:59:59-23:59"},
    "in 10^18 hours": {"cadence_type": "once", "cadence_value": f"in {10**18}h"},
    "a moment of 1 MB": {"cadence_type": "once", "cadence_value": "2" * MB},
    "a zone of 1 MB": DAILY | {"timezone": "A" * MB},
    "a zone that is a path": DAILY | {"timezone": "../" * (MB // 3)},
    "a zone beyond the world": DAILY | {"timezone": f"UTC+{10**18}"},
}


class Calls:
    """Counts the calls of functions, also of those in C."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Calls:
        self._before = sys.getprofile()
        sys.setprofile(self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)

    def _hear(self, _frame: FrameType, event: str, _argument: Any) -> None:
        self.count += event in {"call", "c_call"}


@pytest.mark.parametrize("bomb", BOMBS)
async def test_a_bomb_is_refused_with_a_sentence_after_little_work(
    tmp_path: Path, bomb: str
) -> None:
    schedules = Schedules(tmp_path)
    with pytest.raises(ToolFailed):
        await schedules.create(cadence_type="cron", cadence_value="no")  # what is loaded once
    with Calls() as calls, pytest.raises(ToolFailed) as refused:
        await schedules.create(**BOMBS[bomb])
    assert 10 < len(str(refused.value)) < LONGEST_SENTENCE
    assert calls.count < MOST_CALLS
    assert await schedules.stored() == 0


@pytest.mark.parametrize("tool", ["edit", "search"])
@pytest.mark.parametrize("bomb", ["an expression of 1 MB", "a zone of 1 MB", "the year 99999"])
async def test_a_bomb_changes_no_job_and_finds_none(tmp_path: Path, tool: str, bomb: str) -> None:
    schedules = Schedules(tmp_path)
    made = await schedules.create()
    arguments = BOMBS[bomb] | ({"schedule_id": made["schedule_id"]} if tool == "edit" else {})
    with pytest.raises(ToolFailed) as refused:
        await schedules.call(tool, **arguments)
    assert len(str(refused.value)) < LONGEST_SENTENCE
    assert await schedules.stored() == 1


async def test_a_zone_that_a_schedule_does_not_need_is_not_stored(tmp_path: Path) -> None:
    schedules = Schedules(tmp_path)
    await schedules.create(timezone="A" * MB)
    (job,) = (await schedules.service.search(JobQuery(), OPERATORS)).jobs
    assert len(str(job)) < LONGEST_SENTENCE


@pytest.mark.slow
async def test_an_owner_has_a_limited_number_of_jobs(tmp_path: Path) -> None:
    """And takes nothing from others. Every second is too often for a model, too."""
    schedules = Schedules(tmp_path)
    second = {"cadence_type": "cron", "cadence_value": "*/1 * * * * *"}
    for _ in range(20):
        with pytest.raises(ToolFailed):
            await schedules.create(**second)
    refused = 0
    for number in range(10_000):
        try:
            await schedules.create(name=f"job {number}")
        except ToolFailed:
            refused += 1
    assert await schedules.stored() == 10_000 - refused == schedules.most
    await schedules.create(owner=BOB)
    assert await schedules.stored() == schedules.most + 1
