"""Drafts whose channel, database or process has trouble (SPEC CHAN-4, IO-5, CMD-3)."""

from __future__ import annotations

import asyncio

import pytest

from goclaw_py.core.errors import (
    ChannelError,
    MaybeSent,
    MigrationError,
    NotSent,
    RateLimited,
    Undeliverable,
)
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import TextDelta
from goclaw_py.records import Draft
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, Emitting, Say, ScriptedAgent, Stream
from goclaw_py.testing.channel import RecordingChannel, SendFailure
from tests.support.again import SENT_AGAIN
from tests.support.drafting import DraftingChannel, only_row, outbox, replying
from tests.support.harness import Ways, a_process, until
from tests.support.memory_store import MemoryDatabase

AT_ONCE = Ways(QueuePolicy())
SLOW = Stream(tuple(f"{number}," for number in range(10)), every_s=0.5)
SLOW_TEXT = "".join(SLOW.pieces)
ONE_TWO = Stream(("one ", "two"), every_s=2)
JITTER_S = 1e-6
BLOCKED = Emitting((TextDelta("so far"),), Block("the end"))
ARRIVED = SendFailure(MaybeSent("no answer"), arrives=True)


async def test_a_post_that_hangs_as_the_run_ends_costs_five_seconds_and_is_removed_later() -> None:
    """Nobody knows whether it is in the chat, so the reply may be there twice."""
    async with replying(ONE_TWO, draft_slow_s=60.0) as (gateway, channel):
        await until(lambda: bool(channel.ended()))
        assert 7 <= asyncio.get_running_loop().time() <= 7.1
        await channel.until_sent(1)
        assert await only_row(gateway) == (None, True)
        await asyncio.sleep(120)
        assert (channel.deleted, channel.visible()) == ({"draft-1"}, ["one two" + SENT_AGAIN])


async def test_a_reply_finishes_a_draft_whose_answer_comes_after_it() -> None:
    """The late answer does not remove the reply."""
    async with replying(ONE_TWO, answer_slow_s=60.0) as (_, channel):
        await channel.until_sent(1)
        await asyncio.sleep(120)
        assert (channel.deleted, channel.visible()) == (set(), ["one two"])


async def test_a_post_that_ends_shortly_after_its_run_is_finished_all_the_same() -> None:
    async with replying(ONE_TWO, draft_slow_s=4.0) as (gateway, channel):
        await channel.until_sent(1)
        assert await only_row(gateway) == ("draft-1", False)
        assert channel.visible() == ["one two"]


async def test_an_edit_that_hangs_cannot_undo_the_final_one() -> None:
    """It is given up before the reply leaves."""
    async with replying(Stream(("one ", "two ", "three"), every_s=2)) as (_, channel):
        await until(lambda: len(channel.asked) == 1)
        channel.draft_slow_s = 60.0
        await channel.until_sent(1)
        await asyncio.sleep(120)
        assert channel.drafted["draft-1"] == ["one ", "one two three"]


async def test_a_draft_whose_answer_was_lost_is_found_and_grows_on() -> None:
    async with replying(SLOW, draft_failures=[ARRIVED]) as (gateway, channel):
        await channel.until_sent(1)
        assert len(channel.drafted["draft-1"]) > 2
        assert channel.visible() == [SLOW_TEXT]
        assert await only_row(gateway) == ("draft-1", False)


async def test_a_reply_beside_a_draft_that_is_not_found_is_recorded_and_says_so() -> None:
    """SPEC IO-5: the draft may be in the chat."""
    lost = SendFailure(MaybeSent("no answer"))
    async with replying(SLOW, draft_failures=[lost]) as (gateway, channel):
        await channel.until_sent(1)
        assert len(channel.asked) == 1
        assert channel.visible() == [SLOW_TEXT + SENT_AGAIN]
        assert await only_row(gateway) == (None, True)
        assert (await outbox(gateway))[0].attempts == 1


