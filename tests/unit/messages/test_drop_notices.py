"""Notices about messages that are not answered (SPEC QUEUE-5)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import pairwise

import pytest

from goclaw_py.delivery import texts
from goclaw_py.messages.drop_notices import DropNotices
from goclaw_py.model.ids import NodeId, RunId
from goclaw_py.model.messages import OutboundMessage, Target
from goclaw_py.model.outcomes import Ending, Outcome, Reason
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.store.memory import MemoryStore
from goclaw_py.testing.agents import Block, ScriptedAgent
from goclaw_py.testing.clock import LoopClock
from tests.support.harness import Ways, a_process, session_of, until

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


async def test_messages_that_were_not_answered_for_different_reasons_keep_their_own() -> None:
    """SPEC QUEUE-5, QUEUE-10."""
    store = OutcomeStore()
    notices = DropNotices(store, LoopClock(), lambda: NodeId("here"))
    full = Ending(RunId("r1"), Outcome.REJECTED, Reason.QUEUE_FULL)
    dropped = Ending(RunId("r2"), Outcome.DROPPED, DROPPED)
    notices.add(session_of(), TARGET, full, [1], ["a"])
    notices.add(session_of(), TARGET, dropped, [2], ["b"])
    notices.add(session_of(), TARGET, full, [3], ["c"])
    await asyncio.sleep(60)
    assert store.settled == [
        ([1, 3], Outcome.REJECTED, texts.dropped(["a", "c"], Reason.QUEUE_FULL)),
        ([2], Outcome.DROPPED, texts.dropped(["b"], DROPPED)),
    ]
    assert store.at_s[1] - store.at_s[0] >= 10


async def test_a_kind_of_notice_that_is_never_stored_keeps_no_other_from_being_told() -> None:
    store = OutcomeStore(refused=Outcome.REJECTED)
    notices = DropNotices(store, LoopClock(), lambda: NodeId("here"))
    notices.add(session_of(), TARGET, Ending(RunId("r1"), Outcome.REJECTED), [1], ["a"])
    notices.add(session_of(), TARGET, Ending(RunId("r2"), Outcome.DROPPED), [2], ["b"])
    await asyncio.sleep(60)
    assert [rows for rows, _, _ in store.settled] == [[2]]
    notices.forget()
