"""What operators read of the audit log (SPEC SEC-9)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

from goclaw_py.core.actors import Least
from goclaw_py.operations.declare import operation
from goclaw_py.records import ALL_ENTRIES, AuditEntry, AuditFilter
from goclaw_py.records.audit import AuditStore

_PAGE: Final = 500
"""The number of entries that are read at once."""


class AuditEntries:
    """Every method may raise ``StoreUnavailable``, and ``NoGateway`` from another process."""

    def __init__(self, store: AuditStore) -> None:
        self._store = store

    @operation("GET /api/audit", Least.ADMIN)
    async def list(
        self, *, limit: int = 50, only: AuditFilter = ALL_ENTRIES, before: int | None = None
    ) -> list[AuditEntry]:
        """Return who has changed what, the newest first."""
        return await self._store.audit_entries(limit=limit, only=only, before=before)


async def audit_pages(entries: AuditEntries, only: AuditFilter) -> AsyncGenerator[list[AuditEntry]]:
    """Yield all selected entries, the newest first, some hundreds at a time; at least one page.

    An entry that is added meanwhile is not among them.
    """
    before: int | None = None
    while True:
        found = await entries.list(limit=_PAGE, only=only, before=before)
        yield found
        if len(found) < _PAGE:
            return
        before = found[-1].id
