"""Tokens with a name and a role in the API (SPEC SEC-8)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from goclaw_py.operations.control import Control
from goclaw_py.operations.web_access import NewToken
from goclaw_py.records import Token
from goclaw_py.web.api.paging import in_utc
from goclaw_py.web.api.wire import TokenBody

NamePath = Annotated[str, Path(min_length=1, max_length=512, examples=["grafana"])]


def token_routes(control: Control) -> APIRouter:
    """Return the routes below ``/api/tokens``."""
    api = APIRouter(tags=["tokens"])

    @api.get("")
    async def tokens() -> list[Token]:
        """List the tokens with names, by name; also those that have expired."""
        return await control.tokens()

    @api.post("")
    async def create(body: TokenBody) -> NewToken:
        """Make a token. The answer has the only copy of its `secret`.

        `viewer` reads, with `reads_text` also the text of messages; `operator` acts; `admin`
        decides about people, settings, tokens and nodes. Without `expires_at` it does not end.
        """
        end = None if body.expires_at is None else in_utc("expires_at", body.expires_at)
        return await control.create_token(
            body.name, body.role, reads_text=body.reads_text, expires_at=end
        )

    @api.delete("/{name:path}", status_code=204)
    async def revoke(name: NamePath) -> None:
        """Revoke a token, and sign out the browsers that used it."""
        await control.revoke_token(name)

    return api
