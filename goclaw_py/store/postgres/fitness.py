"""Whether a database can carry a gateway; what it cannot is told before anything is lost by it.

What is asked here leaves nothing in a session, which a pooler may give to others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from goclaw_py.model.errors import SessionShared, StoreError, StoreUnavailable
from goclaw_py.store.postgres.pool import Address, Connection, connect
from goclaw_py.store.postgres.refusals import OLDEST, PRIMARY, RIGHTS, WRITABLE, too_old
from goclaw_py.store.sql import queries

_SQL = queries("fitness")
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class DatabaseProblem:
    """What a database cannot do, and what helps."""

    fact: str
    cure: str
    passes: bool = False
    """Whether it may end by itself: another server becomes the primary."""

    def error(self) -> StoreError:
        """The same in one line, to be raised."""
        kind = StoreUnavailable if self.passes else StoreError
        return kind(f"the database cannot be used: {self.fact}; {self.cure}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What a server says of itself, and of what we may do there.

    Args:
        version: Such as 160004.
        us: Our role, quoted as in SQL; so is ``schema``.
        lacking: What we may not do, with the tables of ours that are there.
        owners: The owners of those tables that are not ours, with the tables.
        used: Connections of all programs, of ``most``.
    """

    version: int = 160_000
    is_standby: bool = False
    is_read_only: bool = False
    may_create: bool = True
    encoding: str = "UTF8"
    us: str = "goclaw"
    schema: str = "public"
    lacking: Mapping[str, Sequence[str]] = field(default_factory=dict)
    owners: Mapping[str, Sequence[str]] = field(default_factory=dict)
    used: int = 1
    most: int = 100

    def version_fault(self) -> DatabaseProblem | None:
        """Whether it is too old."""
        if (major := self.version // 10_000) >= OLDEST:
            return None
        return DatabaseProblem(too_old(major), f"use PostgreSQL {OLDEST} or later")

    def writes_fault(self) -> DatabaseProblem | None:
        """Whether it takes no changes."""
        if self.is_standby:
            return DatabaseProblem(
                "this server is a standby and takes no changes", PRIMARY, passes=True
            )
        if self.is_read_only:
            return DatabaseProblem("its transactions are read-only", WRITABLE, passes=True)
        return None

    def rights_fault(self, pending: Sequence[str]) -> DatabaseProblem | None:
        """Whether we may do too little; making tables counts as long as migrations are pending."""
        if self.lacking:
            cure = f"GRANT {RIGHTS} ON ALL TABLES IN SCHEMA {self.schema} TO {self.us}"
            return DatabaseProblem(f"the user {self.us} may not {self._lacking_words()}", cure)
        if not pending:
            return None
        for owner, names in self.owners.items():
            fact = f"the user {self.us} may not migrate the tables of {owner} ({_named(names)})"
            return DatabaseProblem(
                fact, f"let {owner} be the user of database.url once, for: goclaw migrate"
            )
        if not self.may_create:
            cure = f"GRANT USAGE, CREATE ON SCHEMA {self.schema} TO {self.us}"
            return DatabaseProblem(
                f"the user {self.us} may make no tables in schema {self.schema}", cure
            )
        return None

    def _lacking_words(self) -> str:
        rights: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for right, names in self.lacking.items():
            rights[tuple(names)].append(right)
        return ", nor ".join(f"{', '.join(all_)} in {_named(t)}" for t, all_ in rights.items())

    def encoding_fault(self) -> DatabaseProblem | None:
        """Whether there are characters that it cannot hold."""
        if self.encoding == "UTF8":
            return None
        cure = "make one that does: CREATE DATABASE goclaw ENCODING 'UTF8' TEMPLATE template0"
        return DatabaseProblem(f"{self.encoding} does not hold every character", cure)

    def faults(self, pending: Sequence[str] = ()) -> list[DatabaseProblem]:
        """All of them, the worst first."""
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
    """A connection that leaves its session as it is. Raises as ``connect``."""
    opened = await connect(address, bare=True)
    try:
        yield opened
    finally:
        await opened.close()


async def shares_sessions(one: Connection, other: Connection) -> bool:
    """Whether a pooler gives each statement of two ``bare`` connections whichever session is free.

    Two connections have two sessions for as long as they live: at the server itself, and behind a
    pooler in session mode. A pooler that takes the session that was free last gives both the same;
    one that takes them in turn gives one of them several.
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
    """Ask a server what it is like, and what time it is there. ``tables`` are to be ours."""
    row = await connection.row(_SQL["server"])
    assert row is not None, "a session has a database"
    lacking: dict[str, list[str]] = defaultdict(list)
    owners: dict[str, list[str]] = defaultdict(list)
    for table in await connection.fetch(_SQL["rights"], tables):
        for right in table["lacking"]:
            lacking[right].append(table["name"])
        if table["owner"] is not None:
            owners[table["owner"]].append(table["name"])
    names = (
        "version", "is_standby", "is_read_only", "may_create", "encoding", "us", "schema", "most"
    )  # fmt: skip
    facts = {name: row[name] for name in names}
    return ServerFacts(**facts, used=row["used"] or 0, lacking=lacking, owners=owners), row["at"]


async def ensure_writable(connection: Connection) -> None:
    """Raise ``StoreUnavailable`` if the server takes no changes: after a failover, a standby."""
    row = await connection.row(_SQL["may_write"])
    if row is not None and (fault := ServerFacts(**dict(row)).writes_fault()) is not None:
        raise fault.error()
