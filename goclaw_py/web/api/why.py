"""Why something did or did not happen (SPEC OPS-4)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from goclaw_py.model.explanation import Explanation
from goclaw_py.ports.control import Control
from goclaw_py.web.api.answers import answer

About = Annotated[str | None, Query(min_length=1, max_length=512, examples=["telegram:100"])]


def why_routes(control: Control) -> APIRouter:
    """The route that explains, below ``/api``."""
    api = APIRouter(tags=["why"])

    @api.get("/why", response_model=Explanation)
    async def why(about: About = None) -> Response:
        """Explain why something did or did not happen, and what to do about it.

        `about`: a conversation, chat, person, message, run, job, agent or node by whatever it is
        called; without it, what is wrong with the gateway now. `code` and the codes in `chain`
        stay the same over releases. Where several things are meant, the error lists them.
        """
        return answer(Explanation, await control.why(about))

    return api
