"""The audit log, for layers that must know of it before they load its routes, page or commands."""

from __future__ import annotations

from typing import Final

from goclaw_py.core.actors import Least
from goclaw_py.operations.audit.operations import AuditEntries
from goclaw_py.operations.declare import Noun

AUDIT: Final = Noun(
    "audit",
    AuditEntries,
    pages={Least.ADMIN: ("GET /api/audit/export", "GET /audit", "GET /live/audit")},
    text={"AuditEntry": "kind actor role via node action subject before after result"},
)
