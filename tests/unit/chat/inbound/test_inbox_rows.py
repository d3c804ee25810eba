"""Every committed row is worked on once, in order, whatever goes wrong (SPEC IO-2, CMD-1)."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace

import pytest

from goclaw_py.chat.commands.queue import queue_changed
from goclaw_py.chat.commands.registry import help_text
from goclaw_py.chat.outbound import texts as wording
from goclaw_py.chat.outbound.texts import NEW_SESSION
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.records import NewInbox
from goclaw_py.scheduler.models import Mode, QueuePolicy
from goclaw_py.testing.agents import Block, Say, ScriptedAgent
from tests.support.harness import GatewayProcess, Ways, a_process, message, session_of, until

AT_ONCE = Ways(direct=QueuePolicy())
BUG = RuntimeError("a bug")


async def commit_unseen(gateway: GatewayProcess, *texts: str) -> None:
    """Commit a batch whose rows this process learns of by its next look only."""
    gateway.store.lose_answer["accept"] = 1
    with suppress(StoreUnavailable):
        await gateway.gateway.accept([message(text, chat=text.strip("/")) for text in texts])


async def test_what_is_said_after_a_held_up_new_waits_although_a_look_fails_in_between() -> None:
    """SPEC IO-2: the fresh conversation begins before the message that follows it."""
    async with a_process(ways=AT_ONCE) as gateway:
        await gateway.ask("first")
        gateway.store.broken = {"settle"}
        await gateway.say("/new")
        gateway.store.broken = {"claim_pending"}
        await asyncio.sleep(10)
        await gateway.say("after")
        gateway.store.broken = set()
        await gateway.channel.until_sent(3)
        assert gateway.channel.texts() == ["re: first", NEW_SESSION, "re: after"]
        assert await gateway.texts_in_history() == ["after", "re: after"]


async def test_what_is_said_while_a_held_up_new_is_tried_again_waits_for_its_end() -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.broken = {"settle"}
        await gateway.say("/new", "one")
        gateway.store.broken = set()
        gateway.store.slow_before_s["settle"] = 5.0
        await asyncio.sleep(4)  # the second try has begun
        await gateway.say("two")
        await until(lambda: "/new" not in gateway.pending)
        await gateway.say("three")
        await gateway.channel.until_sent(4)
        assert gateway.scripted.prompts == ["one", "two", "three"]
        history = ["one", "re: one", "two", "re: two", "three", "re: three"]
        assert await gateway.texts_in_history() == history


async def test_a_session_is_held_up_no_longer_than_its_row_although_the_answer_was_lost() -> None:
    """SPEC DB-4: the row was done, so no look ever shows it again."""
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.lose_answer["settle"] = 1
        await gateway.say("/help", "after")
        await gateway.channel.until_sent(2)
        assert sorted(gateway.channel.texts()) == sorted([help_text(owner=True), "re: after"])
        assert await gateway.ask("later") == "re: later"


async def test_a_held_up_session_holds_up_no_other_and_no_next_self_of_its_node() -> None:
    """SPEC NODE-1."""
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.broken = {"settle"}
        await gateway.say("/new", "waits", chat="ann")
        assert await gateway.ask("hello", chat="bob") == "re: hello"
        assert gateway.scripted.prompts == ["hello"]
        gateway.gateway.forget_everything(gateway.node())
        gateway.store.broken = {"settle", "claim_pending"}
        await gateway.say("/new", chat="cyd")
        gateway.gateway.forget_everything(gateway.node())
        gateway.store.broken.clear()
        await gateway.say("hi", chat="cyd")
        await until(lambda: "hi" in gateway.scripted.prompts, within_s=0.5)


async def test_what_is_brought_in_goes_behind_what_this_process_has_not_seen_yet() -> None:
    """SPEC NODE-1: it waits in the session, whoever has accepted it."""
    async with a_process(ways=AT_ONCE) as gateway:
        await gateway.ask("hello", chat="one")
        await commit_unseen(gateway, "one")
        new = NewInbox(message("brought", chat="one"), session_of("one"), MAIN_AGENT)
        runs = await gateway.gateway.deliver([new])
        await gateway.channel.until_sent(3)
        assert len(runs) == 1
        assert gateway.scripted.prompts == ["hello", "one", "brought"]


async def test_the_runs_of_brought_messages_are_returned_although_one_has_ended() -> None:
    """SPEC CRON-19: a program learns the run that answers its message."""
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.slow_before_s["amend"] = 5.0
        edited = replace(message("other", chat="two"), edits="unknown")
        said = [(message("brought", chat="one"), "one"), (edited, "two")]
        rows = [NewInbox(one, session_of(chat), MAIN_AGENT) for one, chat in said]
        runs = await gateway.gateway.deliver(rows)
        assert gateway.scripted.prompts == ["brought"]
        assert len(runs) == 2


async def test_what_others_have_not_seen_hurries_no_burst_of_another_chat() -> None:
    """SPEC QUEUE-6: what has just come is no older than what it came with."""
    async with a_process(ways=Ways(QueuePolicy(debounce_s=0.8))) as gateway:
        await commit_unseen(gateway, "ann")
        await gateway.gateway.accept([message("next", chat="ann"), message("a", chat="bob")])
        await asyncio.sleep(0.5)
        await gateway.say("b", chat="bob")
        await gateway.channel.until_sent(3)
        assert sorted(gateway.scripted.prompts) == ["a\nb", "ann", "next"]


async def test_a_command_that_meets_a_bug_is_told_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with a_process() as gateway:
        gateway.store.errors["settle"] = BUG
        assert await gateway.ask("/help") == wording.FAILED
        assert gateway.pending == []
        (line,) = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert line.exc_info is not None
        assert line.exc_info[1] is BUG


@pytest.mark.parametrize("unseen", [True, False])
async def test_a_bug_in_one_row_leaves_the_rest_of_its_batch_alone(*, unseen: bool) -> None:
    """Also what else was found in the database: one bad row must not stop a start."""
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.errors["settle"] = BUG
        if unseen:
            await commit_unseen(gateway, "/help", "ann")
        else:
            batch = [message("/help", chat="help"), message("ann", chat="ann")]
            await gateway.gateway.accept(batch)
        await gateway.channel.until_sent(2)
        assert gateway.channel.texts("help") == [wording.FAILED]
        assert gateway.channel.texts("ann") == ["re: ann"]


async def test_a_row_whose_failure_meets_a_bug_too_is_tried_again_and_holds_up_nothing() -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        await asyncio.sleep(1)  # the next look is a second away
        gateway.store.errors |= {"choose_mode": BUG, "settle": BUG}
        await gateway.say("/queue collect", "after")
        await until(lambda: gateway.scripted.prompts == ["after"], within_s=1)
        await gateway.channel.until_sent(2)
        answers = {queue_changed(Mode.COLLECT, chosen=True), "re: after"}
        assert set(gateway.channel.texts()) == answers
        assert gateway.pending == []


async def test_a_row_whose_failure_waits_for_the_database_holds_up_what_follows() -> None:
    """SPEC IO-2, DB-4."""
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.broken = {"settle"}
        gateway.store.errors["reset_session"] = BUG
        await gateway.say("/new", "after")
        await asyncio.sleep(1)
        assert gateway.scripted.prompts == []
        gateway.store.broken = set()
        await gateway.channel.until_sent(2)
        assert gateway.channel.texts() == [NEW_SESSION, "re: after"]


async def test_a_command_that_was_cancelled_half_way_is_claimed_again() -> None:
    """SPEC IO-2: the channel it came from stopped, its row is still this node's."""
    async with a_process() as gateway:
        gateway.store.slow_before_s["settle"] = 5.0
        accepting = asyncio.create_task(gateway.say("/help"))
        await asyncio.sleep(1)
        accepting.cancel()
        await gateway.channel.until_sent(1)
        assert gateway.channel.texts() == [help_text(owner=True)]


