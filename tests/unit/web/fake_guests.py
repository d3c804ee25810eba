"""Browsers, tokens and the audit log, and a control that knows them."""

from __future__ import annotations

from datetime import datetime, timedelta

from goclaw_py.core.actors import AccessRole
from goclaw_py.core.errors import NotFound
from goclaw_py.operations.web_access import NewToken
from goclaw_py.records import ALL_ENTRIES, AuditEntry, AuditFilter, SignIn, Token
from goclaw_py.records.tokens import BadToken, TokenExists, is_token_name
from tests.unit.web.fake_people import FakePeople
from tests.unit.web.fake_post import AT

SECRET = "q0Vb3nJxT2m8sYkW5hR1uZ7cD9fL4gA6pE-oXiNvB_Q"
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


class FakeGuests(FakePeople):
    """The part of ``FakeControl`` that is about who signs in, and what was done."""

    def __init__(self) -> None:
        super().__init__()
        self.browsers = [BROWSER, OTHER]
        self.tokens_made = [GRAFANA, EXPIRED]
        self.audited = AUDIT

    async def audit_entries(
        self, *, limit: int = 50, only: AuditFilter = ALL_ENTRIES, before: int | None = None
    ) -> list[AuditEntry]:
        self._called("audit_entries", limit, only, before)
        return [one for one in self.audited if before is None or one.id < before][:limit]

    async def sign_ins(self) -> list[SignIn]:
        self._called("sign_ins")
        return self.browsers

    async def end_sign_in(self, sign_in: str) -> None:
        self._called("end_sign_in", sign_in)
        if sign_in not in {one.id for one in self.browsers}:
            raise NotFound(f"no {sign_in}")

    async def end_sign_ins(self) -> int:
        self._called("end_sign_ins")
        return len(self.browsers)

    async def tokens(self) -> list[Token]:
        self._called("tokens")
        return self.tokens_made

    async def create_token(
        self,
        name: str,
        role: AccessRole,
        *,
        reads_text: bool = False,
        expires_at: datetime | None = None,
    ) -> NewToken:
        self._called("create_token", name, role, reads_text, expires_at)
        if not is_token_name(name):
            raise BadToken("no name")
        if name in {one.name for one in self.tokens_made}:
            raise TokenExists(f"there is a token {name!r}")
        return NewToken(Token(name, role, reads_text, AT, expires_at), f"goclaw_{SECRET}")

    async def revoke_token(self, name: str) -> None:
        self._called("revoke_token", name)
        if name not in {one.name for one in self.tokens_made}:
            raise NotFound(f"no {name}")