async def test_a_lost_draft_is_looked_for_three_times(caplog: pytest.LogCaptureFixture) -> None:
    """It may arrive late; each look is a request or more."""
    talking, lost = Stream(("x",) * 700, every_s=0.5), SendFailure(MaybeSent("no answer"))
    async with replying(talking, draft_failures=[lost]):
        await asyncio.sleep(300)
        looks = [one for one in caplog.records if one.message == "draft_looked_for"]
        assert len(looks) == 3


async def test_the_lost_draft_of_a_run_that_is_stopped_is_removed() -> None:
    async with replying(BLOCKED, draft_failures=[ARRIVED]) as (gateway, channel):
        await until(lambda: bool(channel.drafted))
        await gateway.say("/stop", apart_s=60)
        assert channel.visible() == ["Stopped."]


@pytest.mark.parametrize(
    "error", [NotSent("no route"), RateLimited("slow down", 2.5), RateLimited("slow down", 300.0)]
)
async def test_a_post_that_certainly_failed_is_tried_again(error: ChannelError) -> None:
    """When the server says so."""
    talking = Stream(("x",) * 700, every_s=0.5)
    async with replying(talking, draft_failures=[SendFailure(error)]) as (gateway, channel):
        await channel.until_sent(1)
        assert channel.edits[1] - channel.edits[0] > (error.retry_after_s or 2.0) - JITTER_S
        assert await only_row(gateway) == ("draft-1", False)


@pytest.mark.parametrize("before", [[], [NotSent("no route")]])
async def test_a_refused_draft_leaves_the_reply_to_the_outbox(before: list[ChannelError]) -> None:
    failures = [SendFailure(error) for error in (*before, Undeliverable("no"))]
    async with replying(SLOW, draft_failures=failures.copy()) as (gateway, channel):
        await channel.until_sent(1)
        assert len(channel.asked) == len(failures)
        assert channel.visible() == [SLOW_TEXT]
        assert await only_row(gateway) == (None, False)


async def test_an_edit_that_fails_is_made_up_for_by_the_next() -> None:
    async with replying(SLOW) as (gateway, channel):
        await until(lambda: len(channel.asked) == 1)
        channel.draft_failures = [ARRIVED]
        await channel.until_sent(1)
        assert len(channel.asked) >= 3
        assert await only_row(gateway) == ("draft-1", False)


async def test_a_bug_in_a_draft_costs_the_answer_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with replying(SLOW, draft_failures=[SendFailure(KeyError("a bug"))]) as (
        gateway,
        channel,
    ):
        await channel.until_sent(1)
        assert channel.texts() == [SLOW_TEXT + SENT_AGAIN]
        assert "draft_update_crashed" in caplog.messages
        assert (await only_row(gateway))[1]


async def test_a_draft_waits_for_the_database_and_is_posted_with_what_was_said_meanwhile() -> None:
    """SPEC DB-4."""
    async with replying(SLOW) as (gateway, channel):
        gateway.store.broken = {"open_draft"}
        await asyncio.sleep(3)
        assert channel.asked == []
        gateway.store.broken = set()
        await until(lambda: bool(channel.asked), within_s=6)
        assert len(channel.asked[0][1].text) > len("0,1,2,3,")
        await channel.until_sent(1)
        assert channel.visible() == [SLOW_TEXT]


async def test_a_draft_of_a_run_that_was_never_stored_is_not_shown() -> None:
    """Its end was stored by somebody else meanwhile; the session is fenced."""
    async with replying(BLOCKED) as (gateway, channel):
        await until(lambda: bool(gateway.database.runs))
        gateway.database.runs.clear()
        await asyncio.sleep(60)
        assert channel.asked == []


async def test_a_draft_that_meets_an_error_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    async with replying(SLOW) as (gateway, channel):
        gateway.store.errors["open_draft"] = MigrationError("no such table")
        await channel.until_sent(1)
        assert (channel.texts(), channel.asked) == ([SLOW_TEXT], [])
        (record,) = [r for r in caplog.records if r.message == "draft_given_up"]
        assert vars(record)["error"] == "no such table"


