"""How late the event loop is."""

from __future__ import annotations

import asyncio

import pytest

from goclaw_py.observability.loop_lag import EVERY_S, KEPT, LoopLag
from goclaw_py.testing.loop import VirtualLoop


def block(seconds: float) -> None:
    """Keep the loop from turning for so long."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.virtual_now += seconds


async def test_what_blocks_it_is_told_for_a_while() -> None:
    lag = LoopLag()
    assert lag.worst_s == 0.0
    watching = asyncio.create_task(lag.watch())
    await asyncio.sleep(10.5 * EVERY_S)
    assert lag.worst_s == pytest.approx(0.0, abs=1e-6)
    block(4.0)
    await asyncio.sleep(EVERY_S)
    assert lag.worst_s == pytest.approx(3.5)
    await asyncio.sleep((KEPT - 2) * EVERY_S)
    assert lag.worst_s == pytest.approx(3.5)
    await asyncio.sleep(3 * EVERY_S)
    assert lag.worst_s == pytest.approx(0.0, abs=1e-6)
    watching.cancel()
