"""The page of tool calls that need an approval, and of what people have allowed."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.chat.outbound import approval_texts
from goclaw_py.core.approvals import ABOUT_APPROVAL, ABOUT_OUTCOME, Decision
from goclaw_py.core.errors import ApprovalClosed, NotFound
from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.operations.control import Control
from goclaw_py.records import ApprovalQuery
from goclaw_py.web.pages.parameters import place
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query, back_to, form

SHOWN: Final = 50
_MOST_WAITING: Final = 200

LABELS: Final = {
    Decision.ONCE: "Allow once",
    Decision.SESSION: "Allow for this conversation",
    Decision.ALWAYS: "Always allow …",
    Decision.DENY: "Deny",
    Decision.HAPPENED: "It happened",
    Decision.AGAIN: "Run it again",
    Decision.SKIP: "Skip",
}


def routes(service: PageServices) -> list[Route]:
    """Return the page, and the forms to answer and to revoke."""
    control = service.control

    async def decide(request: Request) -> Response:
        fields = await form(request)
        approval, decision = fields.get("id", ""), fields.get("decision", "")
        if not approval or decision not in (*ABOUT_APPROVAL, *ABOUT_OUTCOME):
            raise HTTPException(422, "an answer has the id of the approval and a decision")
        rule, chat = fields.get("rule", ""), fields.get("name", "")
        # A question that was asked in the chat leads back there.
        back = partial(back_to, "/chat", name=chat) if chat else partial(back_to, "/approvals")
        if decision == Decision.ALWAYS and not rule:
            return await _rule(service, request, approval, chat)
        try:
            done = await control.approvals.decide(approval, Decision(decision), rule=rule)
        except (ApprovalClosed, NotFound):
            # Another person was faster, for example in the chat.
            return back("late")
        word = "denied" if decision == Decision.DENY else "allowed"
        notice = f"{word} {done.request.tool}" if decision in ABOUT_APPROVAL else "answered"
        return back(notice)

    async def revoke(request: Request) -> Response:
        fields = await form(request)
        agent, tool, session = (fields.get(name, "") for name in ("agent", "tool", "session"))
        if not agent or not tool:
            raise HTTPException(422, "a grant has an agent and a tool")
        key = SessionKey(session) if session else None
        try:
            await control.approvals.revoke(AgentName(agent), tool, key)
        except NotFound:
            return back_to("/approvals", "nothing")
        return back_to("/approvals", f"revoked grant {tool}")

    load, part = partial(_load, control), "approvals/page.html"
    page = Page("/approvals", "approvals", "Approvals", load, ("before",), part=part)
    return [
        *service.routes(page),
        Route("/approvals/decide", decide, methods=["POST"]),
        Route("/approvals/revoke", revoke, methods=["POST"]),
    ]


async def _rule(service: PageServices, request: Request, approval: str, chat: str) -> Response:
    """Show the rule that “always allow” adds. ``chat``: the conversation that leads here, or ""."""
    try:
        asked = await service.control.approvals.get(approval)
    except NotFound:
        return back_to("/approvals", "late")
    facts = {"title": "Always allow a tool", "path": "/approvals", "asked": asked, "chat": chat}
    facts["rule"] = approval_texts.rule(asked.agent, asked.request.tool)
    return service.answer(request, "approvals/rule.html", facts)


async def _load(control: Control, query: Query) -> Facts:
    before = place(query)
    waiting, newest, grants = await asyncio.gather(
        control.approvals.list(ApprovalQuery(limit=_MOST_WAITING)),
        control.approvals.list(ApprovalQuery(waiting=False, limit=SHOWN + 1, before=before)),
        control.approvals.grants(),
    )
    named = {one.session for one in (*waiting, *newest)}
    return {
        "asking": waiting,
        "answered": [one for one in newest[:SHOWN] if one.decision is not None],
        "next": newest[SHOWN - 1].cursor if len(newest) > SHOWN else None,
        "is_part": before is not None or len(newest) > SHOWN,
        "grants": grants,
        "named": named | {grant.session for grant in grants if grant.session},
        "labels": LABELS,
        "said": approval_texts.answer,
        "about": approval_texts.about,
        "values_of": _values,
        "summary_of": _summary,
    }


def _summary(arguments: str) -> str:
    """Return the arguments of a call in a line."""
    values = _values(arguments)
    return arguments if values is None else ", ".join(f"{name}: {text}" for name, text in values)


def _values(arguments: str) -> list[tuple[str, str]] | None:
    """Return the arguments of a call as names and texts; None if they are no JSON object."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):  # no JSON, or nested too deep
        return None
    if not isinstance(given, dict):
        return None
    return [
        (name, one if isinstance(one, str) else json.dumps(one, ensure_ascii=False))
        for name, one in given.items()
    ]
