"""Whatever happens, the next heartbeat run comes (SPEC HB-1, HB-10, HB-12, DB-4, HB-11)."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from goclaw_py.heartbeat.poller import WAKES, WakeLimit
from goclaw_py.model.errors import AgentError
from goclaw_py.model.ids import MAIN_AGENT, AgentName
from goclaw_py.store.memory import MemoryDatabase
from goclaw_py.testing.agents import Block, Fail
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

ALERT = "The house burns."
BROKEN = Fail(AgentError("Sorry.", "503", retryable=True))


async def test_a_claim_whose_answer_was_lost_is_given_back_however_long_the_outage() -> None:
    async with a_process(saying("HEARTBEAT_OK"), heartbeat_gateway()) as gateway:
        write(gateway)
        await asyncio.sleep(30)
        gateway.store.lose_answer["claim_heartbeats"] = 1
        await until(lambda: gateway.store.calls["claim_heartbeats"] > 0)
        gateway.store.away = True
        await asyncio.sleep(120)
        gateway.store.away = False
        await until_ended(gateway, 3)
        assert await outcomes(gateway) == ["ok"] * 3


async def test_a_heartbeat_run_by_hand_is_carried_out_though_nobody_waits_for_it_any_more() -> None:
    async with a_process(saying("HEARTBEAT_OK"), heartbeat_gateway()) as gateway:
        write(gateway)
        await asyncio.sleep(10)
        gateway.store.slow_after_s["claim_heartbeat_now"] = 1.0
        asking = asyncio.ensure_future(gateway.container.heartbeats.service.run_now(MAIN_AGENT))
        await asyncio.sleep(0.5)
        asking.cancel()
        await until_ended(gateway, 2)
        assert await outcomes(gateway) == ["ok", "ok"]


async def test_an_attempt_whose_end_cannot_be_stored_is_followed_by_the_next() -> None:
    async with a_process(saying(BROKEN, "HEARTBEAT_OK"), heartbeat_gateway()) as gateway:
        write(gateway)
        gateway.store.errors["finish_run"] = ValueError("a bug")
        (heartbeat_run,) = await until_ended(gateway, 1)
        assert (heartbeat_run.outcome, heartbeat_run.attempts) == ("ok", 2)


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
        await gateway.control.stop(blocker.requests[0].session, everything=False)
        await until_ended(gateway, 1)
        assert await outcomes(gateway) == ["skipped:disabled"]
        assert asked(gateway) == []


async def test_a_heartbeat_run_that_waited_until_the_next_was_due_is_that_one_too() -> None:
    """SPEC HB-4: one row, which becomes the final one."""
    agent = saying("HEARTBEAT_OK")
    agent.script = (Block("done"),)
    async with a_process(agent, heartbeat_gateway()) as gateway:
        write(gateway)
        await gateway.say("think about it")
        await asyncio.sleep(60 + EVERY.total_seconds() + 10)
        await gateway.control.stop(agent.requests[0].session, everything=False)
        await until_ended(gateway, 2)
        due = [heartbeat_run.due_at for heartbeat_run in await log_of(gateway)]
        assert due == [after(60), after(60) + 2 * EVERY]


async def test_owners_are_told_of_each_series_of_failures() -> None:
    """SPEC HB-10: also if the end of the one before could not be noted at first."""
    failing = Fail(AgentError("Sorry.", "no key"))
    replies = (failing, failing, failing, "HEARTBEAT_OK", failing)
    async with a_process(saying(*replies), heartbeat_gateway()) as gateway:
        write(gateway)
        await gateway.ask("hello")
        await until_ended(gateway, 3)
        gateway.store.broken.add("close_incident")
        await until_ended(gateway, 4)
        await asyncio.sleep(20)
        gateway.store.broken.clear()
        await until_ended(gateway, 9)
        await asyncio.sleep(20)
        told = [text for text in gateway.channel.texts() if "three times" in text]
        assert len(told) == 2


async def test_a_clock_that_was_wrong_for_a_moment_stops_no_heart_for_years() -> None:
    database = MemoryDatabase()
    wrong = timedelta(days=2000)
    async with a_process(saying("HEARTBEAT_OK"), heartbeat_gateway(), database=database) as first:
        write(first)
        await asyncio.sleep(30)
        first.clock.put_forward(wrong)
        await until_ended(first, 1)
        first.clock.put_forward(-wrong)
        await first.shut_down()
    async with a_process(saying("HEARTBEAT_OK"), heartbeat_gateway(), database=database) as second:
        write(second)
        await until_ended(second, 3)
        due = [heartbeat_run.due_at for heartbeat_run in await log_of(second)]
        assert min(due) < after(3600)


async def test_heartbeat_runs_that_others_had_begun_make_no_debt_of_wakes() -> None:
    limit = WakeLimit()
    limit.take(WAKES - 1)
    assert limit.left() == 1
    limit.take(WAKES)
    assert limit.left() == 0