async def interrupted() -> MemoryDatabase:
    """A shutdown has interrupted a run that showed a draft."""
    async with replying(BLOCKED) as (gateway, channel):
        await asyncio.sleep(5)
        await gateway.shut_down(wait_s=1)
        assert channel.closed_drafts() == []
    drafts = gateway.database.drafts.values()
    assert [draft.external_id for draft in drafts] == ["draft-1"]
    return gateway.database


async def test_a_run_that_a_shutdown_interrupts_is_gone_on_with_in_the_same_draft() -> None:
    """SPEC QUEUE-11."""
    database, channel = await interrupted(), DraftingChannel()
    agent = ScriptedAgent(SLOW)
    async with a_process(agent, AT_ONCE, database=database, channels=(channel,)) as gateway:
        await channel.until_sent(1)
        assert list(channel.drafted) == ["draft-1"]
        assert channel.visible() == [SLOW_TEXT]
        assert not (await only_row(gateway))[1]


async def test_a_reply_in_an_old_draft_replaces_it_though_no_draft_is_shown_now() -> None:
    channel = RecordingChannel()
    async with a_process(database=await interrupted(), channels=(channel,)):
        await channel.until_sent(1)
        assert (channel.sent[0].draft, channel.sent[0].text) == ("draft-1", "re: hello")


@pytest.mark.parametrize("slow", ["channel", "database"])
async def test_a_shutdown_in_the_midst_of_a_post_still_keeps_its_id(slow: str) -> None:
    """SPEC QUEUE-11: the next process goes on in the same draft."""
    async with replying(BLOCKED) as (gateway, channel):
        if slow == "channel":
            channel.draft_slow_s = 3.0
        else:
            gateway.store.slow_before_s["draft_posted"] = 3.0
        await asyncio.sleep(2)
        await gateway.shut_down(wait_s=0)
        (draft,) = gateway.database.drafts.values()
        assert draft.external_id == "draft-1"


async def test_an_id_that_could_not_be_kept_does_not_delay_the_signal() -> None:
    async with replying(BLOCKED) as (gateway, channel):
        gateway.store.broken = {"draft_posted"}
        await asyncio.sleep(2)
        await gateway.say("/stop", apart_s=0.1)
        assert [end.outcome for end in channel.ended()] == [Outcome.CANCELLED]
        await until(lambda: channel.visible()[0].endswith("⏹ Stopped."))


async def test_a_draft_belongs_to_its_run_and_target() -> None:
    async with replying(BLOCKED) as (gateway, _):
        await asyncio.sleep(5)
        run_id = gateway.scripted.requests[0].run_id
        target = Target("telegram", "default", "ann")
        assert await gateway.store.drafts() == [Draft(run_id, target, "draft-1")]


async def test_a_run_that_began_with_a_late_lease_is_shown_when_that_is_renewed() -> None:
    """SPEC CHAN-4, DB-4: nobody took its session over."""
    agent = ScriptedAgent(Say("first", after_s=12.5), Stream(tuple("abcdefghij"), every_s=1))
    channel = RecordingChannel(drafting=True)
    async with a_process(agent, AT_ONCE, channels=(channel,)) as gateway:
        await gateway.say("one", "two")
        await asyncio.sleep(1)
        gateway.store.broken = {"renew"}
        await asyncio.sleep(12)
        gateway.store.broken = set()
        await channel.until_sent(2)
        assert len(channel.drafted["draft-1"]) > 3


async def test_a_draft_that_cannot_be_looked_for_until_the_end_becomes_the_reply() -> None:
    slower = Stream(ONE_TWO.pieces, every_s=3)
    async with replying(slower, draft_failures=[ARRIVED]) as (gateway, channel):
        await until(lambda: bool(channel.drafted))
        channel.fail(NotSent("no route"))
        await channel.until_sent(1)
        assert channel.visible() == ["one two"]
        (row,) = await outbox(gateway)
        assert (row.external_id, row.attempts) == ("draft-1", 1)
