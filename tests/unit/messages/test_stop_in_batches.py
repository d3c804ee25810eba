"""A ``/stop`` among other messages: before its commit, in its batch, redelivered (SPEC CMD-1)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from goclaw_py.delivery import texts as wording
from goclaw_py.model.errors import StoreUnavailable
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, Fail, ScriptedAgent
from tests.support.harness import Ways, a_process, message, session_of, until

AT_ONCE = Ways(direct=QueuePolicy())


def blocking() -> ScriptedAgent:
    """An agent whose runs go on for ever."""
    return ScriptedAgent(otherwise=lambda _: Block())


# ---------------------------------------------------------------------------- its place in a batch


async def test_stop_covers_what_came_before_it_in_its_batch_and_nothing_after() -> None:
    """SPEC CMD-1."""
    agent = ScriptedAgent()
    async with a_process(agent) as gateway:
        await gateway.gateway.accept([message("before"), message("/stop"), message("after")])
        await gateway.channel.until_sent(2)
        await asyncio.sleep(60)
        assert agent.prompts == ["after"]
        assert gateway.channel.texts() == ["Dropped 1 waiting message.", "re: after"]
        assert gateway.pending == []


async def test_stop_covers_a_whole_burst_that_came_before_it() -> None:
    """SPEC CMD-1, QUEUE-6: a burst is one turn."""
    agent = ScriptedAgent()
    async with a_process(agent) as gateway:
        await gateway.gateway.accept([message("one"), message("two"), message("/stop")])
        await asyncio.sleep(60)
        assert agent.prompts == []


async def test_stop_covers_one_turn_only_where_messages_are_no_burst() -> None:
    """SPEC CMD-1, QUEUE-8: the oldest that waits, not everything."""
    agent = ScriptedAgent()
    async with a_process(agent, AT_ONCE) as gateway:
        batch = [message("one"), message("two"), message("three"), message("/stop")]
        await gateway.gateway.accept(batch)
        await gateway.channel.until_sent(3)
        await asyncio.sleep(60)
        assert agent.prompts == ["two", "three"]
        assert "Dropped 1 waiting message." in gateway.channel.texts()


async def test_stop_covers_all_pieces_of_a_text_that_the_channel_cut() -> None:
    """SPEC CMD-1, QUEUE-6."""
    agent = ScriptedAgent()
    async with a_process(agent, AT_ONCE) as gateway:
        pieces = [message("a", cut=True), message("b", cut=True), message("c")]
        await gateway.gateway.accept([*pieces, message("other"), message("/stop")])
        await asyncio.sleep(60)
        assert agent.prompts == ["other"]


async def test_stopall_covers_everything_that_came_before_it_in_its_batch() -> None:
    """SPEC CMD-1."""
    agent = ScriptedAgent()
    async with a_process(agent, AT_ONCE) as gateway:
        batch = [message("one"), message("two"), message("/stopall"), message("three")]
        await gateway.gateway.accept(batch)
        await asyncio.sleep(60)
        assert agent.prompts == ["three"]
        assert "Dropped 2 waiting messages." in gateway.channel.texts()


async def test_stop_takes_the_run_and_leaves_what_waits_in_its_batch() -> None:
    """SPEC QUEUE-8."""
    agent = ScriptedAgent(Block())
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.say("work")
        await agent.until_active(1)
        await gateway.gateway.accept([message("next"), message("/stop")])
        await gateway.channel.until_sent(2)
        assert gateway.channel.texts() == ["Stopped.", "re: next"]


async def test_stop_in_a_batch_leaves_other_chats_alone() -> None:
    agent = ScriptedAgent()
    async with a_process(agent) as gateway:
        await gateway.gateway.accept([message("hi", chat="bob"), message("/stop")])
        await gateway.channel.until_sent(2)
        assert agent.prompts == ["hi"]


async def test_stop_covers_a_message_that_is_being_committed() -> None:
    """SPEC CMD-1."""
    agent = ScriptedAgent()
    async with a_process(agent) as gateway:
        gateway.store.slow_before_s["accept"] = 5.0
        accepting = asyncio.create_task(gateway.say("work"))
        await asyncio.sleep(1)
        await gateway.say("/stop")
        await accepting
        await asyncio.sleep(60)
        assert agent.prompts == []
        assert gateway.pending == []
        assert gateway.channel.texts() == ["Dropped 1 waiting message."]


async def test_stop_still_covers_a_message_whose_commit_failed_and_is_repeated() -> None:
    """SPEC CMD-1, DB-4."""
    agent = ScriptedAgent()
    async with a_process(agent) as gateway:
        batch = [message("work"), message("/stop")]
        gateway.store.away = True
        with pytest.raises(StoreUnavailable):
            await gateway.gateway.accept(batch)
        gateway.store.away = False
        await gateway.gateway.accept([*batch, message("after")])
        await asyncio.sleep(60)
        assert agent.prompts == ["after"]


async def test_stop_covers_a_message_whose_commit_lost_its_answer() -> None:
    """SPEC CMD-1, DB-4: it is in the database, but nobody here knows that yet."""
    agent = ScriptedAgent()
    async with a_process(agent) as gateway:
        work = message("work")
        gateway.store.broken = {"claim_pending"}
        gateway.store.lose_answer["accept"] = 1
        with pytest.raises(StoreUnavailable):
            await gateway.gateway.accept([work])
        await gateway.gateway.accept([work, message("/stop")])
        gateway.store.broken = set()
        await asyncio.sleep(60)
        assert agent.prompts == []
        assert gateway.pending == []


async def test_a_covered_message_does_not_hold_up_the_channel_while_the_database_is_away() -> None:
    """SPEC CMD-1: the next stop must get in."""
    agent = ScriptedAgent()
    async with a_process(agent) as gateway:
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
        assert agent.prompts == []


async def test_a_message_that_is_already_worked_on_is_not_counted_as_dropped() -> None:
    agent = ScriptedAgent()
    async with a_process(agent, AT_ONCE) as gateway:
        gateway.store.slow_before_s["settle"] = 5.0
        accepting = asyncio.create_task(gateway.gateway.accept([message("hi"), message("/help")]))
        await gateway.channel.until_sent(1)
        assert not accepting.done()
        await gateway.say("/stop")
        await asyncio.sleep(60)
        assert gateway.channel.texts() == ["re: hi", wording.NOTHING_RUNNING, wording.help_text()]
        await accepting


@pytest.mark.parametrize("command", ["/stop", "/stopall"])
async def test_a_message_that_comes_again_while_its_answer_is_stored_stays_answered(
    command: str,
) -> None:
    agent = ScriptedAgent()
    async with a_process(agent, AT_ONCE) as gateway:
        asked = message("hi")
        gateway.store.slow_before_s["finish_run"] = 5.0
        await gateway.gateway.accept([asked])
        await until(lambda: len(agent.finished) == 1)
        gateway.store.slow_before_s["accept"] = 1.0
        accepting = asyncio.create_task(gateway.gateway.accept([asked]))
        await asyncio.sleep(0.5)
        await gateway.say(command)
        await accepting
        await asyncio.sleep(60)
        assert sorted(gateway.channel.texts()) == sorted(["re: hi", wording.NOTHING_RUNNING])
        assert await gateway.store.unanswered(session_of(), ended=True) == []


# ---------------------------------------------------------------------------- after a restart


async def test_a_redelivered_stop_acts_only_after_its_commit() -> None:
    """SPEC CMD-1: another process may have acted on it."""
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
    """SPEC CMD-1."""
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


async def test_a_redelivered_stop_covers_what_came_before_it_in_its_batch() -> None:
    """SPEC CMD-1."""
    agent = ScriptedAgent()
    async with a_process(agent) as gateway:
        texts = ("before", "/stop", "after")
        await gateway.gateway.accept([message(text, redelivered=True) for text in texts])
        await gateway.channel.until_sent(2)
        await asyncio.sleep(60)
        assert agent.prompts == ["after"]


async def test_a_redelivered_stop_acts_once_although_its_end_must_be_stored_twice() -> None:
    """SPEC CMD-1: what was said afterwards is not stopped by the second try."""
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


# ---------------------------------------------------------------------------- what was dropped


async def test_stop_counts_every_message_of_a_burst() -> None:
    """SPEC CMD-1: people count messages."""
    async with a_process() as gateway:
        await gateway.say("one", "two", "three")
        assert await gateway.ask("/stop") == "Dropped 3 waiting messages."


async def test_stopall_counts_messages_wherever_they_wait() -> None:
    """SPEC CMD-1: one that is being committed, two in a burst, two that wait for a run."""
    ways = Ways(direct=QueuePolicy(debounce_s=0.8))
    agent = blocking()
    async with a_process(agent, ways) as gateway:
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


async def test_stop_counts_a_text_that_the_channel_cut_as_one_message() -> None:
    """SPEC CMD-1, QUEUE-6."""
    async with a_process() as gateway:
        pieces = [message("a", cut=True), message("b", cut=True), message("c")]
        await gateway.gateway.accept(pieces)
        assert await gateway.ask("/stop") == "Dropped 1 waiting message."
        pieces = [message("a", cut=True), message("b", cut=True), message("c"), message("d")]
        await gateway.gateway.accept([*pieces, message("/stop")])
        await gateway.channel.until_sent(2)
        assert gateway.channel.texts()[1] == "Dropped 2 waiting messages."


async def test_stop_counts_the_first_pieces_of_a_text_as_the_message_that_they_begin() -> None:
    """SPEC CMD-1, QUEUE-6."""
    async with a_process() as gateway:
        await gateway.gateway.accept([message("a", cut=True), message("/stop")])
        await gateway.channel.until_sent(1)
        assert gateway.channel.texts() == ["Dropped 1 waiting message."]


async def test_a_redelivered_stop_counts_messages_too() -> None:
    """SPEC CMD-1."""
    async with a_process() as gateway:
        await gateway.say("one", "two", "three")
        await gateway.gateway.accept([message("/stop", redelivered=True)])
        await gateway.channel.until_sent(1)
        assert gateway.channel.texts() == ["Dropped 3 waiting messages."]


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
