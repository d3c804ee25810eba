"""Where actions are recorded (SPEC SEC-9)."""

from __future__ import annotations

from typing import Protocol

from goclaw_py.model.actors import Actor
from goclaw_py.ports.store.audit import ALL_ENTRIES, OK, AuditEntry, AuditFilter, Facts


class AuditLog(Protocol):
    """Records who has changed what."""

    async def record(
        self,
        action: str,
        subject: str,
        *,
        by: Actor | None = None,
        before: Facts | None = None,
        after: Facts | None = None,
        result: str = OK,
    ) -> None:
        """Record an action after it was done. Raises nothing: what was done is done.

        ``by`` is who did it; None: the actor of the work in progress, or the node.
        """


class AuditReader(Protocol):
    """The part of ``Control`` that reads the audit log."""

    async def audit_entries(
        self, *, limit: int = 50, only: AuditFilter = ALL_ENTRIES, before: int | None = None
    ) -> list[AuditEntry]:
        """Return who has changed what, the newest first (SPEC SEC-9)."""


class NoAudit:
    """Records nothing, for parts that are used without a gateway."""

    async def record(
        self,
        action: str,
        subject: str,
        *,
        by: Actor | None = None,
        before: Facts | None = None,
        after: Facts | None = None,
        result: str = OK,
    ) -> None:
        """See ``AuditLog``."""
