"""A pool whose server hangs: what became of a call is told as it was (SPEC DB-4)."""

from __future__ import annotations

import asyncio

import pytest

from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.store.postgres.pool import Pool


class Hanging:
    """In the place of the driver's pool and of its connection: nothing is given back in time."""

    def __init__(self) -> None:
        self.ended = False

    async def acquire(self, *, timeout: float) -> Hanging:
        return self

    async def release(self, connection: Hanging, *, timeout: float) -> None:
        await asyncio.sleep(timeout)
        raise TimeoutError

    def is_closing(self) -> bool:
        return False

    def is_closed(self) -> bool:
        return self.ended

    def terminate(self) -> None:
        self.ended = True


async def test_a_call_that_is_cancelled_while_the_server_hangs_ends_as_cancelled() -> None:
    """SPEC DB-4: as an outage it would be tried again, and whoever waits for its end for ever."""

    async def call() -> None:
        async with Pool(Hanging()).connection():
            await asyncio.Event().wait()

    task = asyncio.create_task(call())
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_a_mistake_stays_a_mistake_while_the_server_hangs() -> None:
    with pytest.raises(ValueError, match="mine"):
        async with Pool(Hanging()).connection():
            raise ValueError("mine")


async def test_a_connection_that_is_lost_is_ended_at_once() -> None:
    raw = Hanging()
    with pytest.raises(StoreUnavailable, match="lost"):
        async with Pool(raw).connection():
            raise StoreUnavailable("lost")
    assert raw.ended


async def test_what_is_not_given_back_after_a_good_end_is_an_outage() -> None:
    with pytest.raises(StoreUnavailable):
        async with Pool(Hanging()).connection():
            pass
