"""Questions of runs to people about their tool calls (SPEC AGENT-11)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from goclaw_py.core.approvals import (
    NO_CONTEXT,
    Approval,
    ApprovalContext,
    ApprovalRequest,
    Decision,
    ToolGrant,
)
from goclaw_py.core.ids import AgentName, ApprovalId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.pagination import Cursor


@dataclass(frozen=True, slots=True)
class NewApproval:
    """A question that is stored with the end of the run that asks it.

    ``target`` is the chat that is asked, None if there is none.
    """

    id: ApprovalId
    request: ApprovalRequest
    expires_at: datetime
    target: Target | None = None
    context: ApprovalContext = NO_CONTEXT


@dataclass(frozen=True, slots=True)
class ApprovalQuery:
    """Selects questions, the newest first.

    Args:
        session: Only those of the runs of this session.
        asked_in: With ``session`` also those that were asked in this chat.
        waiting: Only those without an answer.
        before: Only those after this one in the list: the ``cursor`` of the last one of a page.
    """

    session: SessionKey | None = None
    asked_in: Target | None = None
    waiting: bool = True
    limit: int = 50
    before: Cursor | None = None


WAITING_APPROVALS: Final = ApprovalQuery()


class ApprovalStore(Protocol):
    """Questions, their answers, and what the answers allow.

    A run that asks ends as interrupted. The messages that it answers wait, also those of the run
    above a child run, until all of its questions are answered; then they are pending again. So does
    the occurrence of a job's run: no node has it, and with the last answer ``Notice.CRON`` is sent.
    The end of an occurrence answers its questions as stopped.
    """

    async def approval(self, approval_id: ApprovalId) -> Approval | None:
        """Return a question, or None if there is none with this id."""

    async def find_approvals(self, prefix: str) -> list[Approval]:
        """Return the question with this id, else at most ``FOUND`` whose id starts with it."""

    async def approvals(self, query: ApprovalQuery = WAITING_APPROVALS) -> list[Approval]:
        """Return questions, the newest first."""

    async def decide_approval(
        self, approval_id: ApprovalId, decision: Decision, *, by: str, now: datetime
    ) -> Approval | None:
        """Answer a question, unless it is answered or its time is over.

        The messages that asked show the answer. Returns the question with its answer, None if it
        was not applied.
        """

    async def expire_approvals(self, *, now: datetime) -> int:
        """Answer the questions whose time is over; return their number."""

    async def stop_approvals(
        self, session: SessionKey, *, everything: bool, sender: str | None, now: datetime
    ) -> int:
        """End the oldest turn of a session that waits for an answer, or all; return their number.

        Occurrences of jobs are not among them: see ``GatewayJobStore.waiting_occurrences``.
        ``sender`` limits it to turns that this person has asked for (``person_at``).
        """

    async def is_granted(self, agent: AgentName, session: SessionKey, tool: str) -> bool:
        """Return whether an agent may call a tool in a session without a question."""

    async def grants(self) -> list[ToolGrant]:
        """Return all tools that agents may call without a question."""

    async def revoke_grant(self, agent: AgentName, tool: str, session: SessionKey | None) -> bool:
        """Ask again about a tool; return whether it was granted."""
