"""How runs ask people about their tool calls, and how an answer is applied (SPEC AGENT-11)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from goclaw_py.core.approvals import Approval, Decision
from goclaw_py.core.errors import ApprovalNeeded
from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.core.messages import OutboundMessage, PeerKind, Target
from goclaw_py.records import ApprovalStore, InboxRow, NewApproval

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ApprovalChat:
    """The chat of a run.

    Args:
        target: The chat; None: there is none, and the owners are asked in their own chats.
        sender: The person who asked for the run.
        job: The title of the job that the run works for, "" if there is none.
        session: The session whose earlier answers are told.
        rows: The messages that the run answers.
        request: What the run is to do, if it answers no messages.
        creator: The person who created the job (``person_at``), "" if there is none.
        said: What the run has said so far.
    """

    target: Target | None
    peer: PeerKind
    sender: str
    session: SessionKey
    job: str = ""
    rows: Sequence[InboxRow] = ()
    request: str = ""
    creator: str = ""
    said: str = ""


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of a run, and the messages that ask them."""

    approvals: tuple[NewApproval, ...] = ()
    say: tuple[OutboundMessage, ...] = ()


Ask = Callable[[ApprovalNeeded, AgentName, ApprovalChat | None], Awaitable[Questions]]
"""Returns what is stored with the end of a run that asks; waits for the database."""


async def decide(
    store: ApprovalStore, approval: Approval, decision: Decision, *, by: str, now: datetime
) -> Approval | None:
    """Apply an answer; ``by`` is "" for an operator. Returns None if it came too late."""
    done = await store.decide_approval(approval.id, decision, by=by, now=now)
    if done is not None:
        log.info(
            "approval_decided",
            extra={
                "approval": approval.id,
                "run_id": approval.run_id,
                "tool": approval.request.tool,
                "decision": decision,
            },
        )
    return done
