"""Questions of runs to people about their tool calls (SPEC AGENT-11)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

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
        """Return at most ``FOUND`` questions whose id starts with ``prefix``."""

    async def approvals(
        self,
        *,
        limit: int = 50,
        session: SessionKey | None = None,
        asked_in: Target | None = None,
        waiting: bool = True,
        before: Cursor | None = None,
    ) -> list[Approval]:
        """Return questions, the newest first; only those without an answer if ``waiting``.

        With ``session`` those of its runs, with ``asked_in`` also those asked in this chat.
        """

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

        Occurrences of jobs are not among them: see ``JobStore.waiting_occurrences``.
        ``sender`` limits it to turns that this person has asked for (``person_at``).
        """

    async def is_granted(self, agent: AgentName, session: SessionKey, tool: str) -> bool:
        """Return whether an agent may call a tool in a session without a question."""

    async def grants(self) -> list[ToolGrant]:
        """Return all tools that agents may call without a question."""

    async def revoke_grant(self, agent: AgentName, tool: str, session: SessionKey | None) -> bool:
        """Ask again about a tool; return whether it was granted."""
