"""A slow wait is told once, in the log, with who occupies the lane (SPEC LANE-7)."""

from __future__ import annotations

import asyncio
import logging

import pytest

from goclaw_py.model.ids import MAIN_LANE, RunId, SessionKey
from goclaw_py.model.outcomes import Ending
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.models import Request
from goclaw_py.scheduler.scheduler import RunScheduler


class Host:
    """Its runs never end."""

    async def work(self, run_id: RunId) -> None:
        await asyncio.Event().wait()

    async def record(self, ended: Ending, error: BaseException | None) -> None: ...

    def joined(self, request_id: RunId, into: RunId) -> None: ...

    def offered(self, request_id: RunId, run_id: RunId) -> None: ...


async def warnings_of(
    caplog: pytest.LogCaptureFixture, *, lane: int, runs: int
) -> list[logging.LogRecord]:
    """What is logged while so many wait for 60 s."""
    dispatcher = Dispatcher(RunScheduler({MAIN_LANE: lane}), Host())
    for number in range(runs):
        dispatcher.submit(Request(RunId(f"r{number}"), SessionKey(f"s{number}")))
    await asyncio.sleep(60)
    dispatcher.interrupt()
    await asyncio.sleep(1)
    return [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_one_line_names_who_waits_and_who_is_in_the_lane(
    caplog: pytest.LogCaptureFixture,
) -> None:
    (record,) = await warnings_of(caplog, lane=2, runs=3)
    assert record.getMessage() == "lane_wait_slow"
    facts = vars(record)
    assert facts["waited_s"] == 2.0
    assert (facts["run_id"], facts["session"], facts["lane"]) == ("r2", "s2", "main")
    assert (facts["concurrency"], facts["active"], facts["waiting"]) == (2, 2, 1)
    assert facts["occupants"] == ["r0 (s0)", "r1 (s1)"]


async def test_a_line_stays_short_however_large_the_lane_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    (record,) = await warnings_of(caplog, lane=200, runs=201)
    facts = vars(record)
    assert facts["active"] == 200
    assert len(facts["occupants"]) == 10
