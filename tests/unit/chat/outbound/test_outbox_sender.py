"""The way out (SPEC IO-3 to IO-6)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest

from goclaw_py.chat.outbound.outbox_sender import UNSURE_FOR
from goclaw_py.core.errors import (
    ChannelRefused,
    ChatGone,
    Fenced,
    MaybeSent,
    NotSent,
    RateLimited,
    Undeliverable,
)
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.retry import send_delay_s
from goclaw_py.records import OutboxRow, OutboxState
from goclaw_py.testing.agents import Say, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel, SendFailure
from tests.support.again import SENT_AGAIN
from tests.support.harness import GatewayProcess, a_process, until
from tests.support.memory_store import MemoryDatabase
from tests.unit.chat.outbound.posts import AT_ONCE, put, rows, to


class Shouting(RecordingChannel):
    """Its markup is capitals."""

    def parts(self, text: str) -> list[str]:
        return [text.upper()]


async def the_row(gateway: GatewayProcess) -> OutboxRow:
    (row,) = await rows(gateway)
    return row


async def ends(gateway: GatewayProcess, *states: OutboxState) -> None:
    """Wait until all rows are in one of these states."""
    async with asyncio.timeout(7000):
        while any(row.state not in states for row in await rows(gateway)):
            await asyncio.sleep(1)


# ---------------------------------------------------------------------------- delivery


async def test_delivered_means_that_the_channel_confirmed_it() -> None:
    """SPEC IO-6: the run has completed long before."""
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.channel.slow_s["ann"] = 20.0
        await gateway.say("hello")
        await asyncio.sleep(10)
        assert await gateway.outcomes() == [Outcome.COMPLETED]
        assert (await the_row(gateway)).state is OutboxState.SENDING
        await asyncio.sleep(11)
        row = await the_row(gateway)
        assert (row.state, row.external_id) == (OutboxState.SENT, "1")
        assert row.sent_at == row.created_at.replace(second=row.created_at.second + 20)


async def test_messages_of_a_chat_arrive_in_order_through_all_failures() -> None:
    """SPEC IO-4."""
    async with a_process() as gateway:
        gateway.channel.fail(NotSent("no route"), RateLimited("slow down", 7.0), chat="ann")
        texts = [str(number) for number in range(20)]
        await put(gateway, *(to("ann", text) for text in texts))
        await gateway.channel.until_sent(20)
        assert gateway.channel.texts() == texts


async def test_a_blocked_chat_delays_no_other() -> None:
    """SPEC IO-4."""
    async with a_process() as gateway:
        gateway.channel.block("ann")
        await put(gateway, to("ann", "stuck"), to("ann", "behind it"))
        await asyncio.sleep(5)
        await put(gateway, *(to(f"p{number}", "hi") for number in range(50)))
        await until(lambda: len(gateway.channel.sent) == 50, within_s=1)
        gateway.channel.unblock("ann")
        await until(lambda: gateway.channel.texts("ann") == ["stuck", "behind it"], within_s=1)


async def test_a_chat_that_must_wait_delays_no_other() -> None:
    """SPEC IO-4."""
    async with a_process() as gateway:
        gateway.channel.fail(RateLimited("slow down", 300.0), chat="ann")
        await put(gateway, to("ann", "later"), to("bob", "now"))
        await until(lambda: gateway.channel.texts() == ["now"], within_s=1)


async def test_one_chat_never_has_two_senders() -> None:
    """SPEC IO-4."""
    async with a_process() as gateway:
        gateway.channel.slow_s["ann"] = 3.0
        for number in range(5):
            await put(gateway, to("ann", str(number)))
            await asyncio.sleep(0.5)
            assert gateway.outbox.sending == 1
        await gateway.channel.until_sent(5)
        assert gateway.channel.texts() == ["0", "1", "2", "3", "4"]


async def test_a_message_that_comes_as_its_chats_sender_ends_is_not_overlooked() -> None:
    """SPEC DB-3."""
    async with a_process() as gateway:
        gateway.store.slow_after_s["mark_sent"] = 0.3
        await put(gateway, to("ann", "one"))
        await gateway.channel.until_sent(1)
        await until(lambda: gateway.store.calls["mark_sent"] == 1)
        await put(gateway, to("ann", "two"))  # its chat has a sender that sends nothing more
        await until(lambda: gateway.channel.texts() == ["one", "two"], within_s=0.7)


async def test_a_lost_notice_costs_a_second_at_most() -> None:
    """SPEC DB-3."""
    async with a_process() as gateway:
        gateway.database.hearers.clear()
        await put(gateway, to("ann", "hello"))
        await until(lambda: gateway.channel.texts() == ["hello"], within_s=1.1)


async def test_a_chat_that_cannot_be_reached_waits_until_it_can() -> None:
    channel = RecordingChannel(unreachable={"me"})
    async with a_process(channels=(channel,)) as gateway:
        await put(gateway, to("me", "hello"), to("you", "hi"))
        await asyncio.sleep(300)
        assert channel.texts() == ["hi"]
        assert {row.message.text: row.attempts for row in await rows(gateway)} == {
            "hello": 0,
            "hi": 1,
        }
        channel.unreachable.clear()
        await until(lambda: channel.texts("me") == ["hello"], within_s=1.1)


async def test_messages_for_a_channel_that_is_not_here_are_left_alone() -> None:
    async with a_process() as gateway:
        await put(gateway, to("ann", "elsewhere", channel="matrix"))
        await asyncio.sleep(60)
        row = await the_row(gateway)
        assert (row.state, row.attempts) == (OutboxState.WAITING, 0)


async def test_two_processes_send_each_message_once() -> None:
    """SPEC NODE-1."""
    database = MemoryDatabase()
    async with a_process(database=database) as first, a_process(database=database) as second:
        await put(first, *(to(f"p{n % 7}", str(n)) for n in range(70)))
        channels = (first.channel, second.channel)
        await until(lambda: sum(len(channel.sent) for channel in channels) == 70)
        await asyncio.sleep(60)
        sent = [text for channel in channels for text in channel.texts()]
        assert sorted(sent, key=int) == [str(n) for n in range(70)]


# ---------------------------------------------------------------------------- failures


async def test_what_was_perhaps_sent_is_sent_again_with_a_line_that_says_so() -> None:
    """SPEC IO-5: only what may be there twice; the stored text stays as it is."""
    async with a_process() as gateway:
        gateway.channel.fail(SendFailure(MaybeSent("no answer"), arrives=True))
        await put(gateway, to("ann", "hello"), to("ann", "part two"))
        await ends(gateway, OutboxState.SENT, OutboxState.SENT)
        row, _ = await rows(gateway)
        assert (row.attempts, row.possible_duplicate) == (2, True)
        assert row.message.text == "hello"
        again = "hello\n\n(sent again, because Telegram did not confirm the first attempt)"
        assert gateway.channel.texts() == ["hello", again, "part two"]


async def test_a_line_that_something_is_sent_again_is_written_as_the_channel_takes_it() -> None:
    async with a_process(channels=(Shouting(name="matrix"),)) as gateway:
        gateway.channel.fail(MaybeSent("no answer"))
        target = Target("matrix", "default", "ann")
        await put(gateway, OutboundMessage(target, "HELLO", rich=True))
        await ends(gateway, OutboxState.SENT)
        line = "(SENT AGAIN, BECAUSE MATRIX DID NOT CONFIRM THE FIRST ATTEMPT)"
        assert gateway.channel.texts() == [f"HELLO\n\n{line}"]


async def test_a_repeated_edit_says_nothing_of_that() -> None:
    """SPEC IO-5: it is seen once."""
    async with a_process() as gateway:
        gateway.channel.fail(SendFailure(MaybeSent("no answer"), arrives=True))
        await put(gateway, replace(to("ann", "hello"), draft="5"))
        await ends(gateway, OutboxState.SENT)
        assert gateway.channel.texts() == ["hello", "hello"]


async def test_what_was_perhaps_sent_an_hour_ago_says_so_when_it_is_sent_by_hand() -> None:
    async with a_process() as gateway:
        gateway.channel.fail(*(MaybeSent("no answer") for _ in range(100)))
        await put(gateway, to("ann", "hello"))
        await ends(gateway, OutboxState.FAILED)
        gateway.channel.heal()
        await gateway.control.deliveries.retry_outbox([(await the_row(gateway)).id])
        await ends(gateway, OutboxState.SENT)
        assert gateway.channel.texts() == ["hello" + SENT_AGAIN]


async def test_a_flooded_chat_waits_as_long_as_the_server_says() -> None:
    """SPEC IO-3."""
    async with a_process() as gateway:
        gateway.channel.fail(RateLimited("slow down", 42.0))
        loop = asyncio.get_running_loop()
        before = loop.time()
        await put(gateway, to("ann", "hello"))
        await gateway.channel.until_sent(1)
        assert 42 <= loop.time() - before < 43.1
        assert not (await the_row(gateway)).possible_duplicate


async def test_a_permanent_error_ends_dead_with_its_reason_and_lets_the_next_through() -> None:
    """SPEC IO-3."""
    async with a_process() as gateway:
        gateway.channel.fail(Undeliverable("the bot was blocked"))
        await put(gateway, to("ann", "one"), to("ann", "two"))
        await ends(gateway, OutboxState.SENT, OutboxState.FAILED)
        first, _ = await rows(gateway)
        assert (first.state, first.error) == (OutboxState.FAILED, "the bot was blocked")
        assert gateway.channel.texts() == ["two"]


async def test_an_outage_of_minutes_kills_no_message() -> None:
    """SPEC IO-3: what the channel's server answers in an outage is no proof of anything."""
    async with a_process() as gateway:
        gateway.channel.fail(*(MaybeSent("502") for _ in range(8)))
        await put(gateway, to("ann", "hello"))
        await ends(gateway, OutboxState.SENT, OutboxState.FAILED)
        assert gateway.channel.texts() == ["hello" + SENT_AGAIN]
        assert (await the_row(gateway)).possible_duplicate


