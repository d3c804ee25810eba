"""Errors that nobody foresaw, and notices about what is not answered (SPEC DB-4, QUEUE-5)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from goclaw_py.chat.inbound.drop_notices import DropNotices
from goclaw_py.chat.inbound.turns import Turns
from goclaw_py.chat.outbound import texts
from goclaw_py.chat.outbound import texts as wording
from goclaw_py.chat.outbound.outbox_sender import UNSURE_FOR
from goclaw_py.cluster.membership import LEASE
from goclaw_py.core.errors import ChannelError, NotSent, Undeliverable
from goclaw_py.core.ids import MAIN_AGENT, NodeId, RunId
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.outcomes import Ending, Outcome, Reason
from goclaw_py.core.run_events import RunSignal
from goclaw_py.records import InboxKind, InboxRow, OutboxState
from goclaw_py.records.bound import bind
from goclaw_py.runs.turn import Turn
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, Ignore, Say, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.testing.clock import LoopClock
from tests.support.again import SENT_AGAIN
from tests.support.harness import (
    GatewayProcess,
    Ways,
    a_process,
    message,
    session_of,
    until,
    working,
)
from tests.support.memory_store import MemoryStore

AT_ONCE = Ways(QueuePolicy())
BUG = "a bug"


class Picky(RecordingChannel):
    """Fails to cut a text with ``boom`` in it, and to show anything."""

    def parts(self, text: str) -> list[str]:
        if "boom" in text:
            raise ValueError(BUG)
        return super().parts(text)

    def signal(self, signal: RunSignal) -> None:
        raise ValueError(BUG)


def refuse(gateway: GatewayProcess, method: str, times: int) -> None:
    """Let the next calls of a store method raise what nobody expects."""

    async def again() -> None:
        for _ in range(times):
            gateway.store.errors[method] = RuntimeError(BUG)
            await until(lambda: method not in gateway.store.errors)

    gateway._tasks.append(asyncio.create_task(again()))


async def put(gateway: GatewayProcess, *texts: str) -> None:
    messages = [OutboundMessage(Target("telegram", "default", "ann"), text) for text in texts]
    now = gateway.clock.now()
    await gateway.store.settle((), Outcome.COMPLETED, now=now, say=messages)


async def marks(gateway: GatewayProcess) -> list[tuple[OutboxState, bool]]:
    """State and possible duplicate of each row, the oldest first."""
    rows = await gateway.store.outbox()
    return [(row.state, row.possible_duplicate) for row in reversed(rows)]


SENT = (OutboxState.SENT, False)


async def test_an_end_that_a_bug_kept_from_the_store_is_a_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SPEC IO-2: its messages are not pending for ever, and the person is told."""
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.errors["finish_run"] = RuntimeError(BUG)
        assert await gateway.ask("one") == wording.FAILED
        assert await gateway.ask("two") == "re: two"
        assert gateway.pending == []
        (second, first) = await gateway.store.runs()
        assert (first.outcome, first.error) == (Outcome.FAILED, "not stored: RuntimeError: a bug")
        assert second.outcome is Outcome.COMPLETED
        (record,) = [r for r in caplog.records if r.message == "run_end_not_stored"]
        assert record.__dict__["run_id"] == first.id
        assert record.__dict__["session"] == session_of()


async def test_an_answer_that_the_channel_cannot_cut_ends_as_a_failure() -> None:
    """One that it cannot show arrives all the same."""
    async with a_process(ScriptedAgent(Say("boom")), AT_ONCE, channels=(Picky(),)) as gateway:
        assert await gateway.ask("one") == wording.FAILED
        assert gateway.pending == []
        assert await gateway.ask("two") == "re: two"
        assert await gateway.outcomes() == [Outcome.FAILED, Outcome.COMPLETED]


async def test_the_end_of_a_run_is_offered_to_a_broken_store_ever_more_rarely() -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.slow_before_s["finish_run"] = 0.1
        refuse(gateway, "finish_run", times=9)
        await gateway.say("one")
        calls, loop = gateway.store.calls, asyncio.get_running_loop()
        offered: list[float] = []
        while len(offered) < 10:
            await until(lambda: calls["finish_run"] > len(offered))
            offered.append(loop.time())
        waits = [round(b - a) for a, b in pairwise(offered[1:])]
        assert waits == [1, 2, 4, 8, 16, 30, 30, 30]
        await gateway.channel.until_sent(1)
        assert gateway.channel.texts() == [wording.FAILED]


