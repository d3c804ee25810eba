"""The loop with virtual time."""

from __future__ import annotations

import asyncio

import pytest

from goclaw_py.testing.loop import Deadlock, VirtualLoop


def virtual_loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


async def count_up(counted: list[int]) -> None:
    for number in range(3):
        await asyncio.sleep(0)
        counted.append(number)
    await asyncio.sleep(60)
    counted.append(60)


async def test_an_instant_has_settled_when_nothing_is_left_to_do_in_it() -> None:
    counted: list[int] = []
    counting = asyncio.create_task(count_up(counted))
    await virtual_loop().settled()
    assert (counted, virtual_loop().time()) == ([0, 1, 2], 0)
    counting.cancel()


async def test_who_asks_again_and_did_nothing_lets_time_pass_to_the_next_timer() -> None:
    counted: list[int] = []
    counting = asyncio.create_task(count_up(counted))
    for _ in range(2):
        await virtual_loop().settled()
    assert (counted, virtual_loop().time()) == ([0, 1, 2, 60], 60)
    assert counting.done()


async def test_all_who_ask_are_told_at_once() -> None:
    told = await asyncio.gather(*(virtual_loop().settled() for _ in range(3)))
    assert (told, virtual_loop().time()) == ([None] * 3, 0)


async def test_who_asks_may_give_up() -> None:
    asking = asyncio.create_task(virtual_loop().settled())
    await asyncio.sleep(0)
    asking.cancel()
    await virtual_loop().settled()
    assert asking.cancelled()


async def test_timers_are_due_after_many_years_too() -> None:
    loop = virtual_loop()
    loop.virtual_now = since = 20 * 365 * 86_400.0
    # Otherwise the loop waits for ever for a timer whose time has come.
    assert since + loop._clock_resolution > since
    await asyncio.sleep(1e-6)
    assert loop.time() > since


def test_a_wait_that_nothing_ends_is_told() -> None:
    async def ask_for_ever() -> None:
        while True:
            await virtual_loop().settled()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner, pytest.raises(Deadlock):
        runner.run(ask_for_ever())
