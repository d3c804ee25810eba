"""Heartbeat runs of processes that die, end, or work beside each other.

SPEC HB-1, HB-9, HB-12, CRON-20, HB-7, HB-11, IO-2, QUEUE-11.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.model.ids import MAIN_AGENT, AgentName
from goclaw_py.model.outcomes import HeartbeatRunKind, Outcome
from goclaw_py.store.memory import MemoryDatabase
from goclaw_py.testing.agents import Block, Ignore
from goclaw_py.testing.channel import RecordingChannel
from tests.support.again import SENT_AGAIN
from tests.support.harness import a_process, until
from tests.support.heartbeat_gateway import (
    EVERY,
    after,
    asked,
    heartbeat_gateway,
    log_of,
    outcomes,
    saying,
    until_ended,
    write,
)
from tests.support.jobs import OPERATOR, Wanted, at, make, service

ALERT = "The meeting with Ann begins in ten minutes."


async def test_one_heartbeat_run_over_any_number_of_processes() -> None:
    database = MemoryDatabase()
    async with (
        a_process(saying("HEARTBEAT_OK"), heartbeat_gateway(), database=database) as first,
        a_process(saying("HEARTBEAT_OK"), heartbeat_gateway(), database=database) as second,
    ):
        write(first)
        write(second)
        log = await until_ended(first, 4)
        assert len(asked(first)) + len(asked(second)) == 4
        assert [heartbeat_run.due_at for heartbeat_run in log] == [
            after(60) + n * EVERY for n in range(4)
        ]


async def test_what_one_process_has_told_the_others_do_not_tell_again() -> None:
    database = MemoryDatabase()
    channel = RecordingChannel()
    async with a_process(saying(ALERT), heartbeat_gateway(), database=database) as first:
        write(first)
        await first.ask("hello")
        await until_ended(first, 1)
        await first.channel.until_sent(2)
        await first.shut_down()
    ways = heartbeat_gateway()
    async with a_process(saying(ALERT), ways, database=database, channels=(channel,)) as second:
        write(second)
        await until_ended(second, 2)
        await asyncio.sleep(10)
        assert await outcomes(second) == ["alerted", "duplicate"]
        assert channel.texts() == []


async def test_a_restart_keeps_the_grid() -> None:
    database = MemoryDatabase()
    async with a_process(saying("HEARTBEAT_OK"), heartbeat_gateway(), database=database) as first:
        write(first)
        await until_ended(first, 1)
        await first.shut_down()
    await asyncio.sleep(2 * EVERY.total_seconds())
    async with a_process(saying("HEARTBEAT_OK"), heartbeat_gateway(), database=database) as second:
        write(second)
        log = await until_ended(second, 3)
        # One for all that were missed, then the grid again.
        assert [heartbeat_run.due_at for heartbeat_run in log] == [
            after(60),
            after(60) + EVERY,
            after(60) + 3 * EVERY,
        ]


async def test_a_heartbeat_run_whose_process_dies_while_its_agent_works_is_lost() -> None:
    """SPEC HB-9: it is not repeated, and the next one comes in time."""
    database = MemoryDatabase()
    async with a_process(saying(Block()), heartbeat_gateway(), database=database) as first:
        write(first)
        await first.scripted.until_active(1)
        async with a_process(
            saying("HEARTBEAT_OK"), heartbeat_gateway(), database=database
        ) as second:
            write(second)
            first.kill()
            await until_ended(second, 2)
            assert await outcomes(second) == ["lost", "ok"]


async def test_a_heartbeat_run_that_waited_for_its_agent_goes_to_the_next_process() -> None:
    """SPEC HB-4, HB-9: in its row."""
    database = MemoryDatabase()
    agent = saying("HEARTBEAT_OK")
    agent.script = (Block("done"),)
    async with a_process(agent, heartbeat_gateway(), database=database) as first:
        write(first)
        await first.say("think about it")
        await asyncio.sleep(100)
        (deferred,) = await log_of(first)
        assert deferred.outcome == "deferred"
        first.kill()
    await asyncio.sleep(30)
    async with a_process(saying("HEARTBEAT_OK"), heartbeat_gateway(), database=database) as second:
        write(second)
        ended = await until_ended(second, 1)
        assert [(heartbeat_run.id, heartbeat_run.outcome) for heartbeat_run in ended] == [
            (deferred.id, "ok")
        ]


async def test_an_alert_whose_process_dies_before_it_is_sent_is_sent_once() -> None:
    database = MemoryDatabase()
    channel = RecordingChannel()
    async with a_process(saying(ALERT), heartbeat_gateway(), database=database) as first:
        write(first)
        await first.ask("hello")
        first.channel.block("ann")
        await until_ended(first, 1)
        await asyncio.sleep(1)
        first.kill()
    ways = heartbeat_gateway()
    async with a_process(saying(ALERT), ways, database=database, channels=(channel,)) as second:
        write(second)
        await until_ended(second, 2)
        await asyncio.sleep(60)
        assert channel.texts() == [ALERT + SENT_AGAIN]
        assert await outcomes(second) == ["alerted", "duplicate"]


async def test_a_shutdown_gives_a_heartbeat_run_to_the_next_process() -> None:
    database = MemoryDatabase()
    async with a_process(saying(Block()), heartbeat_gateway(), database=database) as first:
        write(first)
        await until(lambda: bool(asked(first)))
        await first.shut_down(wait_s=1)
        (heartbeat_run,) = await log_of(first)
        assert heartbeat_run.outcome == "deferred"
    async with a_process(saying("HEARTBEAT_OK"), heartbeat_gateway(), database=database) as second:
        write(second)
        ended = await until_ended(second, 1)
        assert [(one.id, one.outcome) for one in ended] == [(heartbeat_run.id, "ok")]


async def test_a_shutdown_does_not_wait_for_a_busy_agent() -> None:
    agent = saying("HEARTBEAT_OK")
    agent.script = (Ignore(for_s=2),)
    async with a_process(agent, heartbeat_gateway()) as gateway:
        write(gateway)
        await gateway.say("think about it")
        await asyncio.sleep(70)
        begin = asyncio.get_running_loop().time()
        await gateway.shut_down(wait_s=1)
        assert asyncio.get_running_loop().time() - begin < 10


async def test_a_begin_that_is_stored_behind_a_stop_leaves_no_run_open() -> None:
    """SPEC HB-9: the next heartbeat run has the same conversation."""
    agent = saying("HEARTBEAT_OK")
    async with a_process(agent, heartbeat_gateway()) as gateway:
        write(gateway)
        gateway.store.on_its_way_s["begin_run"] = 5
        await until(lambda: gateway.store.calls["begin_run"] > 0)
        gateway.store.on_its_way_s.clear()
        gateway.store.slow_before_s["end_heartbeat_run"] = 10
        (run,) = gateway.container.dispatcher.runs()
        await gateway.control.stop(run.session, everything=False)
        await asyncio.sleep(60)
        assert await outcomes(gateway) == ["cancelled"]
        (stored,) = gateway.database.runs.values()
        assert stored.end is not None
        assert stored.end.outcome is Outcome.CANCELLED
        assert asked(gateway) == []


async def test_a_stopped_heartbeat_run_is_cancelled_and_not_tried_again() -> None:
    async with a_process(saying(Block()), heartbeat_gateway()) as gateway:
        write(gateway)
        await until(lambda: bool(asked(gateway)))
        await gateway.control.stop(asked(gateway)[0].session, everything=False)
        await until_ended(gateway, 1)
        assert await outcomes(gateway) == ["cancelled"]


async def test_a_process_leaves_agents_alone_that_it_does_not_know() -> None:
    database = MemoryDatabase()
    other = AgentName("other")
    ways = heartbeat_gateway(None, other)
    helper = saying("HEARTBEAT_OK")
    async with (
        a_process(saying("HEARTBEAT_OK"), heartbeat_gateway(), database=database) as first,
        a_process(
            saying("HEARTBEAT_OK"), ways, database=database, others={other: helper}
        ) as second,
    ):
        write(first)
        write(second)
        await until_ended(second, 1)
        await asyncio.sleep(10)
        assert len(await log_of(second, other)) == 1
        assert len(helper.requests) == 1
        assert all(one.agent == MAIN_AGENT for one in first.scripted.requests)


async def test_a_job_that_says_so_wakes_the_heart() -> None:
    async with a_process(saying("HEARTBEAT_OK"), heartbeat_gateway()) as gateway:
        write(gateway)
        await asyncio.sleep(1)
        job = await make(gateway, Wanted(at(10)))
        assert not job.spec.wake_heartbeat
        draft = replace(Wanted(at(20), slug="waking").draft(), wake_heartbeat=True)
        await service(gateway).create(draft, OPERATOR)
        ended = await until_ended(gateway, 2)
        assert [heartbeat_run.kind for heartbeat_run in ended] == [
            HeartbeatRunKind.JOB,
            HeartbeatRunKind.INTERVAL,
        ]
        assert after(20) <= ended[0].claimed_at < after(22)


async def test_no_more_than_five_wakes_come_in_a_minute() -> None:
    """SPEC HB-11: over one process; the others wait, and come."""
    names = [AgentName(f"agent{number}") for number in range(7)]
    agent = saying("HEARTBEAT_OK")
    async with a_process(
        agent,
        heartbeat_gateway(None, *names, offset=timedelta(hours=1)),
        others=dict.fromkeys(names, agent),
    ) as gateway:
        await asyncio.sleep(1)
        for name in names:
            await gateway.container.heartbeats.service.add_event(name, "fire", wake=True)
        await asyncio.sleep(10)
        assert len(agent.requests) == 5
        view = await gateway.container.heartbeats.service.view(names[-1])
        assert view.wake_from is not None
        await asyncio.sleep(60)
        assert len(agent.requests) == 7


async def test_a_heartbeat_run_that_is_given_to_others_while_it_is_deferred_is_no_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SPEC HB-12: the answer to a claim that was given up comes late."""
    database = MemoryDatabase()
    agent = saying("HEARTBEAT_OK")
    agent.script = (Block("done"),)
    async with a_process(agent, heartbeat_gateway(), database=database) as gateway:
        write(gateway)
        await gateway.say("think about it")
        gateway.store.slow_before_s["defer_heartbeat"] = 2
        await until(lambda: gateway.store.calls["defer_heartbeat"] == 1)
        (row,) = database.heartbeat_runs.rows.values()
        database.heartbeat_runs.rows[row.id] = replace(row, node=None)
        await asyncio.sleep(10)
        assert [line.levelname for line in caplog.records if line.levelname == "ERROR"] == []
        assert database.heartbeat_runs.rows[row.id].status is row.status
