"""A real PostgreSQL for tests: one server a session, an empty database for each test that asks.

A database is a copy of a migrated template. After its test its rows and their statistics are
deleted, and it is given to the next one, which takes a tenth of the time of another copy. One whose
tables, rights or settings the test has changed is dropped.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import pytest

from goclaw_py.store import migrate
from goclaw_py.store.embedded import EmbeddedPostgres
from goclaw_py.store.postgres import Address, Connection, PostgresStore, connection

FAST_AND_FORGETFUL = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    # Databases of tests live for a moment; as many as there are, each minute has that many visits.
    "autovacuum": "off",
}
_numbers = count(1)

_END_OTHERS = """
select count(*) filter (where not pg_terminate_backend(pid, 5000)) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()
"""
_SHAPE = """
select md5(string_agg(line, ',' order by line)) from (
  select format('%s %s %s %s', attrelid::regclass, attname, atttypid, attnotnull) as line
  from pg_attribute join pg_class on pg_class.oid = attrelid
  where relnamespace = 'public'::regnamespace and relkind in ('r', 'i') and attnum > 0
  union all
  select format('%s %s %s', relname, relkind, relacl)
  from pg_class where relnamespace = 'public'::regnamespace
  union all select format('%s %s', conname, contype) from pg_constraint
  union all select format('%s %s', tgname, tgenabled) from pg_trigger
  union all select format('%s %s', nspname, nspacl) from pg_namespace where nspname !~ '^pg_'
  union all select proname from pg_proc where pronamespace = 'public'::regnamespace
  union all select format('%s', schema_migrations) from schema_migrations
  union all
  select format('%s %s', datacl, setconfig)
  from pg_database left join pg_db_role_setting on setdatabase = pg_database.oid
  where datname = current_database()
) as lines
"""
EMPTY = """
do $$
declare name text;
begin
  set local session_replication_role = replica;
  for name in select oid::regclass from pg_class where relkind = 'r'
    and relnamespace = 'public'::regnamespace and relname <> 'schema_migrations'
  loop execute format('delete from %s', name); end loop;
  perform setval(oid::regclass, 1, false) from pg_class
    where relkind = 'S' and relnamespace = 'public'::regnamespace;
  delete from pg_statistic using pg_class
    where starelid = pg_class.oid and relnamespace = 'public'::regnamespace;
end $$
"""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, its migrated template and the copies of it that no test uses now."""

    address: Address
    template: str
    shape: str
    free: list[str] = field(default_factory=list)

    def at(self, database: str) -> Address:
        return replace(self.address, database=database)

    async def lend(self) -> str:
        """Return the name of an empty database with the schema of this release."""
        if self.free:
            return self.free.pop()
        name = f"test_{next(_numbers)}"
        await run_sql(self.address, f"create database {name} template {self.template}")
        return name

    async def reclaim(self, name: str) -> None:
        """Empty the database for the next test, or drop it if it is not as it was lent."""
        try:
            async with connection(self.at(name)) as opened:
                is_free = await _value(opened, _END_OTHERS) == 0
                is_same = is_free and await _value(opened, _SHAPE) == self.shape
                if is_same:
                    await opened.script(EMPTY)
        except Exception:  # Tests drop tables and close databases: then this one is not used again.
            is_same = False
        if is_same:
            self.free.append(name)
        else:
            await run_sql(self.address, f"drop database if exists {name} with (force)")


@dataclass(frozen=True, slots=True)
class Database:
    """A database of one test."""

    address: Address

    async def open(self, *, max_size: int = 10) -> PostgresStore:
        """One process's store on it. The test closes it."""
        return await PostgresStore.open(
            host=self.address.host,
            user=self.address.user,
            database=self.address.database,
            max_size=max_size,
        )


async def run_sql(address: Address, *statements: str) -> None:
    async with connection(address) as opened:
        for statement in statements:
            await opened.script(statement)


async def _value(opened: Connection, query: str) -> object:
    row = await opened.row(query)
    assert row is not None
    return next(iter(row.values()))


async def _make_template(address: Address, template: str) -> Server:
    await run_sql(address, f"create database {template}")
    async with connection(replace(address, database=template)) as opened:
        await migrate.migrate(opened)
        return Server(address, template, shape=str(await _value(opened, _SHAPE)))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="goclaw-pg-", dir="/tmp") as folder:
        embedded = EmbeddedPostgres(Path(folder) / "postgres", settings=FAST_AND_FORGETFUL)
        started = embedded.start()
        try:
            address = Address(host=str(started.host), user=started.user, database=started.database)
            yield asyncio.run(_make_template(address, "goclaw_template"))
        finally:
            embedded.stop()


@pytest.fixture
async def empty_database(postgres_server: Server) -> AsyncIterator[Database]:
    """Without any table."""
    name = f"empty_{next(_numbers)}"
    await run_sql(postgres_server.address, f"create database {name}")
    yield Database(postgres_server.at(name))
    await run_sql(postgres_server.address, f"drop database {name} with (force)")


@pytest.fixture
async def postgres_database(postgres_server: Server) -> AsyncIterator[Database]:
    """With the schema of this release. The test is marked ``real_time``."""
    name = await postgres_server.lend()
    yield Database(postgres_server.at(name))
    await postgres_server.reclaim(name)
