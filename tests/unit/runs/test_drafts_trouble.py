"""Drafts whose channel, database or process has trouble (SPEC CHAN-4, IO-5)."""

from __future__ import annotations

import asyncio

import pytest

from goclaw_py.model.errors import (
    ChannelError,
    MaybeSent,
    MigrationError,
    NotSent,
    RateLimited,
    Undeliverable,
)
from goclaw_py.model.messages import Target
from goclaw_py.model.outcomes import Outcome
from goclaw_py.model.run_events import TextDelta
from goclaw_py.ports.store import Draft
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, Emitting, Say, ScriptedAgent, Stream
from goclaw_py.testing.channel import RecordingChannel, SendFailure
from tests.support.drafting import DraftingChannel, drafting, outbox
from tests.support.harness import Ways, a_process, until

AT_ONCE = Ways(QueuePolicy(), QueuePolicy(concurrency=3))
SLOW = Stream(tuple(f"{number}," for number in range(10)), every_s=0.5)
SLOW_TEXT = "".join(SLOW.pieces)
JITTER_S = 1e-6
BLOCKED = Emitting((TextDelta("so far"),), Block("the end"))


# ---------------------------------------------------------------------------- the channel


async def test_a_post_that_hangs_as_the_run_ends_costs_five_seconds_and_is_removed_later() -> None:
    """SPEC IO-5: nobody knows whether it is in the chat, so the reply may be there twice."""
    channel = DraftingChannel()
    channel.draft_slow_s = 60.0
    agent = ScriptedAgent(Stream(("one ", "two"), every_s=2))
    async with a_process(agent, AT_ONCE, channels=(channel,)) as gateway:
        await gateway.say("hello")
        await until(lambda: bool(channel.ended()))
        assert 7 <= asyncio.get_running_loop().time() <= 7.1
        await channel.until_sent(1)
        (row,) = await outbox(gateway)
        assert (row.message.draft, row.possible_duplicate) == (None, True)
        await asyncio.sleep(120)
        assert channel.deleted == {"draft-1"}
        assert channel.visible() == ["one two"]


async def test_a_reply_finishes_a_draft_whose_answer_comes_after_it() -> None:
    """SPEC IO-5: the late answer does not remove the reply."""
    channel = DraftingChannel()
    channel.answer_slow_s = 60.0
    agent = ScriptedAgent(Stream(("one ", "two"), every_s=2))
    async with a_process(agent, AT_ONCE, channels=(channel,)) as gateway:
        await gateway.say("hello")
        await channel.until_sent(1)
        await asyncio.sleep(120)
        assert channel.visible() == ["one two"]
        assert channel.deleted == set()


async def test_a_post_that_ends_shortly_after_its_run_is_finished_all_the_same() -> None:
    channel = DraftingChannel()
    channel.draft_slow_s = 4.0
    agent = ScriptedAgent(Stream(("one ", "two"), every_s=2))
    async with a_process(agent, AT_ONCE, channels=(channel,)) as gateway:
        await gateway.say("hello")
        await channel.until_sent(1)
        (row,) = await outbox(gateway)
        assert (row.message.draft, row.possible_duplicate) == ("draft-1", False)
        assert channel.visible() == ["one two"]


async def test_an_edit_that_hangs_cannot_undo_the_final_one() -> None:
    """SPEC IO-5: it is given up before the reply leaves."""
    channel = DraftingChannel()
    agent = ScriptedAgent(Stream(("one ", "two ", "three"), every_s=2))
    async with a_process(agent, AT_ONCE, channels=(channel,)) as gateway:
        await gateway.say("hello")
        await until(lambda: len(channel.asked) == 1)
        channel.draft_slow_s = 60.0
        await channel.until_sent(1)
        await asyncio.sleep(120)
        assert channel.drafted["draft-1"] == ["one ", "one two three"]


async def test_a_draft_whose_answer_was_lost_is_found_and_grows_on() -> None:
    """SPEC IO-5."""
    channel = DraftingChannel()
    channel.draft_failures = [SendFailure(MaybeSent("no answer"), arrives=True)]
    async with a_process(ScriptedAgent(SLOW), AT_ONCE, channels=(channel,)) as gateway:
        await gateway.say("hello")
        await channel.until_sent(1)
        assert len(channel.drafted["draft-1"]) > 2
        assert channel.visible() == [SLOW_TEXT]
        (row,) = await outbox(gateway)
        assert (row.message.draft, row.possible_duplicate) == ("draft-1", False)


async def test_a_draft_that_is_not_found_is_recorded_and_nothing_more_is_shown() -> None:
    """SPEC IO-5: the reply is no repeat, so no line says so."""
    channel = DraftingChannel()
    channel.draft_failures = [SendFailure(MaybeSent("no answer"))]
    async with a_process(ScriptedAgent(SLOW), AT_ONCE, channels=(channel,)) as gateway:
        await gateway.say("hello")
        await channel.until_sent(1)
        assert len(channel.asked) == 1
        assert channel.visible() == [SLOW_TEXT]
        (row,) = await outbox(gateway)
        assert (row.message.draft, row.possible_duplicate) == (None, True)
        assert row.attempts == 1


