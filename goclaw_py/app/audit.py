"""Records what a process does with the database as a whole (SPEC SEC-9)."""

from __future__ import annotations

from goclaw_py.core.time.clocks import SystemClock
from goclaw_py.gateway.audit.log import StoredAuditLog
from goclaw_py.records.audit import Facts
from goclaw_py.store.postgres.audit import ConnectionAudit
from goclaw_py.store.postgres.pool import Connection


async def record(connection: Connection, action: str, subject: str, after: Facts) -> None:
    """Record a backup, a restore or migrations, over the connection that did it."""
    log = StoredAuditLog(ConnectionAudit(connection), SystemClock(), lambda: "", str)
    await log.record(action, subject, after=after)
