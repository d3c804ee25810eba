"""Whatever happens, to processes too, the next heartbeat run comes, and in time.

SPEC HB-1, HB-7, HB-9 to HB-12, CRON-20, DB-4, IO-2, QUEUE-11.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.core.errors import AgentError
from goclaw_py.core.ids import MAIN_AGENT, AgentName
from goclaw_py.core.outcomes import HeartbeatRunKind, Outcome
from goclaw_py.schedule.heartbeat.active_hours import read_hours
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.schedule.heartbeat.poller import WAKES, WakeLimit
from goclaw_py.testing.agents import Block, Fail, Ignore, Stream
from goclaw_py.testing.channel import RecordingChannel
from tests.support.again import SENT_AGAIN
from tests.support.harness import a_process, until
from tests.support.heartbeat_gateway import (
    EVERY,
    after,
    asked,
    beating,
    busy,
    heartbeat_gateway,
    log_of,
    outcomes,
    saying,
    until_ended,
    write,
)
from tests.support.jobs import OPERATOR, Wanted, at, make, service
from tests.support.memory_store import MemoryDatabase

ALERT = "The meeting with Ann begins in ten minutes."


async def test_one_heartbeat_run_over_any_number_of_processes() -> None:
    database = MemoryDatabase()
    async with (
        beating(database=database, spoken_by=None) as first,
        beating(database=database, spoken_by=None) as second,
    ):
        log = await until_ended(first, 4)
        assert len(asked(first)) + len(asked(second)) == 4
        assert [row.due_at for row in log] == [after(60) + n * EVERY for n in range(4)]


@pytest.mark.parametrize("told", [True, False], ids=["told", "killed before it was sent"])
async def test_what_one_process_says_the_others_do_not_say_again(told: bool) -> None:
    """SPEC HB-7, IO-2."""
    database, channel = MemoryDatabase(), RecordingChannel()
    async with beating(ALERT, database=database) as first:
        if not told:
            first.channel.block("ann")
        await until_ended(first, 1)
        await asyncio.sleep(1)
        await first.shut_down() if told else first.kill()
    async with beating(ALERT, database=database, channel=channel, spoken_by=None) as second:
        await until_ended(second, 2)
        await asyncio.sleep(60)
        assert await outcomes(second) == ["alerted", "duplicate"]
        assert channel.texts() == ([] if told else [ALERT + SENT_AGAIN])


async def test_a_heartbeat_run_whose_process_dies_while_its_agent_works_is_lost() -> None:
    """SPEC HB-9: it is not repeated, and the next one comes in time."""
    database = MemoryDatabase()
    async with beating(Block(), database=database, spoken_by=None) as first:
        await first.scripted.until_active(1)
        async with beating(database=database, spoken_by=None) as second:
            first.kill()
            await until_ended(second, 2)
            assert await outcomes(second) == ["lost", "ok"]


async def test_a_heartbeat_run_that_waited_for_its_agent_goes_to_the_next_process() -> None:
    """SPEC HB-4, HB-9: in its row."""
    database = MemoryDatabase()
    async with busy(database=database) as first:
        await asyncio.sleep(100)
        (deferred,) = await log_of(first)
        assert deferred.outcome == "deferred"
        first.kill()
    await asyncio.sleep(30)
    async with beating(database=database, spoken_by=None) as second:
        ended = await until_ended(second, 1)
        assert [(row.id, row.outcome) for row in ended] == [(deferred.id, "ok")]


async def test_a_shutdown_gives_a_heartbeat_run_to_the_next_process() -> None:
    database = MemoryDatabase()
    async with beating(Block(), database=database, spoken_by=None) as first:
        await until(lambda: bool(asked(first)))
        await first.shut_down(wait_s=1)
        (row,) = await log_of(first)
        assert row.outcome == "deferred"
    async with beating(database=database, spoken_by=None) as second:
        ended = await until_ended(second, 1)
        assert [(one.id, one.outcome) for one in ended] == [(row.id, "ok")]


async def test_a_shutdown_does_not_wait_for_a_busy_agent() -> None:
    async with busy(Ignore(for_s=2)) as gateway:
        await asyncio.sleep(70)
        begin = asyncio.get_running_loop().time()
        await gateway.shut_down(wait_s=1)
        assert asyncio.get_running_loop().time() - begin < 10


async def test_a_begin_stored_behind_a_stop_leaves_no_run_open() -> None:
    """SPEC HB-9: the next heartbeat run has the same conversation."""
    async with beating(spoken_by=None) as gateway:
        gateway.store.on_its_way_s["begin_run"] = 5
        await until(lambda: gateway.store.calls["begin_run"] > 0)
        gateway.store.on_its_way_s.clear()
        gateway.store.slow_before_s["end_heartbeat_run"] = 10
        (run,) = gateway.container.dispatcher.runs()
        await gateway.control.sessions.stop(run.session, everything=False)
        await asyncio.sleep(60)
        assert await outcomes(gateway) == ["cancelled"]
        (stored,) = gateway.database.runs.values()
        assert stored.end is not None
        assert stored.end.outcome is Outcome.CANCELLED
        assert asked(gateway) == []


async def test_a_stopped_heartbeat_run_is_cancelled_and_not_tried_again() -> None:
    async with beating(Block(), spoken_by=None) as gateway:
        await until(lambda: bool(asked(gateway)))
        await gateway.control.sessions.stop(asked(gateway)[0].session, everything=False)
        await until_ended(gateway, 1)
        assert await outcomes(gateway) == ["cancelled"]


async def test_a_process_leaves_agents_alone_that_it_does_not_know() -> None:
    database, other, helper = MemoryDatabase(), AgentName("other"), saying("HEARTBEAT_OK")
    ways, main = heartbeat_gateway(None, other), saying("HEARTBEAT_OK")
    async with (
        beating(database=database, spoken_by=None) as first,
        a_process(main, ways, database=database, others={other: helper}) as second,
    ):
        write(second)
        await until_ended(second, 1)
        await asyncio.sleep(10)
        assert len(await log_of(second, other)) == 1
        assert len(helper.requests) == 1
        assert all(one.agent == MAIN_AGENT for one in first.scripted.requests)


async def test_a_job_that_says_so_wakes_the_heartbeat() -> None:
    async with beating(spoken_by=None) as gateway:
        await asyncio.sleep(1)
        job = await make(gateway, Wanted(at(10)))
        assert not job.spec.wake_heartbeat
        draft = replace(Wanted(at(20), slug="waking").draft(), wake_heartbeat=True)
        await service(gateway).create(draft, OPERATOR)
        first, second = await until_ended(gateway, 2)
        assert (first.kind, second.kind) == (HeartbeatRunKind.JOB, HeartbeatRunKind.INTERVAL)
        assert after(20) <= first.claimed_at < after(22)


async def test_no_more_than_five_wakes_come_in_a_minute() -> None:
    """SPEC HB-11: over one process; the others wait, and come."""
    names = [AgentName(f"agent{number}") for number in range(7)]
    agent = saying("HEARTBEAT_OK")
    ways = heartbeat_gateway(None, *names, offset=timedelta(hours=1))
    async with a_process(agent, ways, others=dict.fromkeys(names, agent)) as gateway:
        await asyncio.sleep(1)
        for name in names:
            await gateway.container.heartbeats.service.add_event(name, "fire", now=True)
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
    async with busy(database=database) as gateway:
        gateway.store.slow_before_s["defer_heartbeat"] = 2
        await until(lambda: gateway.store.calls["defer_heartbeat"] == 1)
        (row,) = database.heartbeat_runs.rows.values()
        database.heartbeat_runs.rows[row.id] = replace(row, node=None)
        await asyncio.sleep(10)
        assert [line.levelname for line in caplog.records if line.levelname == "ERROR"] == []
        assert database.heartbeat_runs.rows[row.id].status is row.status


BROKEN = Fail(AgentError("Sorry.", "503", retryable=True))


async def test_a_claim_whose_answer_was_lost_is_released_however_long_the_outage() -> None:
    async with beating(spoken_by=None) as gateway:
        await asyncio.sleep(30)
        gateway.store.lose_answer["claim_heartbeats"] = 1
        await until(lambda: gateway.store.calls["claim_heartbeats"] > 0)
        gateway.store.away = True
        await asyncio.sleep(120)
        gateway.store.away = False
        await until_ended(gateway, 3)
        assert await outcomes(gateway) == ["ok"] * 3


async def test_a_heartbeat_run_by_hand_is_carried_out_though_nobody_waits_for_it_any_more() -> None:
    async with beating(spoken_by=None) as gateway:
        await asyncio.sleep(10)
        gateway.store.slow_after_s["claim_heartbeat_now"] = 1.0
        asking = asyncio.ensure_future(gateway.container.heartbeats.service.run_now(MAIN_AGENT))
        await asyncio.sleep(0.5)
        asking.cancel()
        await until_ended(gateway, 2)
        assert await outcomes(gateway) == ["ok", "ok"]


async def test_an_attempt_whose_end_cannot_be_stored_is_followed_by_the_next() -> None:
    async with beating(BROKEN, "HEARTBEAT_OK", spoken_by=None) as gateway:
        gateway.store.errors["finish_run"] = ValueError("a bug")
        (row,) = await until_ended(gateway, 1)
        assert (row.outcome, row.attempts) == ("ok", 2)


async def test_a_heartbeat_run_that_waits_for_its_lane_heeds_what_people_say_meanwhile() -> None:
    other = AgentName("other")
    blocker = saying(Block("done"))
    async with a_process(
        saying(ALERT), heartbeat_gateway(None, other), others={other: blocker}
    ) as gateway:
        write(gateway)
        await gateway.ask("hello")
        await gateway.container.heartbeats.service.run_now(other)
        await until(lambda: bool(blocker.active))
        await asyncio.sleep(70)
        await gateway.container.heartbeats.service.switch(MAIN_AGENT, on=False)
        await gateway.control.sessions.stop(blocker.requests[0].session, everything=False)
        await until_ended(gateway, 1)
        assert await outcomes(gateway) == ["skipped:disabled"]
        assert asked(gateway) == []


async def test_a_heartbeat_run_that_waited_until_the_next_was_due_is_that_one_too() -> None:
    """SPEC HB-4: one row, which becomes the final one."""
    async with busy() as gateway:
        await asyncio.sleep(60 + EVERY.total_seconds() + 10)
        await gateway.control.sessions.stop(gateway.scripted.requests[0].session, everything=False)
        await until_ended(gateway, 2)
        due = [row.due_at for row in await log_of(gateway)]
        assert due == [after(60), after(60) + 2 * EVERY]


@pytest.mark.slow
async def test_owners_are_told_of_each_series_of_failures() -> None:
    """SPEC HB-10: also if the end of the one before could not be noted at first."""
    failing = Fail(AgentError("Sorry.", "no key"))
    replies = (failing, failing, failing, "HEARTBEAT_OK", failing)
    async with beating(*replies) as gateway:
        await until_ended(gateway, 3)
        gateway.store.broken.add("close_incident")
        await until_ended(gateway, 4)
        await asyncio.sleep(20)
        gateway.store.broken.clear()
        await until_ended(gateway, 9)
        await asyncio.sleep(20)
        told = [text for text in gateway.channel.texts() if "three times" in text]
        assert len(told) == 2


async def test_a_clock_that_was_wrong_for_a_moment_stops_no_heartbeat_for_years() -> None:
    database = MemoryDatabase()
    wrong = timedelta(days=2000)
    async with beating(database=database, spoken_by=None) as first:
        await asyncio.sleep(30)
        first.clock.advance(wrong)
        await until_ended(first, 1)
        first.clock.advance(-wrong)
        await first.shut_down()
    async with beating(database=database, spoken_by=None) as second:
        await until_ended(second, 3)
        due = [row.due_at for row in await log_of(second)]
        assert min(due) < after(3600)


async def test_heartbeat_runs_that_others_had_begun_make_no_debt_of_wakes() -> None:
    limit = WakeLimit()
    limit.count(WAKES - 1)
    assert limit.left() == 1
    limit.count(WAKES)
    assert limit.left() == 0


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


@pytest.mark.parametrize("back", [timedelta(hours=1), timedelta(days=2000)])
async def test_a_clock_that_goes_back_stops_no_heartbeat(back: timedelta) -> None:
    """HB-1: neither the grid, nor wakes, nor items with an interval wait for the old time."""
    checklist = "- every 10m: look at the disk\n"
    async with beating(spoken_by=None, checklist=checklist) as gateway:
        await until_ended(gateway, 2)
        gateway.clock.advance(-back)
        service = gateway.container.heartbeats.service
        await service.add_event(MAIN_AGENT, "the backup has failed", now=True)
        await asyncio.sleep(40)
        assert len(asked(gateway)) == 2, "a wake waits 30 s, not for the old time"
        await asyncio.sleep(610 + EVERY.total_seconds())
        assert any("disk" in one.prompt for one in asked(gateway)[2:])