async def test_a_draft_that_cannot_be_looked_for_until_the_end_becomes_the_reply() -> None:
    channel = DraftingChannel()
    channel.draft_failures = [SendFailure(MaybeSent("no answer"), arrives=True)]
    agent = ScriptedAgent(Stream(("one ", "two"), every_s=3))
    async with a_process(agent, AT_ONCE, channels=(channel,)) as gateway:
        await gateway.say("hello")
        await until(lambda: bool(channel.drafted))
        channel.fail(NotSent("no route"))
        await channel.until_sent(1)
        assert channel.visible() == ["one two"]
        (row,) = await outbox(gateway)
        assert (row.external_id, row.attempts) == ("draft-1", 1)


async def test_the_lost_draft_of_a_run_that_is_stopped_is_removed() -> None:
    """SPEC CMD-3."""
    channel = DraftingChannel()
    channel.draft_failures = [SendFailure(MaybeSent("no answer"), arrives=True)]
    async with a_process(ScriptedAgent(BLOCKED), AT_ONCE, channels=(channel,)) as gateway:
        await gateway.say("hello")
        await until(lambda: bool(channel.drafted))
        await gateway.say("/stop", apart_s=60)
        assert channel.visible() == ["Stopped."]


@pytest.mark.parametrize("error", [NotSent("no route"), RateLimited("slow down", 2.5)])
async def test_a_post_that_certainly_failed_is_tried_again(error: ChannelError) -> None:
    channel = DraftingChannel()
    channel.draft_failures = [SendFailure(error)]
    async with a_process(ScriptedAgent(SLOW), AT_ONCE, channels=(channel,)) as gateway:
        await gateway.say("hello")
        await channel.until_sent(1)
        assert channel.edits[1] - channel.edits[0] > (error.retry_after_s or 2.0) - JITTER_S
        (row,) = await outbox(gateway)
        assert (row.message.draft, row.possible_duplicate) == ("draft-1", False)


async def test_a_draft_waits_as_long_as_the_server_says() -> None:
    channel = DraftingChannel()
    channel.draft_failures = [SendFailure(RateLimited("slow down", 300.0))]
    agent = ScriptedAgent(Stream(("x",) * 700, every_s=0.5))
    async with a_process(agent, AT_ONCE, channels=(channel,)) as gateway:
        await gateway.say("hello")
        await until(lambda: len(channel.asked) == 2)
        assert channel.edits[1] - channel.edits[0] > 300 - JITTER_S


@pytest.mark.parametrize("failures", [1, 2])
async def test_a_draft_that_is_refused_for_good_leaves_the_reply_to_the_outbox(
    failures: int,
) -> None:
    channel = DraftingChannel()
    channel.draft_failures = [SendFailure(Undeliverable("no"))]
    if failures == 2:
        channel.draft_failures.insert(0, SendFailure(NotSent("no route")))
    async with a_process(ScriptedAgent(SLOW), AT_ONCE, channels=(channel,)) as gateway:
        await gateway.say("hello")
        await channel.until_sent(1)
        assert len(channel.asked) == failures
        assert channel.visible() == [SLOW_TEXT]
        assert not (await outbox(gateway))[0].possible_duplicate


async def test_an_edit_that_fails_is_made_up_for_by_the_next() -> None:
    channel = DraftingChannel()
    async with a_process(ScriptedAgent(SLOW), AT_ONCE, channels=(channel,)) as gateway:
        await gateway.say("hello")
        await until(lambda: len(channel.asked) == 1)
        channel.draft_failures = [SendFailure(MaybeSent("reset"), arrives=True)]
        await channel.until_sent(1)
        assert len(channel.asked) >= 3
        (row,) = await outbox(gateway)
        assert (row.message.draft, row.possible_duplicate) == ("draft-1", False)


async def test_a_channel_that_breaks_on_a_draft_costs_the_answer_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    channel = DraftingChannel()
    channel.draft_failures = [SendFailure(KeyError("a bug"))]
    async with a_process(ScriptedAgent(SLOW), AT_ONCE, channels=(channel,)) as gateway:
        await gateway.say("hello")
        await channel.until_sent(1)
        assert channel.texts() == [SLOW_TEXT]
        assert "draft_update_crashed" in caplog.messages
        assert (await outbox(gateway))[0].possible_duplicate


async def test_a_draft_waits_for_the_database_and_is_posted_with_what_was_said_meanwhile() -> None:
    """SPEC DB-4, IO-5."""
    channel = DraftingChannel()
    async with a_process(ScriptedAgent(SLOW), AT_ONCE, channels=(channel,)) as gateway:
        gateway.store.broken = {"open_draft"}
        await gateway.say("hello", apart_s=3)
        assert channel.asked == []
        gateway.store.broken = set()
        await until(lambda: bool(channel.asked), within_s=6)
        assert len(channel.asked[0][1].text) > len("0,1,2,3,")
        await channel.until_sent(1)
        assert channel.visible() == [SLOW_TEXT]