async def test_a_broken_store_that_goes_away_too_gets_the_end_when_it_is_back() -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.errors["finish_run"] = RuntimeError(BUG)
        gateway.store.slow_before_s["finish_run"] = 1.0
        await gateway.say("one")
        await until(lambda: "finish_run" not in gateway.store.errors)
        gateway.store.broken.add("finish_run")
        await asyncio.sleep(60)
        gateway.store.broken.clear()
        await gateway.channel.until_sent(1)
        assert gateway.channel.texts() == [wording.FAILED]


async def test_a_stopped_run_stays_stopped_although_a_bug_kept_its_end_from_the_store() -> None:
    """SPEC CMD-4: who stopped it reads of no failure."""
    agent = ScriptedAgent(Block())
    async with working("one", agent=agent) as gateway:
        gateway.store.errors["finish_run"] = RuntimeError(BUG)
        assert await gateway.ask("/stop") == "Stopped."
        await asyncio.sleep(60)
        (run,) = await gateway.store.runs()
        assert (run.outcome, run.reason) == (Outcome.CANCELLED, Reason.STOPPED)
        assert gateway.channel.texts() == ["Stopped."]
        assert gateway.pending == []


async def test_a_message_that_waited_too_long_is_told_so_although_a_bug_came_between() -> None:
    agent = ScriptedAgent(Ignore(for_s=60))
    async with a_process(agent, Ways(QueuePolicy(), deadline_s=20)) as gateway:
        await gateway.say("works", "waits")
        gateway.store.errors["settle"] = RuntimeError(BUG)
        await asyncio.sleep(120)
        assert gateway.pending == []
        assert wording.timed_out(Reason.DEADLINE) in gateway.channel.texts()


async def test_a_fenced_end_is_not_offered_again_after_a_bug() -> None:
    """SPEC NODE-1."""
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.errors["finish_run"] = RuntimeError(BUG)
        gateway.store.slow_before_s["finish_run"] = 0.5
        await gateway.say("one")
        await until(lambda: gateway.store.calls["finish_run"] == 2)
        other = replace(gateway.cluster.node, id=NodeId("other"))
        await gateway.store.join(other)
        session = gateway.database.sessions[session_of()]
        session.owner, session.fence = other.id, session.fence + 1
        for _ in range(24):
            await gateway.store.renew(other.id, until=gateway.clock.now() + LEASE)
            await asyncio.sleep(5)
        assert gateway.store.calls["finish_run"] == 2
        assert gateway.channel.texts() == []
        assert gateway.dispatcher.runs() == ()


@pytest.mark.parametrize("times", [1, 3])
async def test_a_message_that_cannot_be_marked_is_a_possible_duplicate(times: int) -> None:
    """SPEC IO-5: the chat behind it goes on. One failure repeats nothing."""
    async with a_process() as gateway:
        refuse(gateway, "mark_sent", times=times)
        await put(gateway, "one", "two")
        again = ["one" + SENT_AGAIN] * (times > 1)
        await gateway.channel.until_sent(2 + len(again))
        await asyncio.sleep(60)
        assert gateway.channel.texts() == ["one", *again, "two"]
        assert await marks(gateway) == [(OutboxState.SENT, bool(again)), SENT]


@pytest.mark.parametrize(
    ("error", "call", "times"),
    [(NotSent("no route"), "mark_failed", 6), (Undeliverable("chat gone"), "mark_dead", 3)],
)
async def test_a_failure_that_cannot_be_marked_blocks_no_chat(
    error: ChannelError, call: str, times: int
) -> None:
    async with a_process() as gateway:
        gateway.channel.fail(error)
        refuse(gateway, call, times=times)
        await put(gateway, "one", "two")
        await gateway.channel.until_sent(2)
        assert gateway.channel.texts() == ["one" + SENT_AGAIN, "two"]


