"""Tokens with a name and a role (SPEC SEC-8)."""

from __future__ import annotations

import logging
import secrets
from datetime import datetime

from goclaw_py.core.actors import AccessRole
from goclaw_py.core.errors import NotFound
from goclaw_py.core.web_links import SECRET_BYTES, secret_hash
from goclaw_py.operations.web_access import NewToken
from goclaw_py.records import Store, Token
from goclaw_py.records.tokens import NAME_RULE, PREFIX, BadToken, TokenExists, is_token_name

log = logging.getLogger(__name__)


async def create(store: Store, token: Token) -> NewToken:
    """Make a token; see ``Control.create_token``."""
    if not is_token_name(token.name):
        raise BadToken(NAME_RULE)
    if not token.is_valid(token.created_at):
        raise BadToken("the end of a token must be in the future")
    secret = f"{PREFIX}{secrets.token_urlsafe(SECRET_BYTES)}"
    if not await store.add_token(token, secret_hash(secret)):
        raise TokenExists(f"there is a token {token.name!r}; revoke it, or take another name")
    log.info("token_created", extra=_facts(token))
    return NewToken(token, secret)


async def revoke(store: Store, name: str) -> None:
    """Revoke a token. Raises ``NotFound``."""
    if not await store.revoke_token(name):
        raise NotFound(f"there is no token {name!r}; see: goclaw web tokens")
    log.info("token_revoked", extra={"token": name})


def new_token(
    name: str, role: AccessRole, *, reads_text: bool, expires_at: datetime | None, now: datetime
) -> Token:
    """Return a token that was not used yet. All roles but viewers may read text anyway."""
    return Token(name, role, reads_text or role is not AccessRole.VIEWER, now, expires_at)


def _facts(token: Token) -> dict[str, object]:
    end = None if token.expires_at is None else token.expires_at.isoformat()
    return {"token": token.name, "role": token.role.value, "expires_at": end}
