"""Questions about tool calls, and what their answers allow, in the API (SPEC AGENT-11)."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query

from goclaw_py.core.approvals import Approval, Decision, ToolGrant
from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.operations.approvals.operations import Approvals
from goclaw_py.operations.control import Control
from goclaw_py.records import ApprovalQuery
from goclaw_py.web.api.paging import LINK, Before, Limit, Page
from goclaw_py.web.api.serve import serve
from goclaw_py.web.api.wire import Body, Key, Name

ApprovalPath = Annotated[str, Path(min_length=1, max_length=64, examples=["9f86d081"])]
Waiting = Annotated[bool, Query(description="`false`: also those with an answer.")]
OfSession = Annotated[
    str | None, Query(min_length=1, max_length=512, description="The whole key of a session.")
]


class DecideBody(Body):
    """The answer to a question about a tool call.

    ``rule``: for `always` the name of the tool, which from then on is called without a question.
    """

    decision: Literal[
        Decision.ONCE,
        Decision.SESSION,
        Decision.ALWAYS,
        Decision.DENY,
        Decision.HAPPENED,
        Decision.AGAIN,
        Decision.SKIP,
    ]
    rule: str = ""


class GrantBody(Body):
    """A grant; ``session`` is null if it holds in all sessions."""

    agent: Name
    tool: Name
    session: Key | None = None


def approval_routes(control: Control) -> APIRouter:
    """Return the routes."""
    api = APIRouter(tags=["approvals"])

    @serve(api, Approvals.list, responses=LINK)
    async def approvals(
        page: Page,
        before: Before,
        limit: Limit = 50,
        session: OfSession = None,
        *,
        waiting: Waiting = True,
    ) -> list[Approval]:
        """List tool calls that wait for an answer, the newest first."""
        key = None if session is None else SessionKey(session)
        wanted = ApprovalQuery(key, waiting=waiting, limit=limit + 1, before=before)
        return page.of(await control.approvals.list(wanted), limit)

    @serve(api, Approvals.get)
    async def one(prefix: ApprovalPath) -> Approval:
        """Get a question by its id or a unique beginning of it."""
        return await control.approvals.get(prefix)

    @serve(api, Approvals.decide)
    async def decide(prefix: ApprovalPath, body: DecideBody) -> Approval:
        """Answer a question about a tool call.

        `once`, `session`, `always` or `deny`; if `request.uncertain` is set, `happened`, `again` or
        `skip`. The run continues when all of its questions are answered. `always` needs the name
        of the tool as `rule`; without it the error says which rule would be added.
        """
        return await control.approvals.decide(prefix, body.decision, rule=body.rule)

    @serve(api, Approvals.grants)
    async def grants() -> list[ToolGrant]:
        """List the tools that agents may call without a question."""
        return await control.approvals.grants()

    @serve(api, Approvals.revoke, status_code=204)
    async def revoke(body: GrantBody) -> None:
        """Ask again about a tool."""
        session = None if body.session is None else SessionKey(body.session)
        await control.approvals.revoke(AgentName(body.agent), body.tool, session)

    return api
