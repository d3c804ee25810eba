"""Copying whole tables from and to the database, each in one transaction (SPEC DB-5)."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from graphlib import TopologicalSorter
from typing import Final

from goclaw_py.core.errors import BackupError
from goclaw_py.store import migrate
from goclaw_py.store.migrate import Migration
from goclaw_py.store.postgres.pool import Connection, DatabaseError
from goclaw_py.store.sql import queries

_SQL = queries("backups")

_LOCK_S: Final = 30
_NOT_CONTENT: Final = frozenset(
    {"nodes", "leases", "node_calls", "lane_slots", "sign_ins", "tokens"}
)
"""Tables about processes, which are no content, sign-ins and tokens.

One that was ended or revoked stays so, and somebody else's backup brings none.
"""

# What a COPY as text looks like depends on these; so does nothing else here.
_PLAIN: Final = """
set local datestyle = 'ISO, YMD';
set local timezone = 'UTC';
set local intervalstyle = 'postgres';
set local bytea_output = 'hex';
set local extra_float_digits = 1;
set local tcp_user_timeout = 0;
"""


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """A table with its columns, in order."""

    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LiveNode:
    """A process that uses the database; its lease is valid."""

    id: str
    host: str
    pid: int
    lease_until: datetime


class Snapshot:
    """All tables at one moment. In ``tables``, parents come before their children."""

    def __init__(
        self,
        connection: Connection,
        tables: tuple[CopiedTable, ...],
        applied: Mapping[int, tuple[str, str]],
        server: int,
    ) -> None:
        self._connection = connection
        self.tables = tables
        self.applied = applied
        self.server = server

    async def copy(self, table: CopiedTable, write: Callable[[bytes], Awaitable[None]]) -> int:
        """Pass the rows of a table to ``write``, in pieces of any length; return their number."""
        return await self._connection.copy_out(table.name, table.columns, write)

    async def sizes(self) -> dict[str, int]:
        """Return the bytes that each table takes in the database, about as many as its rows."""
        names = [table.name for table in self.tables]
        rows = await self._connection.fetch(_SQL["sizes"], names)
        return {row["name"]: row["bytes"] for row in rows}

    async def sequences(self) -> dict[str, int]:
        """Return the next number of each identity column, by ``table.column``.

        Sequences are not transactional: a number is never behind the rows of the snapshot.
        """
        names = [table.name for table in self.tables]
        found: dict[str, int] = {}
        for row in await self._connection.fetch(_SQL["identities"], names):
            # The server has quoted the name.
            query = f"select last_value + is_called::integer as next from {row['sequence']}"  # noqa: S608
            number = await self._connection.row(query)
            assert number is not None
            found[f"{row['table']}.{row['column']}"] = number["next"]
        return found


@asynccontextmanager
async def snapshot(
    connection: Connection, migrations: Sequence[Migration]
) -> AsyncIterator[Snapshot]:
    """Read all of our tables at one moment, while others use them.

    Raises ``MigrationError`` if this release does not know the schema, ``BackupError`` if there is
    none.
    """
    await migrate.check_server(connection)
    found = await migrate.status(connection)
    if not found.current:
        raise BackupError("there is nothing to back up: the database has no tables of goclaw")
    names = [table.name for table in await _tables(connection, migrate.tables(migrations))]
    async with connection.transaction(snapshot=True):
        # Truncating a table is visible in earlier snapshots too, so it must not happen now. A lock
        # alone does not fix the snapshot: the first query after it does.
        await connection.script(
            f"{_PLAIN} set local lock_timeout = '{_LOCK_S}s';"
            "set local idle_in_transaction_session_timeout = '10min';"
            f"lock table {', '.join(names)} in access share mode"
        )
        tables = await _tables(connection, names)
        applied = await migrate.applied(connection)
        if len(applied) != found.current:
            raise BackupError("the schema of the database has just been changed; try again")
        row = await connection.row("select current_setting('server_version_num')::integer as v")
        assert row is not None
        yield Snapshot(connection, tables, applied, row["v"])


async def moment(connection: Connection) -> datetime:
    """Return the server's time, by which leases are judged (SPEC NODE-1)."""
    row = await connection.row(queries("nodes")["time"])
    assert row is not None, "a statement without a table has one row"
    at: datetime = row["time"]
    return at


async def live_nodes(connection: Connection, *, now: datetime) -> list[LiveNode]:
    """Return the processes that use the database."""
    if not await _tables(connection, ["nodes"]):
        return []
    rows = await connection.fetch(_SQL["live_nodes"], now)
    return [LiveNode(row["id"], row["host"], row["pid"], row["lease_until"]) for row in rows]


async def filled_tables(connection: Connection, migrations: Sequence[Migration]) -> list[str]:
    """Return the tables with rows, except the tables about processes."""
    tables = await _tables(connection, migrate.tables(migrations))
    names = sorted({table.name for table in tables} - _NOT_CONTENT)
    # The names are those of our migrations.
    looks = {name: f"select 1 from {name} limit 1" for name in names}  # noqa: S608
    return [name for name, look in looks.items() if await connection.row(look)]


