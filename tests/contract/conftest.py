"""Tests of the store share an event loop and, with PostgreSQL, a database and connections to it.

To connect, and to plan each statement again, costs several times as much as most of these tests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import cycle

import pytest
import pytest_asyncio

from goclaw_py.store.postgres import Address, Connection, PostgresStore, connection
from goclaw_py.store.postgres.listener import Listener
from goclaw_py.store.postgres.pool import Pool
from tests.support.postgres import EMPTY, Server
from tests.support.stores import InMemory, JobWorld, Openable, job_world, world_on


class _LastingPool(Pool):
    """A store that is closed does not close it."""

    async def close(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class _LastingDatabase:
    address: Address
    pools: cycle[Pool]
    cleaner: Connection

    async def open(self) -> PostgresStore:
        listener = Listener(self.address)
        await listener.start()
        return PostgresStore(next(self.pools), listener)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def lasting_database(postgres_server: Server) -> AsyncIterator[_LastingDatabase]:
    name = await postgres_server.lend()
    address = postgres_server.at(name)
    pools = [await _LastingPool.open(address, min_size=1, max_size=10) for _ in "ab"]
    async with connection(address) as cleaner:
        yield _LastingDatabase(address, cycle(pools), cleaner)
    for pool in pools:
        await Pool.close(pool)
    await postgres_server.reclaim(name)


@pytest_asyncio.fixture(loop_scope="session")
async def emptied_database(lasting_database: _LastingDatabase) -> AsyncIterator[_LastingDatabase]:
    yield lasting_database
    await lasting_database.cleaner.script(EMPTY)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of all that gateways store have two stores, those of jobs alone one more."""
    if "store_database" in metafunc.fixturenames:
        of_jobs = metafunc.function.__annotations__.get("world") == JobWorld.__name__
        names = ("memory", "postgres", *(["jobs"] if of_jobs else []))
        metafunc.parametrize("store_database", names, indirect=True)


@pytest.fixture
def store_database(request: pytest.FixtureRequest) -> Openable | None:
    """None for the store of ``JobScheduler``, which has no database."""
    if request.param == "jobs":
        return None
    if request.param == "memory":
        return InMemory()
    opened: Openable = request.getfixturevalue("emptied_database")
    return opened


@pytest_asyncio.fixture(loop_scope="session")
async def world(store_database: Openable | None) -> AsyncIterator[JobWorld]:
    if store_database is None:
        yield await job_world()
    else:
        async with world_on(store_database) as opened:
            yield opened
