"""Questions about tool calls, and a control that knows them.

Names and texts are such as a model would choose that wants to fool an operator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import cast

from goclaw_py.core.approvals import (
    Approval,
    ApprovalContext,
    ApprovalRequest,
    Asker,
    Decision,
    ToolGrant,
)
from goclaw_py.core.ids import AgentName, ApprovalId, SessionKey
from goclaw_py.operations.approvals.operations import Approvals
from goclaw_py.records import ApprovalQuery, ApprovalStore
from tests.unit.web.fake_names import AT, FOOL, KEY, RUN, TOPIC, FixedClock, behind
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


@dataclass
class FakeApprovalStore:
    """The questions and grants of ``FakeControl``. ``called`` notes what is asked of it."""

    called: Callable[..., None]
    asked: list[Approval] = field(default_factory=lambda: [PAY, WIPE, ANSWERED])
    granted: list[ToolGrant] = field(default_factory=lambda: [GRANT, IN_SESSION])

    async def find_approvals(self, prefix: str) -> list[Approval]:
        self.called("find_approvals", prefix)
        return [one for one in self.asked if one.id.startswith(prefix)]

    async def approvals(self, query: ApprovalQuery) -> list[Approval]:
        self.called("approvals", query)
        found = [one for one in self.asked if not (query.waiting and one.decision)]
        found = [one for one in found if query.session in (None, one.session)]
        return behind(found, query.before)[: query.limit]

    async def decide_approval(
        self, approval_id: ApprovalId, decision: Decision, *, by: str, now: datetime
    ) -> Approval | None:
        self.called("decide_approval", approval_id, decision, by)
        (one,) = (one for one in self.asked if one.id == approval_id)
        if one.decision is not None:
            return None
        done = replace(one, decision=decision, decided_at=now, decided_by=by)
        self.asked[self.asked.index(one)] = done
        return done

    async def grants(self) -> list[ToolGrant]:
        self.called("grants")
        return self.granted

    async def revoke_grant(self, agent: AgentName, tool: str, session: SessionKey | None) -> bool:
        self.called("revoke_grant", agent, tool, session)
        wanted = agent, tool, session
        left = [one for one in self.granted if (one.agent, one.tool, one.session) != wanted]
        was_granted = len(left) < len(self.granted)
        self.granted = left
        return was_granted


class FakeApprovals(FakeUsage):
    """The part of ``FakeControl`` that is about approvals: the real operations, a fake store."""

    def __init__(self) -> None:
        super().__init__()
        self.questions = FakeApprovalStore(self._called)
        self.approvals = Approvals(cast("ApprovalStore", self.questions), FixedClock())