async def test_a_message_that_is_unsure_for_an_hour_is_dead() -> None:
    """SPEC IO-5: a person decides."""
    async with a_process() as gateway:
        gateway.channel.fail(*(MaybeSent("no answer") for _ in range(100)))
        before = asyncio.get_running_loop().time()
        await put(gateway, to("ann", "hello"))
        await ends(gateway, OutboxState.FAILED)
        assert asyncio.get_running_loop().time() - before > UNSURE_FOR.total_seconds()
        tries = len(gateway.channel.attempts)
        assert tries < 20
        await asyncio.sleep(1800)
        assert len(gateway.channel.attempts) == tries


async def test_failures_that_are_certain_are_repeated_for_ever() -> None:
    """SPEC IO-3, IO-5."""
    async with a_process() as gateway:
        gateway.channel.fail(*(NotSent("no route") for _ in range(40)))
        await put(gateway, to("ann", "hello"))
        await ends(gateway, OutboxState.SENT, OutboxState.FAILED)
        assert gateway.channel.texts() == ["hello"]
        row = await the_row(gateway)
        assert (row.attempts, row.possible_duplicate) == (41, False)


async def test_a_channel_that_refuses_us_is_tried_again_slowly() -> None:
    """SPEC CHAN-8: the message is not lost with the token."""
    async with a_process() as gateway:
        gateway.channel.fail(ChannelRefused("wrong token"))
        loop = asyncio.get_running_loop()
        before = loop.time()
        await put(gateway, to("ann", "hello"))
        await gateway.channel.until_sent(1)
        assert loop.time() - before >= 60


