"""Databases that cannot carry a gateway are named before anything is lost (SPEC DB-1, DB-4)."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from goclaw_py.app.database import open_store
from goclaw_py.app.schema import ensure_fit, migrate_schema
from goclaw_py.config import load
from goclaw_py.core.errors import MigrationError, StoreError, StoreUnavailable
from goclaw_py.store.embedded import EmbeddedPostgres
from goclaw_py.store.migrate import status
from goclaw_py.store.postgres import Address, PostgresStore, connection, listener
from tests.support.postgres import FAST_AND_FORGETFUL, Database, run_sql
from tests.support.stores import PATIENCE_S, T0, A, a_node, inbox

pytestmark = pytest.mark.real_time


@asynccontextmanager
async def guest(database: Database, *statements: str, role: str) -> AsyncIterator[Address]:
    """Another user, after ``statements``; gone with all its rights at the end."""
    address = database.address
    await run_sql(address, f"create role {role} login", *statements)
    try:
        yield replace(address, user=role)
    finally:
        await run_sql(address, f"drop owned by {role}; drop role {role}")


async def refused(address: Address) -> str:
    """Why a database does not fit; it is not worth waiting."""
    with pytest.raises(StoreError) as caught:
        await ensure_fit(address)
    assert not isinstance(caught.value, StoreUnavailable)
    assert "\n" not in str(caught.value)
    return str(caught.value)


ALL = "grant select, insert, update, delete on all tables in schema public to"


NEWEST = "(select max(version) from schema_migrations)"


@pytest.mark.parametrize(
    ("role", "statements", "told"),
    [
        (
            "shut_out",
            ["revoke connect on database {name} from public"],
            "GRANT CONNECT ON DATABASE {name} TO",
        ),
        (
            "blind",
            ["revoke usage on schema public from public"],
            "GRANT USAGE, CREATE ON SCHEMA public TO blind",
        ),
        (
            "helper",
            [f"{ALL} helper", f"delete from schema_migrations where version = {NEWEST}"],
            "may not migrate the tables of {owner} (",
        ),
    ],
)
async def test_a_user_without_the_rights_that_a_gateway_needs(
    postgres_database: Database, role: str, statements: list[str], told: str
) -> None:
    names = {
        "name": postgres_database.address.database,
        "owner": postgres_database.address.user,
    }
    made = [statement.format(**names) for statement in statements]
    async with guest(postgres_database, *made, role=role) as address:
        assert told.format(**names) in await refused(address)
        if role == "shut_out":
            with pytest.raises(StoreError, match="GRANT CONNECT"):
                await PostgresStore.open(
                    host=address.host, user=address.user, database=address.database
                )


async def test_an_address_that_leads_nowhere(postgres_database: Database) -> None:
    at = postgres_database.address
    dsn = f"postgresql://{at.user}@/{at.database}?host={at.host}&connect_timeout=10"
    assert "remove it from database.url" in await refused(Address(dsn))
    with pytest.raises(StoreUnavailable, match=r"a host of database\.url cannot be found"):
        await ensure_fit(Address("postgresql://me@no-such-host.invalid/x"))
    few = "alter role lonely connection limit 1"
    async with guest(postgres_database, few, role="lonely") as address:
        with pytest.raises(StoreUnavailable, match="the limit of the role"):
            await ensure_fit(address)


async def test_a_user_who_may_make_no_tables_at_the_first_start(empty_database: Database) -> None:
    async with guest(empty_database, role="newcomer") as address:
        assert "GRANT USAGE, CREATE ON SCHEMA public TO newcomer" in await refused(address)
        await run_sql(empty_database.address, "grant create on schema public to newcomer")
        await ensure_fit(address)


async def test_only_commands_that_store_something_change_the_schema(
    empty_database: Database, tmp_path: Path
) -> None:
    """SPEC DB-2: a look with a newer release must not change the database of running gateways."""
    at = empty_database.address
    url = f"postgresql://{at.user}@/{at.database}?host={at.host}"
    settings = load(env={"GOCLAW_HOME": str(tmp_path), "GOCLAW_DATABASE_URL": url})
    with pytest.raises(MigrationError, match=r"0001_initial, .*; run: goclaw migrate"):
        async with open_store(settings, create=False):
            pass
    async with connection(at) as one:
        assert (await status(one)).current == 0
    async with open_store(settings, create=True) as store:
        await store.ping()


async def test_tables_that_another_user_has_restored(postgres_database: Database) -> None:
    async with guest(postgres_database, role='"Bob"') as quoted:
        address = replace(quoted, user="Bob")
        line = await refused(address)
        assert 'the user "Bob" may not SELECT, INSERT, UPDATE, DELETE in approvals, ' in line
        assert 'IN SCHEMA public TO "Bob"' in line
        await run_sql(postgres_database.address, f'{ALL} "Bob"')
        await ensure_fit(address)
        await run_sql(postgres_database.address, 'revoke insert on inbox from "Bob"')
        assert 'the user "Bob" may not INSERT in inbox; GRANT' in await refused(address)


async def test_rights_that_are_taken_away_at_work_may_come_back(
    postgres_database: Database,
) -> None:
    """Channels keep what is not stored, as while the database is away."""
    async with guest(postgres_database, f"{ALL} worker", role="worker") as address:
        store = await Database(address).open()
        try:
            await store.join(a_node(A))
            await run_sql(postgres_database.address, "revoke insert on inbox from worker")
            with pytest.raises(StoreUnavailable, match="GRANT SELECT, INSERT"):
                await store.accept([inbox(1)], node=A, now=T0)
            await run_sql(postgres_database.address, "grant insert on inbox to worker")
            await store.accept([inbox(1)], node=A, now=T0)
        finally:
            await store.close()


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_a_database_that_does_not_hold_every_character(
    empty_database: Database, encoding: str
) -> None:
    name = f"in_{encoding.lower()}"
    make = f"create database {name} encoding '{encoding}' template template0"
    await run_sql(empty_database.address, f"{make} lc_collate 'C' lc_ctype 'C'")
    try:
        line = await refused(replace(empty_database.address, database=name))
        assert f"{encoding} cannot store all characters" in line
    finally:
        await run_sql(empty_database.address, f"drop database {name}")


async def test_what_a_role_has_set_for_people_does_not_hold_for_us(
    postgres_database: Database,
) -> None:
    wishes = {
        "statement_timeout": "50ms",
        "idle_session_timeout": "50ms",
        "idle_in_transaction_session_timeout": "50ms",
        "lock_timeout": "50ms",
        "default_transaction_isolation": "serializable",
    }
    made = [f"alter role hurried set {name} = '{value}'" for name, value in wishes.items()]
    async with (
        guest(postgres_database, *made, role="hurried") as address,
        connection(address) as one,
    ):
        await one.fetch("select pg_sleep(0.1)")
        await asyncio.sleep(0.1)
        async with one.transaction():
            row = await one.row("show transaction_isolation")
            assert row is not None
            assert row["transaction_isolation"] == "read committed"
        assert await one.lock(1, wait_s=1)
        row = await one.row("show lock_timeout")
        assert row is not None
        assert row["lock_timeout"] == "5s", "also after a lock that waits longer"


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="goclaw-pg-", dir="/tmp") as made:
        yield Path(made) / "postgres"


@pytest.mark.slow
async def test_a_standby_is_named_and_waited_for_until_it_is_promoted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its store fails while it is one, and works on without being opened again."""
    monkeypatch.setattr(listener, "CHECK_EVERY_S", 0.1)
    server = EmbeddedPostgres(folder, settings={**FAST_AND_FORGETFUL, "wal_level": "replica"})
    try:
        started = await asyncio.to_thread(server.start)
        address = Address(None, str(started.host), started.user, started.database)
        await migrate_schema(address)
        store = await Database(address).open()
        try:
            await store.join(a_node(A))
            await asyncio.to_thread(become_standby, server, folder)
            with pytest.raises(StoreUnavailable, match="this server is a read-only standby"):
                await ensure_fit(address)
            with pytest.raises(StoreUnavailable, match="this server is a read-only standby"):
                await answered(store)
            with pytest.raises(StoreUnavailable, match=r"set database\.url to the primary"):
                await store.accept([inbox(1)], node=A, now=T0)
            async with connection(address) as one:
                await one.script("select pg_promote()")
            await ensure_fit(address)
            await store.ping()
            await store.accept([inbox(1)], node=A, now=T0)
        finally:
            await store.close()
    finally:
        await asyncio.to_thread(server.stop)