async def test_an_old_message_that_cannot_be_marked_is_dead_instead_of_sent_for_ever() -> None:
    async with a_process() as gateway:
        gateway.channel.block("ann")
        await put(gateway, "one", "two")
        await asyncio.sleep((UNSURE_FOR + timedelta(seconds=1)).total_seconds())
        refuse(gateway, "mark_sent", times=3)
        gateway.channel.unblock("ann")
        await gateway.channel.until_sent(2)
        await asyncio.sleep(60)
        assert gateway.channel.texts() == ["one", "two"]
        two, one = await gateway.store.outbox()
        assert (one.state, one.error) == (OutboxState.FAILED, "RuntimeError: a bug")
        assert two.state is OutboxState.SENT


ONE_WAITS = Ways(QueuePolicy(capacity=1))
DROPPED = Reason.QUEUE_DROPPED
TARGET = Target("telegram", "default", "ann", None)


class OutcomeStore(MemoryStore):
    """Keeps how rows ended, with what was said and when; one outcome can be refused for ever."""

    def __init__(self, refused: Outcome | None = None) -> None:
        super().__init__()
        self.settled: list[tuple[list[int], Outcome, str]] = []
        self.at_s: list[float] = []
        self._refused = refused

    async def settle(
        self,
        rows: Collection[int],
        outcome: Outcome,
        *,
        now: datetime,
        reason: Reason | None = None,
        say: Sequence[OutboundMessage] = (),
        node: NodeId | None = None,
    ) -> None:
        if outcome is self._refused:
            raise ValueError(outcome)
        self.settled.append((list(rows), outcome, say[0].text))
        self.at_s.append(asyncio.get_running_loop().time())


def stuck() -> ScriptedAgent:
    return ScriptedAgent(otherwise=lambda _: Block())


async def test_one_notice_names_everything_that_was_dropped_within_moments() -> None:
    """Count and first words; each session has its own notice."""
    async with a_process(stuck(), ONE_WAITS) as gateway:
        await gateway.say("works", "a", "b", "c", "d", "e")
        await gateway.say("works", "c", "d", chat="bob")
        await gateway.channel.until_sent(2)
        await asyncio.sleep(60)
        (told,) = gateway.channel.texts("ann")
        assert told == texts.dropped(["a", "b", "c", "d"], DROPPED)
        assert "4 messages" in told
        assert "“a”, “b”, “c”, …" in told
        assert gateway.channel.texts("bob") == [texts.dropped(["c"], DROPPED)]


async def test_notices_of_one_session_are_ten_seconds_apart() -> None:
    async with a_process(stuck(), ONE_WAITS) as gateway:
        await gateway.say("works", "waits")
        for _ in range(30):
            await gateway.say("more", apart_s=1)
        times = [row.created_at for row in reversed(await gateway.store.outbox())]
        assert len(times) >= 3
        gaps = [(b - a).total_seconds() for a, b in pairwise(times)]
        assert min(gaps) >= 10


async def test_a_session_that_was_quiet_gets_its_next_notice_soon() -> None:
    async with a_process(stuck(), ONE_WAITS) as gateway:
        await gateway.say("works", "a", "b")
        await asyncio.sleep(60)
        await gateway.say("c")
        await until(lambda: len(gateway.channel.texts()) == 2, within_s=3)


@pytest.mark.parametrize("away_s", [0, 30])
async def test_rows_stay_pending_until_their_notice_is_stored(away_s: float) -> None:
    """SPEC DB-4: a crash in between drops nothing silently; a notice waits for the database."""
    async with a_process(stuck(), ONE_WAITS) as gateway:
        await gateway.say("works", "a", "waits")
        gateway.store.away = bool(away_s)
        await asyncio.sleep(away_s or 0.5)
        assert gateway.pending == ["works", "a", "waits"]
        gateway.store.away = False
        await gateway.channel.until_sent(1)
        assert gateway.pending == ["works", "waits"]
        await asyncio.sleep(60)
        assert gateway.channel.texts() == [texts.dropped(["a"], DROPPED)]


async def test_what_is_dropped_while_a_notice_is_being_stored_is_in_the_next() -> None:
    async with a_process(stuck(), ONE_WAITS) as gateway:
        gateway.store.slow_after_s["settle"] = 5.0
        await gateway.say("works", "a", "b")
        await asyncio.sleep(3)
        await gateway.say("c")
        await gateway.channel.until_sent(2)
        assert gateway.channel.texts() == [texts.dropped([one], DROPPED) for one in "ab"]
        assert gateway.pending == ["works", "c"]


