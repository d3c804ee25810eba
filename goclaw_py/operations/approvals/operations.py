"""What operators do with the questions of runs about their tool calls (SPEC AGENT-11)."""

from __future__ import annotations

import logging

from goclaw_py.chat.outbound import approval_texts
from goclaw_py.core.actors import Least
from goclaw_py.core.approvals import Approval, Decision, ToolGrant
from goclaw_py.core.errors import ApprovalClosed, NotAccepted, NotFound
from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.core.time.clock import Clock
from goclaw_py.operations.approvals import changes
from goclaw_py.operations.declare import operation
from goclaw_py.operations.lookup import only
from goclaw_py.records import WAITING_APPROVALS, ApprovalQuery, ApprovalStore
from goclaw_py.runs.approval_port import decide

log = logging.getLogger(__name__)


class Approvals:
    """Every method may raise ``StoreUnavailable``, and ``NoGateway`` from another process."""

    def __init__(self, store: ApprovalStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    @operation("GET /api/approvals/{prefix}", Least.TEXT)
    async def get(self, prefix: str) -> Approval:
        """Return the question whose id starts with ``prefix``. Raises ``NotFound``."""
        found = await self._store.find_approvals(prefix)
        wanted = f"approval {prefix!r}"
        return only(found, prefix, lambda one: one.id, wanted, "approvals list")

    @operation("POST /api/approvals/{prefix}/decide", Least.OPERATOR, changes.DECIDE)
    async def decide(self, prefix: str, decision: Decision, *, rule: str = "") -> Approval:
        """Answer a question as an operator; its run continues when all of them are answered.

        ``rule``: the tool of the rule that ``Decision.ALWAYS`` adds, which the operator has read.
        Raises ``NotFound``, ``ApprovalClosed``, and ``NotAccepted`` with the possible answers
        or with the rule.
        """
        asked = await self.get(prefix)
        if decision not in asked.request.decisions:
            possible = ", ".join(asked.request.decisions)
            raise NotAccepted(f"the answer to {asked.id} can be {possible}, not {decision}")
        tool = asked.request.tool
        if decision is Decision.ALWAYS and rule != tool:
            text = approval_texts.rule(asked.agent, tool)
            raise NotAccepted(f"“always” adds this rule: {text} To add it, give rule: {tool}")
        done = await decide(self._store, asked, decision, by="", now=self._clock.now())
        if done is None:
            raise ApprovalClosed(f"{asked.id} has been answered already, or its time is over")
        return done

    @operation("GET /api/grants", Least.VIEWER)
    async def grants(self) -> list[ToolGrant]:
        """Return the tools that agents may call without a question, because a person allowed it."""
        return await self._store.grants()

    @operation("POST /api/grants/revoke", Least.OPERATOR, changes.REVOKE)
    async def revoke(self, agent: AgentName, tool: str, session: SessionKey | None = None) -> None:
        """Ask again about a tool; ``session`` as in the grant. Raises ``NotFound``."""
        if not await self._store.revoke_grant(agent, tool, session):
            where = "" if session is None else f" in session {session}"
            raise NotFound(f"agent {agent} has no grant for tool {tool!r}{where}")
        log.info("grant_revoked", extra={"agent": agent, "tool": tool, "session": session})

    # The last one: below it, ``list`` in a signature would be this method.
    @operation("GET /api/approvals", Least.TEXT)
    async def list(self, query: ApprovalQuery = WAITING_APPROVALS) -> list[Approval]:
        """Return questions, the newest first."""
        return await self._store.approvals(query)