async def test_a_long_run_is_not_begun_again_however_much_comes_after_it() -> None:
    agent = ScriptedAgent(otherwise=lambda r: Say("done", after_s=60 if r.prompt == "long" else 0))
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.say("long")
        for number in range(20):
            await gateway.say("short", chat=f"c{number}")
        await asyncio.sleep(300)
        assert agent.prompts.count("long") == 1


@pytest.mark.parametrize("before_s", [0.0, 2.0])
async def test_a_message_that_comes_or_ends_during_a_look_runs_once(before_s: float) -> None:
    """The answer was true when it left."""
    agent = ScriptedAgent(otherwise=lambda _: Say("done", after_s=3))
    async with a_process(agent, AT_ONCE) as gateway:
        gateway.store.slow_before_s["claim_pending"] = before_s
        gateway.store.slow_after_s["claim_pending"] = 5.0
        for number in range(10):
            await gateway.say(f"m{number}", chat=f"c{number}", apart_s=1.3)
        await asyncio.sleep(120)
        assert len(agent.prompts) == 10


async def test_periodic_looks_rest_while_they_take_long() -> None:
    """SPEC DB-7: a backlog makes them rarer, not the node busier."""
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.slow_before_s["claim_pending"] = 0.4
        await asyncio.sleep(10)
        before = gateway.store.calls["claim_pending"]
        await asyncio.sleep(200)
        assert gateway.store.calls["claim_pending"] - before <= 200 / (0.4 * 50) + 1


