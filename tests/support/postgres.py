"""A real PostgreSQL for tests: one server a session, a fresh database for each test that asks.

Databases are copies of a migrated template, so a test neither waits for migrations nor sees what
another one wrote.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest

from goclaw_py.store import migrate
from goclaw_py.store.embedded import EmbeddedPostgres
from goclaw_py.store.postgres import Address, PostgresStore, connection

FAST_AND_FORGETFUL = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Server:
    """A running server and its migrated template."""

    address: Address
    template: str

    def at(self, database: str) -> Address:
        return replace(self.address, database=database)


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


async def _make_template(address: Address, template: str) -> None:
    await run_sql(address, f"create database {template}")
    async with connection(replace(address, database=template)) as opened:
        await migrate.migrate(opened)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="goclaw-pg-", dir="/tmp") as folder:
        embedded = EmbeddedPostgres(Path(folder) / "postgres", settings=FAST_AND_FORGETFUL)
        started = embedded.start()
        try:
            address = Address(host=str(started.host), user=started.user, database=started.database)
            asyncio.run(_make_template(address, "goclaw_template"))
            yield Server(address, "goclaw_template")
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
    name = f"test_{next(_numbers)}"
    await run_sql(
        postgres_server.address, f"create database {name} template {postgres_server.template}"
    )
    yield Database(postgres_server.at(name))
    await run_sql(postgres_server.address, f"drop database {name} with (force)")
