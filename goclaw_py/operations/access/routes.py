"""Browsers that are signed in, and tokens, in the API (SPEC OPS-2, SEC-6, SEC-8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from goclaw_py.core.actors import AccessRole
from goclaw_py.operations.access.operations import Access, NewToken
from goclaw_py.operations.control import Control
from goclaw_py.records import SignIn, Token
from goclaw_py.web.api.serve import serve
from goclaw_py.web.api.wire import Body, Flag, Instant

NamePath = Annotated[str, Path(min_length=1, max_length=512, examples=["grafana"])]


class TokenBody(Body):
    """The name and role of a new token; ``expires_at``: its end, with a zone."""

    name: Annotated[str, Field(min_length=1, max_length=512)]
    role: AccessRole
    reads_text: Flag = False
    expires_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class EndedAnswer:
    """The number of browsers that were signed out."""

    ended: int


def sign_in_routes(control: Control) -> APIRouter:
    """Return the routes about browsers."""
    api = APIRouter(tags=["people"])

    @serve(api, Access.sign_ins)
    async def sign_ins() -> list[SignIn]:
        """List the browsers that are signed in, the most recently used first."""
        return await control.access.sign_ins()

    @serve(api, Access.end_sign_in, status_code=204)
    async def end_sign_in(sign_in: str) -> None:
        """Sign a browser out, within 5 seconds."""
        await control.access.end_sign_in(sign_in)

    @serve(api, Access.end_sign_ins)
    async def end_sign_ins() -> EndedAnswer:
        """Sign all browsers out, within 5 seconds."""
        return EndedAnswer(await control.access.end_sign_ins())

    return api


def token_routes(control: Control) -> APIRouter:
    """Return the routes about tokens."""
    api = APIRouter(tags=["tokens"])

    @serve(api, Access.tokens)
    async def tokens() -> list[Token]:
        """List the tokens with names, by name; also those that have expired."""
        return await control.access.tokens()

    @serve(api, Access.create_token)
    async def create(body: TokenBody) -> NewToken:
        """Make a token. The answer has the only copy of its `secret`.

        `viewer` reads, with `reads_text` also the text of messages; `operator` acts; `admin`
        decides about people, settings, tokens and nodes. Without `expires_at` it does not end.
        """
        return await control.access.create_token(
            body.name, body.role, reads_text=body.reads_text, expires_at=body.expires_at
        )

    @serve(api, Access.revoke_token, status_code=204)
    async def revoke(name: NamePath) -> None:
        """Revoke a token, and sign out the browsers that used it."""
        await control.access.revoke_token(name)

    return api