async def test_a_session_whose_order_is_unsure_does_not_wait_for_the_rest() -> None:
    """SPEC DB-7."""
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.slow_before_s["claim_pending"] = 0.4
        await asyncio.sleep(10)
        gateway.store.broken = {"settle"}
        await gateway.say("/new", "after")
        gateway.store.broken = set()
        async with asyncio.timeout(5):
            await gateway.channel.until_sent(2)


async def test_rows_that_are_done_are_not_remembered() -> None:
    agent = ScriptedAgent(Block(), Say("done"))
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.say("works", chat="ann")
        await gateway.ask("hello", chat="bob")
        await gateway.ask("/help", chat="bob")
        await asyncio.sleep(10)
        assert len(gateway.runner.mailboxes.rows()) == 1
        assert gateway.pending == ["works"]


async def test_what_an_expired_node_has_found_is_left_to_its_next_process() -> None:
    """SPEC NODE-1: the answer to a look that began before belongs to nobody here."""
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.broken = {"claim_pending"}
        await commit_unseen(gateway, "ann")
        gateway.store.broken = set()
        gateway.store.slow_after_s["claim_pending"] = 5.0
        look = asyncio.create_task(gateway.gateway.reload())
        await asyncio.sleep(1)
        gateway.gateway.forget_everything(gateway.node())
        await gateway.cluster.join()
        await look
        assert gateway.runner.mailboxes.rows() == set()


async def test_a_stop_that_an_expired_node_could_not_commit_is_stored_when_that_is_possible() -> (
    None
):
    """SPEC CMD-1: it was answered, so it holds; no newer message ends in place of its own."""
    agent = ScriptedAgent(Block())
    async with a_process(agent, replace(AT_ONCE, main_lane=1)) as gateway:
        await gateway.say("long", chat="bob")
        await agent.until_active(1)
        await gateway.say("first", "second", chat="ann")
        gateway.store.slow_before_s["accept"] = 5.0
        stop = gateway.gateway.accept([message("/stop", chat="ann")])
        accepting = asyncio.create_task(stop)
        await asyncio.sleep(1)
        gateway.store.broken = {"accept", "claim_pending"}
        await gateway.store.end_lease(gateway.node(), now=gateway.clock.now())
        gateway.container.forget(gateway.node())
        await gateway.cluster.join()
        await gateway.cluster.recover()
        with suppress(StoreUnavailable):
            await accepting
        await asyncio.sleep(1)
        assert gateway.pending == ["long", "first", "second"]
        gateway.store.broken = set()
        await until(lambda: not gateway.pending)
        assert agent.prompts == ["long", "long", "second"]
