"""A pool keeps nothing of who has used it (SPEC AGENT-13)."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextvars import ContextVar, copy_context

import pytest

from goclaw_py.store.postgres.pool import Pool
from tests.support.postgres import Server

pytestmark = pytest.mark.real_time

conversation: ContextVar[object] = ContextVar("conversation")


class Conversation:
    """What a run has in its context."""


async def test_a_statement_keeps_no_context_of_its_first_run(postgres_server: Server) -> None:
    pool = await Pool.open(postgres_server.address, min_size=1, max_size=1)

    async def run() -> weakref.ref[Conversation]:
        mine = Conversation()
        conversation.set(mine)
        await pool.fetch("select 'first used by a run'")
        return weakref.ref(mine)

    try:
        left = await asyncio.create_task(run(), context=copy_context())
        # The connection itself keeps the context of its last use, until the next one.
        await pool.fetch("select 'used by another'")
        gc.collect()
        assert left() is None
    finally:
        await pool.close()
