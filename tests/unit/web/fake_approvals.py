"""Questions about tool calls, and a control that knows them.

Names and texts are such as a model would choose that wants to fool an operator.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from goclaw_py.core.approvals import (
    Approval,
    ApprovalContext,
    ApprovalRequest,
    Asker,
    Decision,
    ToolGrant,
)
from goclaw_py.core.errors import ApprovalClosed, NotFound, WrongDecision
from goclaw_py.core.ids import AgentName, ApprovalId, SessionKey
from goclaw_py.core.pagination import Cursor
from tests.unit.web.fake_post import AT, FOOL, KEY, RUN, TOPIC, behind
from tests.unit.web.fake_usage import FakeUsage

PAY = Approval(
    ApprovalId("9f86d081884c7d65"), RUN, KEY, AgentName("main"),
    ApprovalRequest("c1", "pay", '{"to": "Bob\x1b[2J"}'), TOPIC, AT, AT + timedelta(days=1),
    context=ApprovalContext(
        (Asker(FOOL, guest=True),), "group “Family”", "<b>pay</b> Bob\x1b[2J", allowed=2, denied=1
    ),
)  # fmt: skip
WIPE = replace(
    PAY, id=ApprovalId("9f00000000000000"), target=None,
    context=ApprovalContext(job="bills"), asked_at=AT - timedelta(minutes=1),
    request=ApprovalRequest("c2", "wipe", "{}", uncertain=True),
)  # fmt: skip
ANSWERED = replace(
    PAY, id=ApprovalId("1111111111111111"), asked_at=AT - timedelta(hours=1),
    decision=Decision.ALWAYS, decided_at=AT, decided_by=FOOL,
)  # fmt: skip
GRANT = ToolGrant(AgentName("main"), "pay", None, AT, FOOL)
IN_SESSION = ToolGrant(AgentName("main"), "wipe", KEY, AT, "")


class FakeApprovals(FakeUsage):
    """The part of ``FakeControl`` that is about approvals."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = [PAY, WIPE, ANSWERED]
        self.granted = [GRANT, IN_SESSION]

    async def approvals(
        self,
        *,
        limit: int = 50,
        session: SessionKey | None = None,
        waiting: bool = True,
        before: Cursor | None = None,
    ) -> list[Approval]:
        self._called("approvals", limit, session, waiting)
        found = [one for one in self.asked if not (waiting and one.decision)]
        return behind([one for one in found if session in (None, one.session)], before)[:limit]

    async def approval(self, prefix: str) -> Approval:
        self._called("approval", prefix)
        found = [one for one in self.asked if one.id.startswith(prefix)]
        if len(found) != 1:
            raise NotFound(f"no approval, or several, with {prefix!r}")
        return found[0]

    async def decide_approval(self, prefix: str, decision: Decision, *, rule: str = "") -> Approval:
        self._called("decide_approval", prefix, decision, rule)
        one = await self.approval(prefix)
        if decision is Decision.ALWAYS and rule != one.request.tool:
            raise WrongDecision("“always” adds a rule")
        if decision not in one.request.decisions:
            raise WrongDecision(f"the answer cannot be {decision}")
        if one.decision is not None:
            raise ApprovalClosed(f"{one.id} has been answered already")
        done = replace(one, decision=decision, decided_at=AT)
        self.asked[self.asked.index(one)] = done
        return done

    async def grants(self) -> list[ToolGrant]:
        self._called("grants")
        return self.granted

    async def revoke_grant(
        self, agent: AgentName, tool: str, session: SessionKey | None = None
    ) -> None:
        self._called("revoke_grant", agent, tool, session)
        wanted = agent, tool, session
        left = [one for one in self.granted if (one.agent, one.tool, one.session) != wanted]
        if len(left) == len(self.granted):
            raise NotFound(f"no grant for {tool!r}")
        self.granted = left
