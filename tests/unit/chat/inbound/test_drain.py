"""Shutting down (SPEC QUEUE-11)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.records import OutboxState
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Ignore, Say, ScriptedAgent
from tests.support.harness import Ways, a_process, message, until, working
from tests.support.memory_store import MemoryDatabase

AT_ONCE = Ways(QueuePolicy())


def attempts(database: MemoryDatabase) -> dict[str, int]:
    return {row.message.text: row.attempts for row in database.pending.values()}


async def lasts_s(ending: Awaitable[None]) -> float:
    """How long something takes."""
    loop = asyncio.get_running_loop()
    before = loop.time()
    await ending
    return loop.time() - before


async def test_running_work_gets_its_time_and_its_answer_leaves() -> None:
    async with working(agent=ScriptedAgent(Say("done", after_s=20))) as gateway:
        await gateway.shut_down(wait_s=30)
        assert gateway.channel.texts() == ["done"]
        assert await gateway.outcomes() == [Outcome.COMPLETED]
        assert gateway.database.nodes == {}


async def test_an_idle_process_ends_at_once() -> None:
    async with a_process() as gateway:
        assert await lasts_s(gateway.shut_down()) < 0.1


async def test_what_takes_longer_is_interrupted_and_runs_after_the_restart() -> None:
    """SPEC QUEUE-10: no attempt counted."""
    database = MemoryDatabase()
    async with working(database=database) as gateway:
        assert await lasts_s(gateway.shut_down(wait_s=30)) == pytest.approx(30, abs=0.5)
        assert attempts(database) == {"work": 0}
        assert gateway.channel.texts() == []
        assert gateway.channel.ended()[0].outcome is Outcome.INTERRUPTED
    async with a_process(database=database) as gateway:
        await gateway.channel.until_sent(1)
        assert gateway.channel.texts() == ["re: work"]
        assert await gateway.outcomes() == [Outcome.INTERRUPTED, Outcome.COMPLETED]
        assert await gateway.texts_in_history() == ["work", "re: work"]


async def test_waiting_messages_go_back_and_run_in_order_after_the_restart() -> None:
    database, agent = MemoryDatabase(), ScriptedAgent(Say("slow", after_s=10))
    async with a_process(agent, AT_ONCE, database=database) as gateway:
        await gateway.say("one", "two", "three", apart_s=1)
        await gateway.shut_down()
        assert agent.prompts == ["one"]
        assert attempts(database) == {"two": 0, "three": 0}
        assert gateway.channel.texts() == ["slow"]
    async with a_process(ways=AT_ONCE, database=database) as gateway:
        await gateway.channel.until_sent(2)
        assert gateway.scripted.prompts == ["two", "three"]


async def test_a_burst_that_is_being_collected_goes_back() -> None:
    async with a_process() as gateway:
        await gateway.say("one", "two")
        await gateway.shut_down()
        assert attempts(gateway.database) == {"one": 0, "two": 0}


async def test_a_second_signal_cuts_the_wait_short() -> None:
    async with working() as gateway:
        hurry = asyncio.Event()
        asyncio.get_running_loop().call_later(3, hurry.set)
        assert 3 <= await lasts_s(gateway.shut_down(wait_s=30, hurry=hurry)) < 4


async def test_a_run_that_ignores_the_shutdown_goes_back_like_any_other() -> None:
    """Its message is not lost with the process."""
    async with working(agent=ScriptedAgent(Ignore(for_s=100, reply="too late"))) as gateway:
        await gateway.shut_down(wait_s=5)
        assert attempts(gateway.database) == {"work": 0}
        assert await gateway.outcomes() == [Outcome.INTERRUPTED]


async def test_a_run_that_was_abandoned_before_does_not_hold_up_the_shutdown() -> None:
    """SPEC QUEUE-2."""
    async with working(agent=ScriptedAgent(Ignore(for_s=1000, reply="too late"))) as gateway:
        await gateway.say("/stop")
        await asyncio.sleep(11)
        assert await lasts_s(gateway.shut_down(wait_s=30)) < 1


async def test_a_stopped_run_stays_cancelled_through_a_shutdown() -> None:
    async with working(agent=ScriptedAgent(Ignore(for_s=5))) as gateway:
        await gateway.say("/stop")
        await gateway.shut_down()
        (run,) = await gateway.store.runs()
        assert (run.outcome, run.reason) == (Outcome.CANCELLED, Reason.STOPPED)
        assert attempts(gateway.database) == {}


async def test_dropped_messages_are_told_before_the_end() -> None:
    """SPEC QUEUE-5, QUEUE-11."""
    agent = ScriptedAgent(Say("done", after_s=0.5))
    async with a_process(agent, Ways(QueuePolicy(capacity=1))) as gateway:
        await gateway.say("works", "dropped", "waits")
        await gateway.shut_down()
        assert gateway.pending == ["waits"]
        assert len(gateway.channel.texts()) == 2


async def test_what_is_committed_during_the_shutdown_waits_for_the_restart() -> None:
    async with working(agent=ScriptedAgent(Say("done", after_s=10))) as gateway:
        ending = asyncio.create_task(gateway.shut_down())
        await asyncio.sleep(1)
        await gateway.say("late", chat="bob")
        await ending
        assert gateway.scripted.prompts == ["work"]
        assert gateway.pending == ["late"]


async def test_stop_works_during_the_shutdown() -> None:
    """SPEC CMD-1."""
    async with working() as gateway:
        ending = asyncio.create_task(gateway.shut_down())
        await asyncio.sleep(1)
        await gateway.say("/stop")
        await ending
        assert await gateway.outcomes() == [Outcome.CANCELLED]
        assert gateway.channel.texts() == ["Stopped."]


async def test_a_stop_covers_its_batch_even_if_the_commit_meets_the_shutdown() -> None:
    """SPEC CMD-1: what it covered does not run after the restart."""
    async with a_process() as gateway:
        gateway.store.slow_before_s["accept"] = 5.0
        accepting = asyncio.create_task(gateway.gateway.accept([message("work")]))
        await asyncio.sleep(1)
        stopping = asyncio.create_task(gateway.gateway.accept([message("/stop")]))
        await asyncio.sleep(1)
        gateway.dispatcher._scheduler.drain()
        await accepting
        await stopping
        assert gateway.pending == []


async def test_a_message_that_is_still_being_sent_is_cut_off_and_marked() -> None:
    """SPEC IO-5, DB-4: a database that is away is not waited for."""
    for away in (False, True):
        async with a_process() as gateway:
            gateway.channel.block("ann")
            await gateway.say("hello")
            await until(lambda: gateway.channel.attempts != [])
            gateway.store.away = away
            took_s = await lasts_s(gateway.outbox.close(5.0))
            assert took_s < 8 if away else 5 <= took_s < 6
            if not away:
                (row,) = await gateway.store.outbox()
                assert (row.state, row.possible_duplicate) == (OutboxState.WAITING, True)
                assert row.error == "cut off by the shutdown"


async def test_nothing_new_is_sent_after_the_outbox_was_closed() -> None:
    async with a_process() as gateway:
        await gateway.outbox.close(5.0)
        await gateway.say("hello")
        await asyncio.sleep(60)
        assert gateway.channel.attempts == []
        assert gateway.outbox.sending == 0


async def test_leaving_says_when_the_database_is_away() -> None:
    async with a_process() as gateway:
        gateway.store.away = True
        with pytest.raises(StoreUnavailable):
            await gateway.cluster.leave()


async def test_what_waits_goes_to_another_process_at_once() -> None:
    """SPEC NODE-3: what runs may end, nobody else waits for it."""
    database, ways = MemoryDatabase(), Ways(QueuePolicy(), main_lane=1)
    other = ScriptedAgent()
    async with (
        working(
            agent=ScriptedAgent(Say("late", after_s=20)), ways=ways, database=database
        ) as first,
        a_process(other, ways, database=database) as second,
    ):
        await first.say("me too", chat="bob")
        await first.say("and this", chat="ann")
        ending = asyncio.create_task(first.shut_down())
        await until(lambda: other.prompts == ["me too"], within_s=0.5)
        await asyncio.sleep(10)
        # What waits behind a run stays with it: two runs of a session never overlap.
        assert other.prompts == ["me too"]
        await until(lambda: other.prompts == ["me too", "and this"], within_s=11)
        await ending
        texts = first.channel.texts("ann") + second.channel.texts("ann")
        assert texts == ["late", "re: and this"]
        assert await second.outcomes() == [Outcome.COMPLETED] * 3


async def test_a_message_that_was_dropped_is_no_other_process_to_answer() -> None:
    """SPEC NODE-3, QUEUE-5: its sender was told; until that is stored its session stays here."""
    database, ways, other = MemoryDatabase(), Ways(QueuePolicy(capacity=1)), ScriptedAgent()
    runs_s = {"long": 20, "works": 4}
    agent = ScriptedAgent(otherwise=lambda asked: Say("done", after_s=runs_s[asked.prompt]))
    async with (
        a_process(agent, ways, database=database) as first,
        a_process(other, ways, database=database),
    ):
        await first.say("long", chat="bob")
        await first.say("works", "drops", "waits")
        await asyncio.sleep(2)
        await first.say("comes")  # its notice comes ten seconds after that about "drops"
        await asyncio.sleep(0.7)
        await first.shut_down()
        await asyncio.sleep(40)
        assert other.prompts == ["comes"]


async def test_a_process_that_ends_takes_nothing_up_again() -> None:
    one_place = Ways(QueuePolicy(), main_lane=1)
    async with working(agent=ScriptedAgent(Say("late", after_s=20)), ways=one_place) as gateway:
        await gateway.say("me too", chat="bob")
        ending = asyncio.create_task(gateway.shut_down())
        await asyncio.sleep(10)
        gateway.store.calls.clear()
        await asyncio.sleep(5)
        assert gateway.store.calls["claim_pending"] == 0
        await ending
        assert attempts(gateway.database) == {"me too": 0}
