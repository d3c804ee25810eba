"""When a terminal takes its gateway for dead. In virtual time, without a gateway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from goclaw_py.cli.client.control import STREAM_SILENCE_S, while_alive
from goclaw_py.model.errors import NoGateway


async def arriving(*after_s: float) -> AsyncIterator[bytes]:
    for seconds in after_s:
        await asyncio.sleep(seconds)
        yield b"x"


async def test_a_stream_that_shows_signs_of_life_goes_on_until_it_ends() -> None:
    got = [chunk async for chunk in while_alive(arriving(*[STREAM_SILENCE_S - 1] * 5))]
    assert got == [b"x"] * 5


async def test_what_came_during_ctrl_z_is_looked_at_before_the_gateway_is_given_up() -> None:
    """On ``fg`` the time is over and the bytes are there, but the loop has not read them yet."""
    got = [chunk async for chunk in while_alive(arriving(STREAM_SILENCE_S + 0.1))]
    assert got == [b"x"]


async def test_a_silent_stream_is_given_up_in_bounded_time() -> None:
    before = asyncio.get_running_loop().time()
    with pytest.raises(NoGateway, match="in time"):
        await anext(while_alive(arriving(10 * STREAM_SILENCE_S)))
    assert asyncio.get_running_loop().time() - before <= STREAM_SILENCE_S + 1
