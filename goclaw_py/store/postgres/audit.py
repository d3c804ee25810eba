"""The audit log."""

from __future__ import annotations

import orjson

from goclaw_py.core.storable import storable_json
from goclaw_py.records.audit import ALL_ENTRIES, AuditEntry, AuditFilter, Facts
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.part import PostgresPart
from goclaw_py.store.postgres.pool import Connection, Row
from goclaw_py.store.sql import queries
from goclaw_py.store.text import folded, storable

_SQL = queries("audit")


class PostgresAudit(PostgresPart):
    """Implements ``AuditStore``."""

    async def add_audit_entry(self, entry: AuditEntry) -> None:
        await self._pool.fetch(_SQL["add"], *_columns(entry))

    async def audit_entries(
        self, *, limit: int = 50, only: AuditFilter = ALL_ENTRIES, before: int | None = None
    ) -> list[AuditEntry]:
        found = await self._pool.fetch(
            _SQL["list"],
            limit,
            before,
            _part(only.who),
            None if only.action is None else storable(only.action),
            _part(only.subject),
            only.since,
            only.until,
        )
        return [_entry(row) for row in found]


class ConnectionAudit:
    """Implements ``AuditWriter`` over one connection, where there is no store."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def add_audit_entry(self, entry: AuditEntry) -> None:
        await self._connection.fetch(_SQL["add"], *_columns(entry))


def _columns(entry: AuditEntry) -> tuple[object, ...]:
    """Return the arguments of the statement that adds an entry."""
    one = storable(entry)
    return (
        one.at,
        one.kind,
        one.actor,
        one.role,
        one.via,
        one.node,
        one.action,
        one.subject,
        _json(one.before),
        _json(one.after),
        one.result,
    )


def _json(facts: Facts | None) -> str | None:
    return None if facts is None else storable_json(facts).decode()


def _part(text: str | None) -> str | None:
    return None if text is None else folded(storable(text))


def _entry(row: Row) -> AuditEntry:
    facts = {name: row[name] and orjson.loads(row[name]) for name in ("before", "after")}
    return rows.from_row(AuditEntry, row, **facts)