async def test_a_bug_in_a_channel_does_not_block_the_chat_for_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SPEC IO-3, IO-4."""
    async with a_process() as gateway:
        gateway.channel.fail(KeyError("a bug"))
        await put(gateway, to("ann", "one"), to("ann", "two"))
        await ends(gateway, OutboxState.SENT)
        assert gateway.channel.texts() == ["one" + SENT_AGAIN, "two"]
        first, _ = await rows(gateway)
        assert first.possible_duplicate
        assert "channel_send_crashed" in caplog.messages


# ---------------------------------------------------------------------------- crash and outage


async def test_a_crash_while_sending_is_repeated_and_marked() -> None:
    """SPEC IO-5."""
    database = MemoryDatabase()
    async with a_process(database=database) as first:
        first.channel.block("ann")
        await put(first, to("ann", "hello"), to("ann", "next"))
        await until(lambda: len(first.channel.attempts) == 1)
        first.kill()
        await asyncio.sleep(20)
        async with a_process(database=database) as second:
            await second.channel.until_sent(2)
            assert second.channel.texts() == ["hello" + SENT_AGAIN, "next"]
            marks = [row.possible_duplicate for row in await rows(second)]
            assert marks == [True, False]


async def test_the_mark_of_a_sent_message_waits_for_the_database() -> None:
    """SPEC DB-4: it is not sent again."""
    async with a_process() as gateway:
        gateway.channel.slow_s["ann"] = 2.0
        await put(gateway, to("ann", "hello"))
        await asyncio.sleep(1)
        gateway.store.away = True
        await asyncio.sleep(8)
        gateway.store.away = False
        await ends(gateway, OutboxState.SENT)
        assert gateway.channel.texts() == ["hello"]


async def test_sending_begins_again_when_the_database_is_back() -> None:
    """SPEC DB-4."""
    async with a_process() as gateway:
        await put(gateway, to("ann", "hello"))
        gateway.store.broken = {"claim_next"}
        await asyncio.sleep(30)
        gateway.store.broken = set()
        await until(lambda: gateway.channel.texts() == ["hello"], within_s=2)


async def test_a_claim_that_was_taken_over_is_left_to_its_new_owner(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SPEC NODE-1."""
    async with a_process() as gateway:
        gateway.store.errors["mark_sent"] = Fenced("somebody else has it")
        await put(gateway, to("ann", "hello"))
        await asyncio.sleep(10)
        assert gateway.channel.texts() == ["hello"]
        assert "outbox_message_taken_over" in caplog.messages


