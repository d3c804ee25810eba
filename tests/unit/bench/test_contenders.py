"""All contenders work on all messages, so that the figures can be compared."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from bench.scheduler.contenders import CONTENDERS, KEEP_ORDER, Count, Submission, nothing

SESSIONS = ("ann", "ben", "cem")
MESSAGES = [(SESSIONS[n % 3], n) for n in range(30)]


async def in_two_batches(pause_s: float = 0.0) -> AsyncIterator[Iterable[Submission]]:
    yield MESSAGES[:12]
    await asyncio.sleep(pause_s)
    yield MESSAGES[12:]


class Work:
    """Takes a second of virtual time for each message and notes what overlaps."""

    def __init__(self, *, fails: int | None = None) -> None:
        self.started: defaultdict[str, list[int]] = defaultdict(list)
        self.active: defaultdict[str, int] = defaultdict(int)
        self.most_active: defaultdict[str, int] = defaultdict(int)
        self.most = 0
        self._fails = fails

    async def __call__(self, message: int) -> None:
        session = SESSIONS[message % 3]
        self.started[session].append(message)
        self.active[session] += 1
        self.most_active[session] = max(self.active[session], self.most_active[session])
        self.most = max(sum(self.active.values()), self.most)
        await asyncio.sleep(1)
        self.active[session] -= 1
        if message == self._fails:
            raise OSError("asked for")


@pytest.mark.parametrize("name", CONTENDERS)
async def test_every_message_is_worked_on_once_in_the_slots_of_the_lane(name: str) -> None:
    for pause_s in (0.0, 60.0):  # the second batch may come after all others have ended
        work = Work()
        assert await CONTENDERS[name](2, in_two_batches(pause_s), work) == Count(30, 0)
        done = [message for messages in work.started.values() for message in messages]
        assert sorted(done) == list(range(30))
        assert work.most == 2
    assert await CONTENDERS[name](2, in_two_batches(), nothing) == Count(30, 0)


@pytest.mark.parametrize("name", CONTENDERS)
async def test_sessions_are_kept_in_order_where_it_is_promised(name: str) -> None:
    work = Work()
    await CONTENDERS[name](30, in_two_batches(), work)
    if name in KEEP_ORDER:
        assert work.started == {key: list(range(n, 30, 3)) for n, key in enumerate(SESSIONS)}
        assert set(work.most_active.values()) == {1}
    else:
        assert max(work.most_active.values()) > 1


@pytest.mark.parametrize("name", CONTENDERS)
async def test_a_run_that_fails_is_counted_and_stops_nobody(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    loop_errors: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: loop_errors.append(context))
    work = Work(fails=4)
    assert await CONTENDERS[name](2, in_two_batches(), work) == Count(29, 1)
    assert loop_errors == []
    assert len(caplog.records) == (name == "goclaw_py")
