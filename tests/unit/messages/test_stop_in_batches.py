"""A ``/stop`` among other messages: before its commit, in its batch, redelivered (SPEC CMD-1)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from goclaw_py.delivery import texts as wording
from goclaw_py.model.errors import StoreUnavailable
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, Fail, ScriptedAgent
from tests.support.harness import GatewayProcess, Ways, a_process, message, session_of, until

AT_ONCE = Ways(direct=QueuePolicy())


def blocking() -> ScriptedAgent:
    """An agent whose runs go on for ever."""
    return ScriptedAgent(otherwise=lambda _: Block())


async def said(gateway: GatewayProcess, texts: str, *, together: bool, again: bool = False) -> None:
    """Words said in one batch or each in its own; a channel has cut those that end in ``+``."""
    batch = [message(one, cut=one.endswith("+"), redelivered=again) for one in texts.split()]
    for part in [batch] if together else [[one] for one in batch]:
        await gateway.gateway.accept(part)
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    ("texts", "dropped", "left"),
    [
        ("before /stop after", "Dropped 1 waiting message.", ["after"]),
        ("one two three /stop", "Dropped 3 waiting messages.", []),
        ("a+ b+ c /stop", "Dropped 1 waiting message.", []),
        ("a+ /stop", "Dropped 1 waiting message.", []),
    ],
    ids=["what came before", "a whole burst", "a text that was cut", "the beginning of one"],
)
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("redelivered", [True, False])
async def test_stop_covers_the_burst_that_came_before_it_and_counts_its_messages(
    texts: str, dropped: str, left: list[str], *, together: bool, redelivered: bool
) -> None:
    """SPEC CMD-1, QUEUE-6: a burst is one turn, but people count messages."""
    async with a_process() as gateway:
        await said(gateway, texts, together=together, again=redelivered)
        assert gateway.scripted.prompts == left
        assert gateway.channel.texts() == [dropped, *(f"re: {text}" for text in left)]
        assert gateway.pending == []


@pytest.mark.parametrize(
    ("texts", "dropped", "left"),
    [
        ("one two three /stop", "Dropped 1 waiting message.", ["two", "three"]),
        ("a+ b+ c other /stop", "Dropped 1 waiting message.", ["other"]),
        ("one two /stopall three", "Dropped 2 waiting messages.", ["three"]),
    ],
)
async def test_where_messages_are_no_burst_stop_covers_the_oldest_and_stopall_each(
    texts: str, dropped: str, left: list[str]
) -> None:
    """SPEC CMD-1, QUEUE-8."""
    async with a_process(ways=AT_ONCE) as gateway:
        await said(gateway, texts, together=True)
        assert gateway.scripted.prompts == left
        assert dropped in gateway.channel.texts()


async def test_stop_takes_the_run_and_leaves_what_waits_in_its_batch_and_other_chats() -> None:
    """SPEC QUEUE-8."""
    agent = ScriptedAgent(Block())
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.say("work")
        await agent.until_active(1)
        batch = [message("hi", chat="bob"), message("next"), message("/stop")]
        await gateway.gateway.accept(batch)
        await gateway.channel.until_sent(3)
        assert gateway.channel.texts("ann") == ["Stopped.", "re: next"]
        assert gateway.channel.texts("bob") == ["re: hi"]


async def test_stop_covers_a_message_that_is_being_committed() -> None:
    async with a_process() as gateway:
        gateway.store.slow_before_s["accept"] = 5.0
        accepting = asyncio.create_task(gateway.say("work"))
        await asyncio.sleep(1)
        await gateway.say("/stop")
        await accepting
        await asyncio.sleep(60)
        assert (gateway.scripted.prompts, gateway.pending) == ([], [])
        assert gateway.channel.texts() == ["Dropped 1 waiting message."]


async def test_stop_still_covers_a_message_whose_commit_failed_and_is_repeated() -> None:
    """SPEC DB-4."""
    async with a_process() as gateway:
        batch = [message("work"), message("/stop")]
        gateway.store.away = True
        with pytest.raises(StoreUnavailable):
            await gateway.gateway.accept(batch)
        gateway.store.away = False
        await gateway.gateway.accept([*batch, message("after")])
        await asyncio.sleep(60)
        assert gateway.scripted.prompts == ["after"]


async def test_stop_covers_a_message_whose_commit_lost_its_answer() -> None:
    """SPEC DB-4: it is in the database, but nobody here knows that yet."""
    async with a_process() as gateway:
        work = message("work")
        gateway.store.broken = {"claim_pending"}
        gateway.store.lose_answer["accept"] = 1
        with pytest.raises(StoreUnavailable):
            await gateway.gateway.accept([work])
        await gateway.gateway.accept([work, message("/stop")])
        gateway.store.broken = set()
        await asyncio.sleep(60)
        assert (gateway.scripted.prompts, gateway.pending) == ([], [])


async def test_a_covered_message_does_not_hold_up_the_channel_while_the_database_is_away() -> None:
    """The next stop must get in."""
    async with a_process() as gateway:
        gateway.store.slow_before_s["accept"] = 5.0
        accepting = asyncio.create_task(gateway.say("work"))
        await asyncio.sleep(1)
        gateway.store.broken = {"settle"}
        stopping = asyncio.create_task(gateway.say("/stop"))
        await asyncio.wait_for(accepting, 4.5)
        assert gateway.pending == ["work"]
        await stopping
        assert gateway.pending == []  # its commit did it
        gateway.store.broken = set()
        await asyncio.sleep(60)
        assert gateway.scripted.prompts == []


async def test_a_message_that_is_already_worked_on_is_not_counted_as_dropped() -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.slow_before_s["settle"] = 5.0
        accepting = asyncio.create_task(gateway.gateway.accept([message("hi"), message("/help")]))
        await gateway.channel.until_sent(1)
        assert not accepting.done()
        await gateway.say("/stop")
        await asyncio.sleep(60)
        assert gateway.channel.texts() == ["re: hi", wording.NOTHING_RUNNING, wording.help_text()]
        await accepting


@pytest.mark.parametrize("command", ["/stop", "/stopall"])
async def test_a_message_that_comes_again_while_it_is_answered_stays_so(command: str) -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        asked = message("hi")
        gateway.store.slow_before_s["finish_run"] = 5.0
        await gateway.gateway.accept([asked])
        await until(lambda: len(gateway.scripted.finished) == 1)
        gateway.store.slow_before_s["accept"] = 1.0
        accepting = asyncio.create_task(gateway.gateway.accept([asked]))
        await asyncio.sleep(0.5)
        await gateway.say(command)
        await accepting
        await asyncio.sleep(60)
        assert sorted(gateway.channel.texts()) == sorted(["re: hi", wording.NOTHING_RUNNING])
        assert await gateway.store.unanswered(session_of(), ended=True) == []


async def test_a_redelivered_stop_acts_only_after_its_commit() -> None:
    """Another process may have acted on it."""
    agent = blocking()
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.say("work")
        await agent.until_active(1)
        gateway.store.slow_before_s["accept"] = 5.0
        stop = message("/stop", redelivered=True)
        stopping = asyncio.create_task(gateway.gateway.accept([stop]))
        await asyncio.sleep(4.9)
        assert len(agent.active) == 1
        await stopping
        await agent.until_active(0)
        await asyncio.sleep(1)
        assert gateway.channel.texts() == ["Stopped."]
        assert gateway.pending == []


async def test_a_redelivered_stop_that_was_committed_before_does_not_act_again() -> None:
    agent = blocking()
    async with a_process(agent, AT_ONCE) as gateway:
        stop = message("/stop")
        await gateway.gateway.accept([stop])
        await gateway.say("work")
        await agent.until_active(1)
        await gateway.gateway.accept([replace(stop, redelivered=True)])
        await asyncio.sleep(60)
        assert len(agent.active) == 1
        assert gateway.channel.texts() == [wording.NOTHING_RUNNING]


async def test_a_redelivered_stop_acts_once_although_its_end_must_be_stored_twice() -> None:
    """What was said afterwards is not stopped by the second try."""
    agent = blocking()
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.say("one", "two")
        await agent.until_active(1)
        gateway.store.broken = {"settle"}
        await gateway.gateway.accept([message("/stop", redelivered=True)])
        await agent.until_started(2)
        await asyncio.sleep(10)
        gateway.store.broken = set()
        await until(lambda: "/stop" not in gateway.pending)
        assert len(agent.active) == 1
        assert gateway.channel.texts() == ["Stopped."]


async def test_stopall_counts_messages_wherever_they_wait() -> None:
    """One that is being committed, two in a burst, two that wait for a run."""
    agent = blocking()
    async with a_process(agent) as gateway:
        await gateway.say("work")
        await agent.until_active(1)
        await gateway.say("a", "b")  # they join, and wait
        gateway.store.slow_before_s["accept"] = 5.0
        accepting = asyncio.create_task(gateway.say("c"))
        await asyncio.sleep(1)
        stopping = asyncio.create_task(gateway.say("/stopall"))
        await gateway.channel.until_sent(1)
        assert gateway.channel.texts() == ["Stopped 1 task and dropped 3 waiting messages."]
        await asyncio.gather(accepting, stopping)


async def test_a_message_that_failed_and_comes_again_with_a_stop_can_be_tried_again() -> None:
    """SPEC CMD-1: its end is not that of the stop, so an operator may undo it."""
    agent = ScriptedAgent(Fail(ValueError("a bug")))
    async with a_process(agent, AT_ONCE) as gateway:
        work = message("work")
        await gateway.gateway.accept([work])
        await gateway.channel.until_sent(1)
        await gateway.gateway.accept([work, message("/stopall")])
        (row,) = [row.id for row in gateway.database.inbox.values() if row.message is work]
        await gateway.control.retry_dead_letters([row])
        await until(lambda: agent.prompts == ["work", "work"])
