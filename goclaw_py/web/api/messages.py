"""Browsers in the API (SPEC OPS-2, SEC-6)."""

from __future__ import annotations

from fastapi import APIRouter

from goclaw_py.operations.control import Control
from goclaw_py.records import SignIn
from goclaw_py.web.api.wire import EndedAnswer


def sign_in_routes(control: Control) -> APIRouter:
    """Return the routes about browsers, below ``/api/web``."""
    api = APIRouter(tags=["people"])

    @api.get("/sign-ins")
    async def sign_ins() -> list[SignIn]:
        """List the browsers that are signed in, the most recently used first."""
        return await control.sign_ins()

    @api.delete("/sign-ins/{sign_in}", status_code=204)
    async def end_sign_in(sign_in: str) -> None:
        """Sign a browser out, within 5 seconds."""
        await control.end_sign_in(sign_in)

    @api.delete("/sign-ins")
    async def end_sign_ins() -> EndedAnswer:
        """Sign all browsers out, within 5 seconds."""
        return EndedAnswer(await control.end_sign_ins())

    return api
