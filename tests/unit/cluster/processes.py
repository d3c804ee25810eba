"""Two processes on one database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, ScriptedAgent
from tests.support.harness import GatewayProcess, Ways, a_process
from tests.support.memory_store import MemoryDatabase

AT_ONCE = Ways(QueuePolicy())


def stuck() -> ScriptedAgent:
    return ScriptedAgent(otherwise=lambda _: Block())


@asynccontextmanager
async def two(
    agent: ScriptedAgent, second_agent: ScriptedAgent | None = None
) -> AsyncIterator[tuple[GatewayProcess, GatewayProcess]]:
    """Both debounce nothing. The second has an echoing agent, unless told otherwise."""
    database = MemoryDatabase()
    async with (
        a_process(agent, AT_ONCE, database=database) as first,
        a_process(second_agent, AT_ONCE, database=database) as second,
    ):
        yield first, second
