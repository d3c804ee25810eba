"""Heartbeat runs come when they are due, however many there are (SPEC HB-1)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from goclaw_py.heartbeat.active_hours import read_hours
from goclaw_py.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.model.ids import MAIN_AGENT, AgentName
from goclaw_py.testing.agents import Stream
from tests.support.harness import a_process
from tests.support.heartbeat_gateway import heartbeat_gateway, log_of, saying, until_ended, write

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("interval", [SECOND, timedelta(seconds=1.7), timedelta(seconds=90)])
@pytest.mark.parametrize("works_s", [0.1, 0.9, 1.5])
async def test_no_heartbeat_run_is_slept_past(interval: timedelta, works_s: float) -> None:
    """The loop does not see the next one as long as one is in hand."""
    agent = saying(Stream(("HEARTBEAT_OK",), every_s=works_s))
    ways = heartbeat_gateway(interval=interval, offset=timedelta(seconds=0.3))
    async with a_process(agent, ways) as gateway:
        write(gateway)
        await until_ended(gateway, 5)
        rows = (await log_of(gateway))[:5]
    late = [row.claimed_at - row.due_at for row in rows]
    # One that was still at work when the next was due makes that one late, and nothing else does.
    most = max(timedelta(seconds=works_s) - interval, timedelta())
    assert max(late) <= most + timedelta(seconds=0.1)


async def test_all_that_is_due_at_once_is_claimed_at_once() -> None:
    """Each in a row of its own; more than one claim takes."""
    names = [AgentName(f"agent-{number}") for number in range(250)]
    asleep = HeartbeatPolicy(hours=read_hours("03:00", "03:01", "UTC"))
    async with a_process(saying("HEARTBEAT_OK"), heartbeat_gateway(asleep, *names)) as gateway:
        await until_ended(gateway, 1)
        rows = await gateway.store.heartbeat_runs(limit=300)
    assert {row.agent for row in rows} == {MAIN_AGENT, *names}
    assert {row.outcome for row in rows} == {"skipped:quiet_hours"}
    assert len(rows) == 251
    assert all(row.claimed_at - row.due_at < timedelta(seconds=0.1) for row in rows)