class Replacement:
    """The new contents that a transaction stores in place of all others; see ``replacing``."""

    def __init__(
        self,
        connection: Connection,
        tables: Mapping[str, CopiedTable],
        migrations: Sequence[Migration],
    ) -> None:
        self._connection = connection
        self._migrations = migrations
        self.tables = tables

    async def copy(self, table: CopiedTable, data: AsyncIterator[bytes]) -> int:
        """Add whole rows to a table; return their number."""
        with _explained():
            return await self._connection.copy_in(table.name, table.columns, data)

    async def finish(self, sequences: Mapping[str, int], *, now: datetime) -> list[str]:
        """Set the sequences, expire all nodes, and migrate the schema to this release.

        Returns the names of the files that were run.
        """
        with _explained():
            rows = await self._connection.fetch(_SQL["identities"], list(self.tables))
            known = {f"{row['table']}.{row['column']}": row for row in rows}
            if known.keys() != sequences.keys():
                raise BackupError("its numbers are not those of its tables")
            for name, row in known.items():
                # Unlike setval, this is undone with its transaction.
                await self._connection.script(
                    f"alter table {row['table']} alter column {row['column']} "
                    f"restart with {sequences[name]:d}"
                )
            await self._connection.fetch(_SQL["end_leases"], now)
            return await migrate.migrate_to(
                self._connection, self._migrations[-1].version, self._migrations
            )


@asynccontextmanager
async def replacing(
    connection: Connection,
    migrations: Sequence[Migration],
    version: int,
    *,
    now: datetime,
    may_replace: bool,
) -> AsyncIterator[Replacement]:
    """Empty all of our tables and bring them to ``version``, in one transaction.

    It commits at the end. If anything is raised in it, everything is as it was. Others wait
    meanwhile, or give up. Raises ``BackupError`` if a process works on the database, or there is
    something in it and ``may_replace`` is False; ``MigrationError`` if its schema is unknown.
    """
    await migrate.check_server(connection)
    await migrate.status(connection)
    async with migrate.alone(connection), connection.transaction():
        await connection.script(
            f"{_PLAIN} set local lock_timeout = '{_LOCK_S}s';"
            "set local idle_in_transaction_session_timeout = 0;"
            # The audit log is replaced with everything else; nothing but this may empty it.
            "set local goclaw.restores = 'yes'"
        )
        with _explained():
            await _empty(connection, migrations, now=now, may_replace=may_replace)
            await migrate.migrate_to(connection, version, migrations)
            tables = await _tables(connection, migrate.tables(migrations))
            by_name = {table.name: table for table in tables}
            yield Replacement(connection, by_name, migrations)


async def _empty(
    connection: Connection, migrations: Sequence[Migration], *, now: datetime, may_replace: bool
) -> None:
    there = ", ".join(each.name for each in await _tables(connection, migrate.tables(migrations)))
    if not there:
        return
    # From here on no process can join.
    await connection.script(f"lock table {there} in access exclusive mode")
    refuse_if_used(await live_nodes(connection, now=now))
    if not may_replace:
        refuse_if_filled(await filled_tables(connection, migrations))
    await connection.script(f"truncate {there} restart identity")


def refuse_if_used(nodes: Sequence[LiveNode]) -> None:
    """Raise ``BackupError`` if a process uses the database."""
    if nodes:
        node = nodes[0]
        raise BackupError(
            f"a gateway works on this database (process {node.pid} on "
            f"{node.host.partition('/')[0]}): stop it first; if it has died, wait until "
            f"{node.lease_until.astimezone():%H:%M:%S}"
        )


_CONTENTS: Final = {
    "conversations": {"sessions", "history"},
    "messages": {"inbox", "outbox"},
    "runs": {"runs", "run_steps"},
    "jobs": {"cron_jobs", "job_runs"},
    "heartbeats": {"heartbeats", "heartbeat_runs", "heartbeat_events"},
    "people": {"people", "chats", "pairing_requests"},
    "an audit log": {"audit"},
    "edits of settings": {"setting_edits"},
}
"""What people call the rows of tables; the others only go with these."""


def refuse_if_filled(tables: Sequence[str]) -> None:
    """Raise ``BackupError`` if the database has any content."""
    if tables:
        raise BackupError(
            f"the database has {contents(tables)}: --replace puts the backup in its place"
        )


def contents(tables: Sequence[str]) -> str:
    """Return what is in some tables, in the words of people."""
    words = [word for word, of in _CONTENTS.items() if not of.isdisjoint(tables)]
    return ", ".join(words) or "data"


async def _tables(connection: Connection, names: Collection[str]) -> tuple[CopiedTable, ...]:
    """Return the tables that exist, parents before children."""
    rows = await connection.fetch(_SQL["tables"], list(names))
    found = {row["name"]: CopiedTable(row["name"], tuple(row["columns"])) for row in rows}
    order: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(sorted(found), ()))
    for row in await connection.fetch(_SQL["references"], list(found)):
        order.add(row["child"], row["parent"])
    return tuple(found[name] for name in order.static_order())


@contextmanager
def _explained() -> Iterator[None]:
    """Convert the server's errors. Details are left out, because they may quote rows."""
    try:
        yield
    except DatabaseError as error:
        reason = str(error).partition("\n")[0]
        raise BackupError(f"the database does not take it: {reason}") from error
