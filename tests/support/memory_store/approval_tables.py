"""Questions of runs, and what people allow."""

from __future__ import annotations

from dataclasses import dataclass, field

from goclaw_py.core.approvals import Approval, Decision, ToolGrant
from goclaw_py.core.ids import AgentName, ApprovalId, RunId, SessionKey


@dataclass(slots=True)
class ApprovalRecord:
    """A row of ``approvals``. ``root`` is the run whose messages wait for the answer."""

    approval: Approval
    root: RunId


@dataclass(slots=True)
class ApprovalTables:
    """The tables ``approvals`` and ``tool_grants``.

    Args:
        grants: By agent, session (None: all) and tool.
    """

    questions: dict[ApprovalId, ApprovalRecord] = field(default_factory=dict)
    grants: dict[tuple[AgentName, SessionKey | None, str], ToolGrant] = field(default_factory=dict)

    def holds(self, run: RunId) -> bool:
        """Return whether a background subagent waits for an answer, or was stopped meanwhile."""
        decisions = (one.approval.decision for one in self.questions.values() if one.root == run)
        return any(decision in (None, Decision.STOPPED) for decision in decisions)

    def is_answered(self, run: RunId) -> bool:
        """Return whether a run and its child runs wait for no answer."""
        return not any(
            record.root == run and record.approval.decision is None
            for record in self.questions.values()
        )