async def test_a_chat_that_is_due_but_cannot_be_claimed_does_not_spin() -> None:
    """A node that was declared dead can claim nothing until it has joined again."""
    async with a_process() as gateway:
        gateway.channel.block("bob")
        await put(gateway, to("bob", "holds no one up"))
        del gateway.database.nodes[gateway.node()]
        await put(gateway, to("ann", "hello"))
        before = gateway.store.calls["claim_next"]
        await until(lambda: gateway.channel.texts("ann") == ["hello"], within_s=5)
        assert gateway.store.calls["claim_next"] - before < 20


async def test_a_sender_that_breaks_is_logged_and_started_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)
    async with a_process() as gateway:
        gateway.store.errors["claim_next"] = ValueError("a bug in the store")
        await put(gateway, to("ann", "hello"))
        await until(lambda: gateway.channel.texts() == ["hello"], within_s=2)
        assert "outbox_sender_crashed" in caplog.messages


@pytest.mark.parametrize(
    ("failures", "least", "most"), [(1, 1.0, 1.5), (2, 2.0, 2.5), (4, 8.0, 8.5), (50, 60.0, 60.0)]
)
def test_the_delay_before_the_next_try_doubles_up_to_a_minute(
    failures: int, least: float, most: float
) -> None:
    """SPEC IO-3."""
    for _ in range(20):
        assert least <= send_delay_s(failures, 60) <= most


async def test_a_part_of_a_reply_that_is_refused_for_good_is_told_in_words() -> None:
    """SPEC IO-3: once, and not about that line itself."""
    async with a_process(ScriptedAgent(Say("one"))) as gateway:
        gateway.channel.fail(Undeliverable("Bad Request: no"), Undeliverable("Bad Request: no"))
        await gateway.say("hello")
        await until(lambda: len(gateway.channel.attempts) == 2)
        await asyncio.sleep(60)
        first, line = sorted(await rows(gateway), key=lambda row: row.id)
        assert (first.state, line.state) == (OutboxState.FAILED, OutboxState.FAILED)
        assert line.message.text == (
            "⚠️ I could not send a part of my answer: Telegram refused it (Bad Request: no). "
            "Ask me to send it in another way."
        )


@pytest.mark.parametrize("error", [ChatGone("blocked"), Undeliverable("Bad Request: no")])
async def test_who_is_gone_reads_nothing_and_what_answers_nobody_is_not_told(
    error: Undeliverable,
) -> None:
    async with a_process() as gateway:
        gateway.channel.fail(error)
        run = RunId("r") if isinstance(error, ChatGone) else None
        await put(gateway, replace(to("ann", "hello"), run_id=run))
        await asyncio.sleep(60)
        assert [row.state for row in await rows(gateway)] == [OutboxState.FAILED]
