"""Heartbeats on PostgreSQL: how it asks, and who meets whom (SPEC HB-12)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from goclaw_py.model.ids import AgentName
from goclaw_py.store.postgres import PostgresStore, connection
from tests.integration.postgres_work import until_somebody_waits
from tests.support.postgres import Database
from tests.support.store_heartbeats import claim, claim_one, planned, running_heartbeat
from tests.support.stores import AGENT, PATIENCE_S, A, a_node, at

pytestmark = pytest.mark.real_time


@pytest.fixture
async def store(postgres_database: Database) -> AsyncIterator[PostgresStore]:
    opened = await postgres_database.open()
    await opened.join(a_node(A))
    yield opened
    await opened.close()


async def test_to_claim_what_is_not_due_writes_nothing(
    store: PostgresStore, postgres_database: Database
) -> None:
    await planned(store, now=at(60))
    async with connection(postgres_database.address) as direct:
        before = await direct.row("select txid_current()")
        assert await claim(store) == []
        after = await direct.row("select txid_current()")
    assert before is not None
    assert after is not None
    # This connection used one number itself; nobody else took one.
    assert after["txid_current"] - before["txid_current"] == 1


async def test_who_claims_while_others_do_does_not_wait_for_them(
    store: PostgresStore, postgres_database: Database
) -> None:
    """A hung process delays nobody."""
    other = AgentName("other")
    await planned(store, AGENT, other)
    async with connection(postgres_database.address) as hung, hung.transaction():
        await hung.fetch("select from heartbeats where agent = $1 for update", AGENT)
        async with asyncio.timeout(PATIENCE_S):
            claimed = await claim(store, AGENT, other)
    assert [one.agent for one in claimed] == [other]
    assert (await claim_one(store)).agent == AGENT


async def test_a_node_that_is_being_recovered_claims_nothing(
    store: PostgresStore, postgres_database: Database
) -> None:
    """It finds itself dead when it gets its turn."""
    await planned(store)
    async with connection(postgres_database.address) as other:
        async with other.transaction():
            await other.fetch("select from nodes where id = $1 for update", A)
            claiming = asyncio.create_task(claim(store))
            await until_somebody_waits(postgres_database)
            await other.fetch("delete from nodes")
        (answer,) = await asyncio.gather(claiming, return_exceptions=True)
    assert type(answer).__name__ == "Fenced"
    assert (await running_heartbeat(store)).heartbeat_run is None
