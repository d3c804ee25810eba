"""What real servers say of themselves to ``goclaw doctor`` (SPEC OPS-4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.time.clocks import SystemClock
from goclaw_py.store.postgres import Address
from goclaw_py.store.postgres.checkup import check_up
from goclaw_py.store.postgres.pool import Connection
from tests.support.postgres import Database, run_sql

pytestmark = pytest.mark.real_time

CLOCK = SystemClock()


async def test_a_server_that_is_well_and_then_takes_no_changes(postgres_database: Database) -> None:
    found = await check_up(postgres_database.address, CLOCK)
    assert found.is_current
    assert found.server.version >= 140_000
    assert abs(found.skew_s) < 0.5
    assert found.notices
    assert not found.pooled
    assert found.server.faults(["any"]) == []
    assert 0 < found.server.used < found.server.most
    name = postgres_database.address.database
    sql = f"alter database {name} set default_transaction_read_only = on"
    await run_sql(postgres_database.address, sql)
    found = await check_up(postgres_database.address, CLOCK)
    assert found.server.is_read_only
    assert found.notices


async def test_a_database_without_tables_is_left_as_it_is(empty_database: Database) -> None:
    for _ in range(2):
        found = await check_up(empty_database.address, CLOCK)
        assert found.schema is not None
        assert (found.schema.current, found.is_current) == (0, False)


async def test_a_user_who_may_make_nothing(postgres_database: Database) -> None:
    address = postgres_database.address
    await run_sql(
        address, "create role guest_of_doctor login; revoke create on schema public from public"
    )
    try:
        await run_sql(address, "grant select on all tables in schema public to guest_of_doctor")
        found = await check_up(
            Address(None, address.host, "guest_of_doctor", address.database), CLOCK
        )
        assert not found.server.may_create
    finally:
        await run_sql(address, "drop owned by guest_of_doctor; drop role guest_of_doctor")


async def test_notices_that_are_swallowed(
    postgres_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a pooler that gives each transaction another connection: nobody listens then."""

    async def listen(self: Connection, channel: str, hear: Callable[[], None]) -> None:
        await self.fetch("select 1")

    monkeypatch.setattr(Connection, "listen", listen)
    monkeypatch.setattr("goclaw_py.store.postgres.checkup._NOTICE_S", 0.1)
    assert not (await check_up(postgres_database.address, CLOCK)).notices


async def test_a_server_that_is_away() -> None:
    with pytest.raises(StoreUnavailable):
        async with asyncio.timeout(10):
            await check_up(Address("postgresql://me@127.0.0.1:1/x"), CLOCK)
