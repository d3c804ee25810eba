"""Check whether a database meets the requirements, before anything can be lost.

The queries leave no state in the session, because a pooler may share it with other clients.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from goclaw_py.core.errors import SessionShared, StoreError, StoreUnavailable
from goclaw_py.store.postgres.address import Address
from goclaw_py.store.postgres.pool import Connection, connect
from goclaw_py.store.postgres.refusals import OLDEST, PRIMARY, RIGHTS, WRITABLE, too_old
from goclaw_py.store.sql import queries

_SQL = queries("fitness")
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class DatabaseProblem:
    """A problem of a database, and how to fix it."""

    fact: str
    cure: str
    passes: bool = False
    """Whether it may be temporary: another server may become the primary."""

    def error(self) -> StoreError:
        """Return the problem as an exception with one line."""
        kind = StoreUnavailable if self.passes else StoreError
        return kind(f"the database cannot be used: {self.fact}", self.cure)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """The properties of a server, and our privileges there.

    Args:
        version: Such as 160004.
        us: Our role, quoted as in SQL; so is ``schema``.
        lacking: Missing privileges, with the existing tables they are missing for.
        owners: Other owners of our tables, with the tables.
        used: The connections of all programs, of at most ``most``.
        vacuums: Whether autovacuum is on.
        skipped: Our tables for which it is off.
    """

    version: int = 160_000
    is_standby: bool = False
    is_read_only: bool = False
    waits_for_standby: bool = False
    may_create: bool = True
    encoding: str = "UTF8"
    us: str = "goclaw"
    schema: str = "public"
    lacking: Mapping[str, Sequence[str]] = field(default_factory=dict)
    owners: Mapping[str, Sequence[str]] = field(default_factory=dict)
    used: int = 1
    most: int = 100
    vacuums: bool = True
    skipped: Sequence[str] = ()

    def version_fault(self) -> DatabaseProblem | None:
        """Return a problem if the server is too old."""
        if (major := self.version // 10_000) >= OLDEST:
            return None
        return DatabaseProblem(too_old(major), f"use PostgreSQL {OLDEST} or later")

    def writes_fault(self) -> DatabaseProblem | None:
        """Return a problem if the server is read-only, or its commits hang."""
        if self.is_standby:
            return DatabaseProblem("this server is a read-only standby", PRIMARY, passes=True)
        if self.is_read_only:
            return DatabaseProblem("its transactions are read-only", WRITABLE, passes=True)
        if self.waits_for_standby:
            fact = "its commits wait for a standby that does not answer"
            cure = "start the standby, or take it out of synchronous_standby_names"
            return DatabaseProblem(fact, cure, passes=True)
        return None

    def rights_fault(self, pending: Sequence[str]) -> DatabaseProblem | None:
        """Return a problem if privileges are missing; CREATE only if migrations are pending."""
        if self.lacking:
            cure = f"GRANT {RIGHTS} ON ALL TABLES IN SCHEMA {self.schema} TO {self.us}"
            return DatabaseProblem(f"the user {self.us} may not {self._lacking_words()}", cure)
        if not pending:
            return None
        for owner, names in self.owners.items():
            fact = f"the user {self.us} may not migrate the tables of {owner} ({_named(names)})"
            return DatabaseProblem(
                fact, f"run goclaw migrate once with {owner} as the user in database.url"
            )
        if not self.may_create:
            cure = f"GRANT USAGE, CREATE ON SCHEMA {self.schema} TO {self.us}"
            return DatabaseProblem(
                f"the user {self.us} may not create tables in schema {self.schema}", cure
            )
        return None

    def _lacking_words(self) -> str:
        rights: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for right, names in self.lacking.items():
            rights[tuple(names)].append(right)
        return ", nor ".join(f"{', '.join(all_)} in {_named(t)}" for t, all_ in rights.items())

    def encoding_fault(self) -> DatabaseProblem | None:
        """Return a problem if the encoding cannot store all characters."""
        if self.encoding == "UTF8":
            return None
        cure = "create another one: CREATE DATABASE goclaw ENCODING 'UTF8' TEMPLATE template0"
        return DatabaseProblem(f"the encoding {self.encoding} cannot store all characters", cure)

    def vacuum_fault(self) -> DatabaseProblem | None:
        """Return a problem if dead rows are not removed. A gateway starts nevertheless."""
        if not self.vacuums:
            cure = (
                "ALTER SYSTEM SET autovacuum = on, and track_counts = on; SELECT pg_reload_conf()"
            )
            return DatabaseProblem("autovacuum is off: dead rows fill the disk", cure)
        if self.skipped:
            fact = f"autovacuum is off for {_named(self.skipped)}: dead rows fill the disk"
            cure = f"ALTER TABLE {self.skipped[0]} RESET (autovacuum_enabled)"
            return DatabaseProblem(fact, f"{cure}, and the same for each of them")
        return None

    def faults(self, pending: Sequence[str] = ()) -> list[DatabaseProblem]:
        """Return all problems, the worst first."""
        found = (
            self.version_fault(),
            self.writes_fault(),
            self.encoding_fault(),
            self.rights_fault(pending),
        )
        return [fault for fault in found if fault is not None]


def _named(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


@asynccontextmanager
async def bare(address: Address) -> AsyncIterator[Connection]:
    """Open a connection that does not change its session. Raises as ``connect``."""
    opened = await connect(address, bare=True)
    try:
        yield opened
    finally:
        await opened.close()


async def shares_sessions(one: Connection, other: Connection) -> bool:
    """Whether a pooler assigns a server session to each statement instead of each connection.

    Two ``bare`` connections have two fixed sessions without a pooler, and behind a pooler in
    session mode. In other modes, a pooler that uses the last free session gives both the same one;
    a pooler that uses sessions in turn gives several to one connection.
    """
    try:
        seen = [(each, await _backend(each)) for each in (one, one, other, other, one)]
    except SessionShared:
        return True
    return len({pid for _, pid in seen}) != 2 or len(set(seen)) != 2


async def _backend(connection: Connection) -> int:
    row = await connection.row(_SQL["backend"])
    return -1 if row is None else int(row["pid"])


async def examine(connection: Connection, tables: Sequence[str]) -> tuple[ServerFacts, datetime]:
    """Query the properties and the time of a server. ``tables`` are our tables."""
    row = await connection.row(_SQL["server"])
    assert row is not None, "a session has a database"
    lacking: dict[str, list[str]] = defaultdict(list)
    owners: dict[str, list[str]] = defaultdict(list)
    skipped: list[str] = []
    for table in await connection.fetch(_SQL["rights"], tables):
        for right in table["lacking"]:
            lacking[right].append(table["name"])
        if table["owner"] is not None:
            owners[table["owner"]].append(table["name"])
        if table["is_skipped"]:
            skipped.append(table["name"])
    names = (
        "version", "is_standby", "is_read_only", "may_create", "encoding", "us", "schema", "most",
        "vacuums",
    )  # fmt: skip
    facts = {name: row[name] for name in names} | {"lacking": lacking, "owners": owners}
    return ServerFacts(**facts, used=row["used"] or 0, skipped=skipped), row["at"]


async def ensure_writable(connection: Connection) -> None:
    """Raise ``StoreUnavailable`` if the server is read-only, or its commits hang."""
    row = await connection.row(_SQL["may_write"])
    if row is not None and (fault := ServerFacts(**dict(row)).writes_fault()) is not None:
        raise fault.error()