async def test_a_draft_of_a_run_that_was_never_stored_is_not_shown() -> None:
    """Its end was stored by somebody else meanwhile; the session is fenced."""
    channel = DraftingChannel()
    async with a_process(ScriptedAgent(BLOCKED), AT_ONCE, channels=(channel,)) as gateway:
        await gateway.say("hello")
        await until(lambda: bool(gateway.database.runs))
        gateway.database.runs.clear()
        await asyncio.sleep(60)
        assert channel.asked == []


async def test_a_draft_that_meets_a_store_error_is_not_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with a_process(ScriptedAgent(SLOW), AT_ONCE, channels=(DraftingChannel(),)) as gateway:
        gateway.store.errors["open_draft"] = MigrationError("no such table")
        assert await gateway.ask("hello") == SLOW_TEXT
        assert drafting(gateway).asked == []
        assert [vars(r)["error"] for r in caplog.records if r.message == "draft_given_up"] == [
            "no such table"
        ]


# ---------------------------------------------------------------------------- shutdown


async def test_a_run_that_a_shutdown_interrupts_is_gone_on_with_in_the_same_draft() -> None:
    """SPEC QUEUE-11, IO-5."""
    first, second = DraftingChannel(), DraftingChannel()
    async with a_process(ScriptedAgent(BLOCKED), AT_ONCE, channels=(first,)) as gateway:
        await gateway.say("hello", apart_s=5)
        database = gateway.database
        await gateway.shut_down(wait_s=1)
        assert first.closed_drafts() == []
        assert [draft.external_id for draft in database.drafts.values()] == ["draft-1"]
    async with a_process(
        ScriptedAgent(SLOW), AT_ONCE, database=database, channels=(second,)
    ) as gateway:
        await second.until_sent(1)
        assert list(second.drafted) == ["draft-1"]
        assert second.visible() == [SLOW_TEXT]
        (row,) = await outbox(gateway)
        assert not row.possible_duplicate


@pytest.mark.parametrize("slow", ["channel", "database"])
async def test_a_shutdown_in_the_midst_of_a_post_still_keeps_its_id(slow: str) -> None:
    """SPEC QUEUE-11: the next process goes on in the same draft."""
    channel = DraftingChannel()
    async with a_process(ScriptedAgent(BLOCKED), AT_ONCE, channels=(channel,)) as gateway:
        if slow == "channel":
            channel.draft_slow_s = 3.0
        else:
            gateway.store.slow_before_s["draft_posted"] = 3.0
        await gateway.say("hello", apart_s=2)
        await gateway.shut_down(wait_s=0)
        (draft,) = gateway.database.drafts.values()
        assert draft.external_id == "draft-1"


async def test_an_id_that_could_not_be_kept_does_not_delay_the_signal() -> None:
    """SPEC CMD-3."""
    channel = DraftingChannel()
    async with a_process(ScriptedAgent(BLOCKED), AT_ONCE, channels=(channel,)) as gateway:
        gateway.store.broken = {"draft_posted"}
        await gateway.say("hello", apart_s=2)
        await gateway.say("/stop", apart_s=0.1)
        assert [end.outcome for end in channel.ended()] == [Outcome.CANCELLED]
        await until(lambda: channel.visible()[0].endswith("⏹ Stopped."))


async def test_a_reply_in_an_old_draft_replaces_it_though_no_draft_is_shown_now() -> None:
    first, second = DraftingChannel(), RecordingChannel()
    async with a_process(ScriptedAgent(BLOCKED), AT_ONCE, channels=(first,)) as gateway:
        await gateway.say("hello", apart_s=5)
        database = gateway.database
        await gateway.shut_down(wait_s=1)
    async with a_process(database=database, channels=(second,)):
        await second.until_sent(1)
        assert (second.sent[0].draft, second.sent[0].text) == ("draft-1", "re: hello")


async def test_a_draft_belongs_to_its_run_and_target() -> None:
    async with a_process(ScriptedAgent(BLOCKED), AT_ONCE, channels=(DraftingChannel(),)) as gateway:
        await gateway.say("hello", apart_s=5)
        target = Target("telegram", "default", "ann")
        run_id = gateway.scripted.requests[0].run_id
        assert await gateway.store.drafts() == [Draft(run_id, target, "draft-1")]


async def test_a_run_that_began_with_a_late_lease_is_shown_when_that_is_renewed() -> None:
    """SPEC CHAN-4, DB-4: nobody took its session over."""
    agent = ScriptedAgent(Say("first", after_s=12.5), Stream(tuple("abcdefghij"), every_s=1))
    channel = RecordingChannel(drafting=True)
    async with a_process(agent, Ways(QueuePolicy()), channels=(channel,)) as gateway:
        await gateway.say("one", "two")
        await asyncio.sleep(1)
        gateway.store.broken = {"renew"}
        await asyncio.sleep(12)
        gateway.store.broken = set()
        await channel.until_sent(2)
        assert len(channel.drafted["draft-1"]) > 3
