"""Wake-up calls, retries, short memories, ids, and the recording channel itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC
from itertools import pairwise

import pytest

from goclaw_py.core.concurrency import WakeEvent
from goclaw_py.core.containers import LruCache
from goclaw_py.core.errors import Fenced, NotSent, StoreUnavailable
from goclaw_py.core.messages import Inbound, InboundMessage, OutboundMessage
from goclaw_py.core.retry import hedged, retry_until_available
from goclaw_py.core.time.clocks import SystemClock, new_run_id
from goclaw_py.testing.channel import RecordingChannel, SendFailure
from tests.support.harness import message


async def test_a_wait_ends_at_a_call_or_at_its_limit() -> None:
    """A call before the wait is not lost."""
    loop, wake = asyncio.get_running_loop(), WakeEvent()
    wake.clear()
    wake.call()
    await wake.wait(60)
    assert loop.time() == 0
    wake.clear()
    await wake.wait(60)
    assert loop.time() == 60
    await wake.wait(-1)
    assert loop.time() == 60
    loop.call_later(3, wake.call)
    await wake.wait(60)
    assert loop.time() == 63


async def test_an_operation_is_repeated_until_the_database_is_back() -> None:
    """SPEC DB-4: about 1 s apart at most."""
    loop = asyncio.get_running_loop()
    times: list[float] = []

    async def operation() -> str:
        times.append(loop.time())
        if len(times) < 12:
            raise StoreUnavailable("away")
        return "done"

    assert await retry_until_available(operation) == "done"
    gaps = [after - before for before, after in pairwise(times)]
    assert 0.1 <= gaps[0] <= 0.2
    assert max(gaps) < 1.2
    assert gaps[-1] > 0.99


async def test_another_error_passes_through_at_once() -> None:
    async def operation() -> None:
        raise Fenced("not yours")

    with pytest.raises(Fenced, match="not yours"):
        await retry_until_available(operation)
    assert asyncio.get_running_loop().time() == 0


AWAY = StoreUnavailable("away")
Try = tuple[float | None, object]


class Slow:
    """Each try takes so long, and then answers or raises; None: it never ends."""

    def __init__(self, *tries: Try) -> None:
        self.tries = list(tries)
        self.begun: list[float] = []
        self.cancelled = 0

    async def __call__(self) -> object:
        loop = asyncio.get_running_loop()
        lasts_s, answer = self.tries[len(self.begun)]
        self.begun.append(loop.time())
        try:
            await (loop.create_future() if lasts_s is None else asyncio.sleep(lasts_s))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("tries", "answer", "begun", "cancelled", "took_s"),
    [
        (((None, ""), (None, ""), (0.5, "third")), "third", [0, 2, 4], 2, 4.5),
        (((3, "first"), (None, "")), "first", [0, 2], 1, 3),
        (((3, "first"), (0.5, StoreUnavailable("too many"))), "first", [0, 2], 0, 3),
    ],
    ids=["a later one", "an early one while a later one is under way", "another one fails"],
)
async def test_the_first_answer_of_several_tries_counts(
    tries: tuple[Try, ...], answer: str, begun: list[float], cancelled: int, took_s: float
) -> None:
    slow = Slow(*tries)
    assert await hedged(slow, every_s=2) == answer
    assert (slow.begun, slow.cancelled) == (begun, cancelled)
    assert asyncio.get_running_loop().time() == took_s


@pytest.mark.parametrize(
    ("tries", "begun", "took_s"),
    [
        (((6, AWAY), (0.5, OSError()), (0.5, StoreUnavailable("third"))), [0, 2, 4.5], 6),
        (((0.5, AWAY),), [0], 0.5),
    ],
    ids=["with the error of the first", "the only one is not waited for"],
)
async def test_it_fails_when_the_last_does(
    tries: tuple[Try, ...], begun: list[float], took_s: float
) -> None:
    slow = Slow(*tries)
    with pytest.raises(StoreUnavailable, match="away"):
        await hedged(slow, every_s=2)
    assert slow.begun == begun
    assert asyncio.get_running_loop().time() == took_s


async def test_who_is_cancelled_leaves_no_try_behind() -> None:
    slow = Slow((None, ""), (None, ""))
    task = asyncio.create_task(hedged(slow, every_s=2))
    await asyncio.sleep(3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert slow.cancelled == 2


def test_a_short_memory_forgets_the_oldest_first() -> None:
    recent: LruCache[int, str] = LruCache(2)
    for number in (1, 2, 3):
        recent[number] = str(number)
    assert list(recent) == [2, 3]
    recent[2] = "again"
    assert list(recent.items()) == [(2, "again"), (3, "3")]


def test_run_ids_made_later_sort_later() -> None:
    clock = SystemClock()
    assert clock.now().tzinfo is UTC
    first, second = new_run_id(clock), new_run_id(clock)
    assert first != second
    assert first[:8] <= second[:8]


class Choosy:
    """An intake that is unavailable at first."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.texts: list[str] = []

    async def accept(self, batch: Sequence[Inbound]) -> None:
        await asyncio.sleep(1)
        if self.refusals:
            self.refusals -= 1
            raise StoreUnavailable("away")
        self.texts += [arrived.text for arrived in batch if isinstance(arrived, InboundMessage)]


def out(text: str) -> OutboundMessage:
    return OutboundMessage(message("").target, text)


async def test_a_batch_is_offered_until_it_is_taken_and_only_then_confirmed() -> None:
    channel, intake = RecordingChannel(), Choosy(refusals=3)
    receiving = asyncio.create_task(channel.receive(intake))
    await channel.deliver(message("one"), message("two"))
    assert intake.texts == ["one", "two"]
    assert intake.refusals == 0
    receiving.cancel()
    await asyncio.wait([receiving])
    assert channel.receiving == 0


async def test_a_batch_that_was_not_confirmed_is_the_first_of_the_next_receive() -> None:
    channel, intake = RecordingChannel(), Choosy(refusals=0)
    receiving = asyncio.create_task(channel.receive(intake))
    delivering = [asyncio.create_task(channel.deliver(message(text))) for text in ("a", "b")]
    await asyncio.sleep(0.5)
    receiving.cancel()
    await asyncio.wait([receiving])
    assert intake.texts == []
    receiving = asyncio.create_task(channel.receive(intake))
    await asyncio.wait(delivering)
    assert intake.texts == ["a", "b"]
    receiving.cancel()
    await asyncio.wait([receiving])


async def test_failures_come_in_their_order_first_those_of_the_chat() -> None:
    channel = RecordingChannel()
    channel.fail(NotSent("any"))
    channel.fail(SendFailure(NotSent("ann's"), arrives=True), chat="ann")
    with pytest.raises(NotSent, match="ann's"):
        await channel.send(out("one"))
    with pytest.raises(NotSent, match="any"):
        await channel.send(out("two"))
    assert await channel.send(out("three")) == "2"
    assert channel.texts() == ["one", "three"]
    assert [m.text for m in channel.attempts] == ["one", "two", "three"]


async def test_a_channel_that_was_cut_off_neither_sends_nor_shows() -> None:
    channel = RecordingChannel()
    channel.disconnect()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(channel.send(out("one")), 60)
    assert channel.sent == []
    await channel.close()
    assert channel.closed