@pytest.mark.slow
async def test_commits_that_wait_for_a_standby_are_named(folder: Path) -> None:
    """DB-4: while they hang nothing is refused, so nothing else says why."""
    settings = {**FAST_AND_FORGETFUL, "wal_level": "replica", "max_wal_senders": "1"}
    settings["synchronous_commit"] = "on"
    server = EmbeddedPostgres(folder, settings=settings)
    try:
        started = await asyncio.to_thread(server.start)
        address = Address(None, str(started.host), started.user, started.database)
        await migrate_schema(address)
        store = await Database(address).open()
        try:
            async with connection(address) as one:
                await one.script("alter system set synchronous_standby_names = 'gone'")
                await one.fetch("select pg_reload_conf()")
                joining = await named(store, "its commits wait for a standby that does not answer")
                assert not joining.done()
                await one.script("alter system reset synchronous_standby_names")
                await one.fetch("select pg_reload_conf()")
            await joining
            await store.ping()
        finally:
            await store.close()
    finally:
        await asyncio.to_thread(server.stop)


async def named(store: PostgresStore, words: str) -> asyncio.Task[None]:
    """Commit and ping until that fails with these words; returns the commit that waits."""
    joining = asyncio.create_task(store.join(a_node(A)))
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await store.ping()
            except StoreUnavailable as error:
                if words in str(error):
                    return joining
                raise
            if joining.done():  # the server had not read its new settings
                joining = asyncio.create_task(store.join(a_node(A)))
            await asyncio.sleep(0.1)


def become_standby(server: EmbeddedPostgres, folder: Path) -> None:
    """What a failover does to the server that was the primary."""
    server.stop()
    (folder / "data" / "standby.signal").touch()
    server.start()


async def answered(store: PostgresStore) -> None:
    """Ping until the connections that the restart has cut are used up."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await store.ping()
            except StoreUnavailable as error:
                if "standby" in str(error):
                    raise