async def test_flush_stores_every_notice_now() -> None:
    async with a_process(stuck(), ONE_WAITS) as gateway:
        await gateway.say("works", "a", "waits")
        await asyncio.sleep(0.1)
        await gateway.runner.notices.flush()
        assert gateway.pending == ["works", "waits"]
        await gateway.channel.until_sent(1)
        await asyncio.sleep(60)
        assert gateway.channel.texts() == [texts.dropped(["a"], DROPPED)]


async def test_notices_that_are_forgotten_leave_their_rows_to_others() -> None:
    """SPEC NODE-1."""
    async with a_process(stuck(), ONE_WAITS) as gateway:
        await gateway.say("works", "a", "waits")
        await asyncio.sleep(0.1)
        gateway.runner.notices.forget()
        await asyncio.sleep(60)
        assert gateway.channel.texts() == []
        assert "a" in gateway.pending
        await gateway.say("later")
        await gateway.channel.until_sent(1)
        assert gateway.channel.texts() == [texts.dropped(["waits"], DROPPED)]


async def test_a_notice_that_meets_a_bug_is_told_later_with_all_that_came_since() -> None:
    """SPEC QUEUE-5: nothing is dropped silently."""
    async with a_process(stuck(), ONE_WAITS) as gateway:
        gateway.store.errors["settle"] = RuntimeError("a bug")
        await gateway.say("works", "a", "b")
        await asyncio.sleep(5)
        assert gateway.channel.texts() == []
        await gateway.say("c")
        await gateway.channel.until_sent(1)
        assert gateway.channel.texts() == [texts.dropped(["a", "b"], DROPPED)]
        assert gateway.pending == ["works", "c"]


async def test_a_notice_that_meets_a_bug_at_the_end_keeps_no_other_from_being_stored() -> None:
    """SPEC QUEUE-5: its rows run after the restart."""
    async with a_process(stuck(), ONE_WAITS) as gateway:
        await gateway.say("works", "a", "waits", chat="ann")
        await gateway.say("works", "b", "waits", chat="bob")
        await asyncio.sleep(0.1)
        gateway.store.errors["settle"] = RuntimeError("a bug")
        await gateway.runner.notices.flush()
        assert gateway.pending.count("a") == 1
        assert "b" not in gateway.pending


def a_turn(row_id: int, text: str) -> Turn:
    row = InboxRow(
        row_id, message(text), session_of(), MAIN_AGENT, InboxKind.MESSAGE, 0, datetime.now(UTC)
    )
    return Turn(RunId(f"r{row_id}"), session_of(), MAIN_AGENT, [row])


async def test_messages_that_were_not_answered_for_different_reasons_keep_their_own() -> None:
    """SPEC QUEUE-5, QUEUE-10."""
    store = OutcomeStore()
    notices = DropNotices(bind(store, lambda: NodeId("here")), LoopClock(), Turns())
    full = Ending(RunId("r1"), Outcome.REJECTED, Reason.QUEUE_FULL)
    dropped = Ending(RunId("r2"), Outcome.DROPPED, DROPPED)
    notices.drop(a_turn(1, "a"), full)
    notices.drop(a_turn(2, "b"), dropped)
    notices.drop(a_turn(3, "c"), full)
    await asyncio.sleep(60)
    assert store.settled == [
        ([1, 3], Outcome.REJECTED, texts.dropped(["a", "c"], Reason.QUEUE_FULL)),
        ([2], Outcome.DROPPED, texts.dropped(["b"], DROPPED)),
    ]
    assert store.at_s[1] - store.at_s[0] >= 10


async def test_a_kind_of_notice_that_is_never_stored_keeps_no_other_from_being_told() -> None:
    store = OutcomeStore(refused=Outcome.REJECTED)
    notices = DropNotices(bind(store, lambda: NodeId("here")), LoopClock(), Turns())
    notices.drop(a_turn(1, "a"), Ending(RunId("r1"), Outcome.REJECTED))
    notices.drop(a_turn(2, "b"), Ending(RunId("r2"), Outcome.DROPPED))
    await asyncio.sleep(60)
    assert [rows for rows, _, _ in store.settled] == [[2]]
    notices.forget()
