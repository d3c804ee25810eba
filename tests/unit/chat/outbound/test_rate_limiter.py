"""How fast chats are written to (SPEC IO-4)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goclaw_py.chat.outbound import texts as wording
from goclaw_py.chat.outbound.rate_limit import RateLimit
from goclaw_py.chat.outbound.rate_limiter import RateLimiter
from goclaw_py.core.errors import NotSent, RateLimited
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.run_events import TextDelta
from goclaw_py.records import OutboxState
from goclaw_py.testing.agents import Block, Emitting, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.testing.loop import VirtualLoop
from tests.support.harness import a_process, message, until
from tests.support.memory_store import MemoryDatabase
from tests.unit.chat.outbound.posts import AT_ONCE, put, rows

DIRECT = RateLimit(gap_s=1.0, account_per_s=30)
GROUP = RateLimit(gap_s=1.0, per_minute=20, account_per_s=30)
JITTER_S = 1e-6


class PacedChannel(RecordingChannel):
    """Paces as Telegram does: chats whose ids begin with a minus are groups."""

    def __init__(self, *, trusted: bool = True) -> None:
        super().__init__(trusted=trusted)
        self.sent_at: list[float] = []

    def pace(self, chat: str) -> RateLimit:
        return GROUP if chat.startswith("-") else DIRECT

    async def send(self, message: OutboundMessage) -> str:
        external_id = await super().send(message)
        self.sent_at.append(asyncio.get_running_loop().time())
        return external_id


def target(chat: str) -> Target:
    return Target("telegram", "default", chat)


def to(chat: str, *texts: str) -> list[OutboundMessage]:
    return [OutboundMessage(target(chat), text) for text in texts]


async def test_a_chat_gets_one_message_a_second_in_their_order() -> None:
    channel = PacedChannel()
    async with a_process(channels=(channel,)) as gateway:
        await put(gateway, *to("ann", *"12345"))
        await channel.until_sent(5)
        assert channel.texts() == list("12345")
        assert [round(at) for at in channel.sent_at] == [0, 1, 2, 3, 4]


async def test_the_gap_between_two_messages_begins_when_the_first_one_has_arrived() -> None:
    """SPEC IO-4: the server counts arrivals, and a request may be under way for long."""
    channel = PacedChannel()
    async with a_process(channels=(channel,)) as gateway:
        channel.slow_s["ann"] = 0.5
        await put(gateway, *to("ann", "1", "2"))
        await until(lambda: len(channel.attempts) == 1)
        channel.slow_s["ann"] = 0.0
        await gateway.say("/stop")
        await channel.until_sent(3)
        assert channel.texts() == ["1", wording.NOTHING_RUNNING, "2"]
        assert min(b - a for a, b in pairwise(channel.sent_at)) > 1 - JITTER_S


async def test_a_flooded_group_delays_no_other_chat() -> None:
    channel = PacedChannel()
    async with a_process(ways=AT_ONCE, channels=(channel,)) as gateway:
        await put(gateway, *to("-100", *(str(number) for number in range(100))))
        await asyncio.sleep(30)
        before = asyncio.get_running_loop().time()
        await gateway.ask("hello")
        assert asyncio.get_running_loop().time() - before < 0.5


async def test_a_failed_try_counts_and_what_follows_it_keeps_its_pace() -> None:
    channel = PacedChannel()
    async with a_process(channels=(channel,)) as gateway:
        channel.fail(RateLimited("slow down", 7.0), NotSent("no route"))
        await put(gateway, *to("ann", "1", "2"))
        await channel.until_sent(2)
        assert channel.sent_at[0] >= 7
        assert channel.sent_at[1] - channel.sent_at[0] > 1 - JITTER_S


async def test_nothing_is_claimed_before_its_turn() -> None:
    """SPEC IO-5: what is claimed counts as being sent if the process dies."""
    database = MemoryDatabase()
    async with a_process(database=database, channels=(PacedChannel(),)) as first:
        await put(first, *to("ann", *"12345"))
        await asyncio.sleep(1.5)
        assert len(first.channel.sent) == 2
        first.kill()
    await asyncio.sleep(20)
    async with a_process(database=database, channels=(PacedChannel(),)) as second:
        await until(lambda: not database.unsent)
        assert second.channel.texts() == ["3", "4", "5"]
        assert not any(row.possible_duplicate for row in await rows(second))


async def test_a_chat_that_became_unreachable_while_it_waited_is_not_claimed() -> None:
    channel = PacedChannel()
    async with a_process(channels=(channel,)) as gateway:
        await put(gateway, *to("ann", "1", "2"))
        await channel.until_sent(1)
        channel.unreachable.add("ann")
        await asyncio.sleep(60)
        assert channel.texts() == ["1"]
        assert (await rows(gateway))[1].state is OutboxState.WAITING
        channel.unreachable.clear()
        await channel.until_sent(2)


async def test_the_answer_to_a_stop_goes_before_all_other_messages() -> None:
    """SPEC CMD-1: of its chat and of the account, as soon as its chat takes one."""
    agent = ScriptedAgent(Block())
    async with a_process(agent, AT_ONCE, channels=(PacedChannel(),)) as gateway:
        await gateway.say("work")
        await agent.until_active(1)
        await put(gateway, *to("ann", *(str(number) for number in range(30))))
        await put(gateway, *(one for chat in range(300) for one in to(f"p{chat}", "hi")))
        await asyncio.sleep(0.1)
        await gateway.say("/stop")
        assert agent.active == set()
        await until(lambda: "Stopped." in gateway.channel.texts("ann"), within_s=1.1)
        assert gateway.channel.texts("ann").index("Stopped.") <= 1


@pytest.mark.parametrize("chat", ["ann", "-100"])
async def test_the_answers_to_many_stops_obey_the_pace_and_are_said_together(chat: str) -> None:
    """SPEC CMD-1, IO-4."""
    channel = PacedChannel()
    agent = ScriptedAgent(otherwise=lambda _: Block())
    async with a_process(agent, AT_ONCE, channels=(channel,)) as gateway:
        await gateway.say(*(f"work {number}" for number in range(9)), chat=chat)
        await agent.until_active(1)
        await gateway.say(*("/stop" for _ in range(20)), chat=chat, apart_s=0.1)
        await asyncio.sleep(100)
        assert channel.texts() == ["Stopped.", "Stopped 8 tasks.", wording.NOTHING_RUNNING]
        assert min(b - a for a, b in pairwise(channel.sent_at)) > 1 - JITTER_S


async def test_a_second_stop_says_nothing_where_the_reply_shows_that_it_was_stopped() -> None:
    """SPEC CMD-1."""
    channel = PacedChannel()
    channel.drafting = True
    agent = ScriptedAgent(Emitting((TextDelta("so far"),), Block()))
    async with a_process(agent, AT_ONCE, channels=(channel,)) as gateway:
        await gateway.say("work")
        await channel.until(lambda: bool(channel.drafted))
        await gateway.say("/stop", "/stop", "/stop")
        await asyncio.sleep(100)
        assert channel.texts() == ["so far\n\n⏹ Stopped."]


async def test_a_shutdown_is_not_delayed_by_pace_and_leaves_no_doubt() -> None:
    """SPEC QUEUE-11, IO-5."""
    async with a_process(channels=(PacedChannel(),)) as gateway:
        await put(gateway, *to("-100", *(str(number) for number in range(25))))
        await asyncio.sleep(30)
        before = asyncio.get_running_loop().time()
        await gateway.shut_down(wait_s=0)
        assert asyncio.get_running_loop().time() - before <= 5.1
        assert not any(row.possible_duplicate for row in gateway.database.outbox.values())
        assert len(gateway.database.unsent["telegram", "default", "-100"]) == 5


async def test_a_shutdown_sends_all_that_may_be_sent_in_its_time() -> None:
    """All messages of a reply, not the first of them."""
    channel = PacedChannel()
    async with a_process(channels=(channel,)) as gateway:
        await asyncio.sleep(0.5)
        await put(gateway, *to("ann", "1", "2", "3"))
        await gateway.shut_down(wait_s=0)
        assert channel.texts() == ["1", "2", "3"]


async def test_a_shutdown_does_not_spin_on_what_it_cannot_claim() -> None:
    async with a_process(channels=(PacedChannel(),)) as gateway:
        del gateway.database.nodes[gateway.node()]
        await put(gateway, *to("ann", "1"))
        before = gateway.store.calls["claim_next"]
        await gateway.outbox.close(5.0)
        assert gateway.store.calls["claim_next"] - before < 10


async def test_a_thousand_strangers_at_once_delay_nobody_who_is_known() -> None:
    """SPEC CHAN-5: limits that strangers cannot exhaust for others."""
    channel = PacedChannel(trusted=False)
    async with a_process(ways=AT_ONCE, channels=(channel,)) as gateway:
        await gateway.ask("hello")
        (request,) = await gateway.store.pairing_requests(now=gateway.clock.now())
        await gateway.store.approve(request.code_hash, guest=False, now=gateway.clock.now())
        await channel.until_sent(3)
        await asyncio.sleep(1)
        await gateway.gateway.accept([message("hi", chat=f"s{n}") for n in range(900)])
        await asyncio.sleep(8)  # the owner reads of some of them
        before = asyncio.get_running_loop().time()
        assert await gateway.ask("work") == "re: work"
        assert asyncio.get_running_loop().time() - before < 2
        await channel.until_sent(910)
        assert asyncio.get_running_loop().time() < 40


@dataclass(slots=True)
class Line:
    """What went through a pacing, and when."""

    pacing: RateLimiter
    passed: list[tuple[str, str, float]] = field(default_factory=list)

    async def message(self, chat: str, *, last: bool = False) -> None:
        await self.pacing.message(target(chat), last=last)
        self.passed.append(("last" if last else "message", chat, asyncio.get_running_loop().time()))

    async def draft(self, chat: str) -> None:
        await self.pacing.draft(target(chat))
        self.passed.append(("draft", chat, asyncio.get_running_loop().time()))

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _, _ in self.passed]


def line() -> Line:
    channel = PacedChannel()
    return Line(RateLimiter({(channel.name, channel.account): channel}))


async def test_a_message_goes_before_a_draft_of_the_same_chat_that_came_first() -> None:
    one = line()
    await one.message("ann")
    await asyncio.gather(one.draft("ann"), one.message("ann"))
    assert one.kinds == ["message", "message", "draft"]


async def test_messages_go_before_the_drafts_of_all_chats() -> None:
    one = line()
    drafts = [one.draft(f"d{number}") for number in range(20)]
    messages = [one.message(f"m{number}") for number in range(45)]
    await asyncio.gather(*drafts, *messages)
    first_second = [kind for kind, _, at in one.passed if at < 0.9]
    assert first_second.count("message") >= 15
    assert first_second.count("draft") <= 15
    assert sorted(one.kinds) == ["draft"] * 20 + ["message"] * 45


async def test_what_goes_last_goes_when_nobody_else_waits() -> None:
    one = line()
    patient = asyncio.gather(*(one.message(f"s{number}", last=True) for number in range(60)))
    await asyncio.sleep(0.1)
    await asyncio.gather(*(one.message(f"m{number}") for number in range(40)))
    assert one.kinds.count("last") == 30
    await patient
    assert one.kinds.count("last") == 60


async def test_one_that_leaves_the_line_holds_up_nobody() -> None:
    one = line()
    for number in range(30):
        await one.message(f"m{number}")
    waiting = (one.message("a"), one.message("b"), one.message("c", last=True))
    gone = [asyncio.create_task(each) for each in waiting]
    await asyncio.sleep(0.1)
    for task in gone:
        task.cancel()
    await asyncio.wait(gone)
    await asyncio.gather(one.draft("a"), one.message("b"), one.message("c", last=True))
    assert one.passed[-1][2] <= 1.6


async def test_a_reservation_that_is_returned_leaves_its_place_to_the_next() -> None:
    one = line()
    ticket = await one.pacing.message(target("ann"))
    one.pacing.give_back(target("ann"), ticket)
    await one.message("ann")
    assert one.passed[0][2] == 0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["message", "message", "last", "draft"]),
            st.sampled_from(["ann", "bob", "-100"]),
            st.sampled_from([0.0, 0.0, 0.1, 0.7, 3.0]),
        ),
        max_size=60,
    )
)
def test_no_limit_is_ever_exceeded_and_everything_passes(
    wishes: list[tuple[str, str, float]],
) -> None:
    async def main() -> Line:
        one = line()
        tasks = []
        for kind, chat, pause_s in wishes:
            await asyncio.sleep(pause_s)
            wish = one.draft(chat) if kind == "draft" else one.message(chat, last=kind == "last")
            tasks.append(asyncio.create_task(wish))
        await asyncio.gather(*tasks)
        return one

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        one = runner.run(main())
    assert len(one.passed) == len(wishes)
    for chat in ("ann", "bob", "-100"):
        instants = [at for _, where, at in one.passed if where == chat]
        gaps = [b - a for a, b in pairwise(instants)]
        assert all(gap > 1 - JITTER_S for gap in gaps)
    group = [at for _, where, at in one.passed if where == "-100"]
    assert all(group[n + 20] - group[n] > 60 - JITTER_S for n in range(len(group) - 20))


@pytest.mark.parametrize("kind", ["message", "draft"])
async def test_an_account_without_limits_waits_for_nothing(kind: str) -> None:
    channel = RecordingChannel()
    one = Line(RateLimiter({(channel.name, channel.account): channel}))
    for _ in range(1000):
        await (one.message("ann") if kind == "message" else one.draft("ann"))
    assert asyncio.get_running_loop().time() == 0
