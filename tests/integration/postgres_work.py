"""What tests of the store on PostgreSQL look at behind its back: rows, plans, locks, refusals."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager

import pytest

from goclaw_py.store.postgres import Connection, connection
from goclaw_py.store.postgres.pool import DatabaseError
from goclaw_py.store.sql import queries
from tests.support.postgres import Database, run_sql
from tests.support.stores import PATIENCE_S

_REFUSE = """
create function refuse() returns trigger language plpgsql as $$
begin
    raise exception 'no more';
end
$$;
"""


async def everything(database: Database, tables: Iterable[str]) -> dict[str, list[str]]:
    """What these tables hold."""
    async with connection(database.address) as opened:
        return {
            table: sorted(
                row["text"] for row in await opened.fetch(f"select t::text as text from {table} t")
            )
            for table in tables
        }


@asynccontextmanager
async def refusing(
    database: Database, table: str, events: str = "insert or update or delete", condition: str = ""
) -> AsyncIterator[None]:
    """Meanwhile this table takes no such change; ``no more`` is what it says."""
    trigger = f"create trigger refuse before {events} on {table} {condition}"
    await run_sql(database.address, _REFUSE, f"{trigger} execute function refuse()")
    yield
    await run_sql(database.address, f"drop trigger refuse on {table}; drop function refuse")


async def changes_all_or_nothing(
    database: Database, change: Callable[[], Awaitable[object]], tables: Iterable[str], table: str
) -> None:
    """Check a change that fails at one table, and then does not."""
    before = await everything(database, tables)
    async with refusing(database, table):
        with pytest.raises(DatabaseError, match="no more"):
            await change()
        assert await everything(database, tables) == before
    await change()
    assert await everything(database, tables) != before


async def until_somebody_waits(database: Database, number: int = 1) -> None:
    """Return when so many locks are waited for."""
    async with connection(database.address) as watching, asyncio.timeout(PATIENCE_S):
        while len(await watching.fetch("select from pg_locks where not granted")) < number:
            await asyncio.sleep(0.005)


async def plan(direct: Connection, file: str, name: str) -> str:
    """How a statement is carried out, made for any values, as the store's connections make it."""
    query = queries(file)[name]
    numbers = [int(number) for number in re.findall(r"\$(\d+)", query)]
    values = f"({', '.join(['null'] * max(numbers))})" if numbers else ""
    await direct.script(f"prepare {file}_{name} as {query}")
    rows = await direct.fetch(f"explain execute {file}_{name}{values}")
    return "\n".join(row["QUERY PLAN"] for row in rows)
