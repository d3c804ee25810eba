"""A pooler in front of the database: refused where it gives sessions away (SPEC DB-3, NODE-1)."""

from __future__ import annotations

import asyncio

import pytest

from goclaw_py.app.schema import ensure_fit, migrate_schema
from goclaw_py.core.errors import SessionShared, StoreError, StoreUnavailable
from goclaw_py.core.time.clocks import SystemClock
from goclaw_py.records import Notice
from goclaw_py.store.postgres import PostgresStore, connection
from goclaw_py.store.postgres.address import Address
from goclaw_py.store.postgres.checkup import check_up
from goclaw_py.store.postgres.fitness import bare
from goclaw_py.store.postgres.pool import Connection
from tests.support.pooler import pooler
from tests.support.postgres import Database
from tests.support.stores import PATIENCE_S, PLACES, T0, A, a_node, inbox

pytestmark = pytest.mark.real_time


@pytest.mark.parametrize(
    ("mode", "settings"),
    [
        ("transaction", {}),
        ("transaction", {"server_round_robin": "1"}),
        ("transaction", {"default_pool_size": "1"}),
        ("statement", {}),
    ],
)
async def test_a_pooler_that_shares_sessions_is_named_however_it_chooses_them(
    postgres_database: Database, mode: str, settings: dict[str, str]
) -> None:
    with pooler(postgres_database.address, mode, settings) as address:
        if settings.get("default_pool_size") != "1":
            await fill(address)
        with pytest.raises(SessionShared, match=r"set the pooler to session mode"):
            await ensure_fit(address)
        found = await check_up(address, SystemClock())
        assert (found.pooled, found.notices) == (True, False)


async def fill(address: Address) -> None:
    """Let the pooler have several sessions that are free."""
    async with bare(address) as one, bare(address) as two, bare(address) as three:
        await asyncio.gather(*(each.script("select pg_sleep(0.05)") for each in (one, two, three)))


async def test_nothing_of_ours_is_left_in_a_session_that_others_share(
    postgres_database: Database,
) -> None:
    with pooler(postgres_database.address, "transaction", {"default_pool_size": "1"}) as address:
        async with bare(address) as one:
            before = await traces(one)
            with pytest.raises(SessionShared):
                await ensure_fit(address)
            await check_up(address, SystemClock())
            assert await traces(one) == before


async def traces(one: Connection) -> list[dict[str, object]]:
    """What a client can leave in a session."""
    rows = await one.fetch(
        "select current_setting('lock_timeout') as setting,"
        " (select count(*) from pg_prepared_statements where name <> '') as prepared,"
        " (select count(*) from pg_listening_channels()) as listening"
    )
    return [dict(row) for row in rows]


async def test_a_pooler_in_session_mode_is_as_good_as_the_server(empty_database: Database) -> None:
    """It refuses most settings at the start of a connection, so ours are made later."""
    with pooler(empty_database.address, "session", {}) as address:
        await ensure_fit(address)
        assert await migrate_schema(address)
        found = await check_up(address, SystemClock())
        assert (found.pooled, found.notices, found.is_current) == (False, True, True)
        store = await PostgresStore.open(address.dsn)
        try:
            heard = asyncio.Event()
            store.on_notice(lambda notice: heard.set() if notice is Notice.INBOX else None)
            await store.join(a_node(A))
            await store.accept([inbox(1)], node=A, now=T0)
            assert len(await store.claim_pending(A, now=T0, places=PLACES)) == 1
            await store.leave(A, now=T0)
            async with asyncio.timeout(PATIENCE_S):
                await heard.wait()
        finally:
            await store.close()
        async with connection(address) as one:
            row = await one.row("select current_setting('lock_timeout') as limit")
            assert row is not None
            assert row["limit"] == "5s"


async def test_a_parameter_that_a_pooler_refuses_is_named_with_its_cure(
    postgres_database: Database,
) -> None:
    with pooler(postgres_database.address, "session", {}) as address:
        strange = Address(f"{address.dsn}&jit=off")
        with pytest.raises(StoreError, match="ignore_startup_parameters") as caught:
            await ensure_fit(strange)
        assert not isinstance(caught.value, StoreUnavailable)
