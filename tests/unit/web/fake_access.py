"""Browsers, tokens and the audit log, and a control that knows them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import cast

from goclaw_py.core.actors import AccessRole
from goclaw_py.operations.access.operations import Access
from goclaw_py.operations.audit.operations import AuditEntries
from goclaw_py.records import AuditEntry, AuditFilter, SignIn, Store, Token
from tests.unit.web.fake_names import AT, FixedClock
from tests.unit.web.fake_people import FakePeople

BROWSER = SignIn("6f2a90c1d4e8", AT, AT, AT + timedelta(days=30), "192.0.2.1", "Firefox <b>")
OTHER = SignIn("0a1b2c3d4e5f", AT, AT, AT + timedelta(days=30), "2001:db8::7", "")
GRAFANA = Token("grafana", AccessRole.VIEWER, False, AT, None, AT)
EXPIRED = Token("<old>", AccessRole.OPERATOR, True, AT, AT - timedelta(days=1))
EVIL = "<img src=x onerror='window.__hit=7'>\x1b[2J"
AUDIT = [
    AuditEntry(
        2, AT, "person", f"telegram/default/7 {EVIL}", "", "telegram:-100", "node-1", "job.edit",
        f"job {EVIL}", {"name": EVIL, "gone": 1}, {"name": "b", "lines": [EVIL]}, EVIL,
    ),
    AuditEntry(
        1, AT, "command_line", "ann", "admin", "goclaw nodes drain node-2", "node-1", "node.drain",
        "node node-2", None, None, "ok",
    ),
]  # fmt: skip


class FakeAccessStore:
    """The browsers, tokens and audit log of ``FakeControl``. ``called`` notes what is asked."""

    def __init__(self, called: Callable[..., None]) -> None:
        self._called = called

    async def audit_entries(
        self, *, limit: int, only: AuditFilter, before: int | None
    ) -> list[AuditEntry]:
        self._called("audit_entries", limit, only, before)
        return [one for one in AUDIT if before is None or one.id < before][:limit]

    async def sign_ins(self, *, now: datetime) -> list[SignIn]:
        del now
        self._called("sign_ins")
        return [BROWSER, OTHER]

    async def end_sign_in(self, sign_in: str) -> bool:
        self._called("end_sign_in", sign_in)
        return sign_in in (BROWSER.id, OTHER.id)

    async def end_sign_ins(self) -> int:
        self._called("end_sign_ins")
        return 2

    async def tokens(self) -> list[Token]:
        self._called("tokens")
        return [GRAFANA, EXPIRED]

    async def add_token(self, token: Token, secret_hash: str) -> bool:
        del secret_hash
        self._called("add_token", token.name, token.role, token.reads_text, token.expires_at)
        return token.name not in (GRAFANA.name, EXPIRED.name)

    async def revoke_token(self, name: str) -> bool:
        self._called("revoke_token", name)
        return name in (GRAFANA.name, EXPIRED.name)


class FakeAccess(FakePeople):
    """The part of ``FakeControl`` that is about who signs in, and what was done."""

    def __init__(self) -> None:
        super().__init__()
        store = cast("Store", FakeAccessStore(self._called))
        self.access = Access(store, FixedClock())
        self.audit = AuditEntries(store)
