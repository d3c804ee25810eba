"""Claimed heartbeat runs in this process, and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass

from goclaw_py.core.budget import Budget
from goclaw_py.core.ids import HeartbeatRunId
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.run_events import Usage
from goclaw_py.schedule.heartbeat.decisions import AskAgent, HeartbeatPolicy
from goclaw_py.schedule.heartbeat.models import HeartbeatClaim, HeartbeatRunStatus, Skip
from goclaw_py.schedule.models import Execution


@dataclass(slots=True, eq=False)
class HeartbeatExecution(Execution):
    """A claimed heartbeat run.

    Args:
        policy: The policy of its heartbeat.
        go: The decision to ask the agent, once it was made.
        detail: The problem of its checklist, if there was one.
        budget: The budget of its run.
        usage: The usage of its attempts.
        deferred: Whether it is stored as deferred.
        done: What the agent reported with its tool: whether people are notified, and the text.
    """

    claimed: HeartbeatClaim
    policy: HeartbeatPolicy
    go: AskAgent | None = None
    detail: str = ""
    budget: Budget | None = None
    usage: Usage | None = None
    deferred: bool = False
    done: tuple[bool, str] | None = None

    @property
    def id(self) -> HeartbeatRunId:
        """The id of the heartbeat run."""
        return self.claimed.id

    @property
    def context(self) -> dict[str, object]:
        claimed = self.claimed
        return {"agent": claimed.agent, "heartbeat_run": self.id, "kind": claimed.kind}


@dataclass(frozen=True, slots=True)
class HeartbeatOutcome:
    """The outcome of a heartbeat run, and its notifications.

    Args:
        reply: The whole reply of the agent.
        text: The history entry of the chat.
        gone: The topic that it says cannot be reached.
        skip: Why its agent was not asked; the items ``noted`` count as checked.
    """

    status: HeartbeatRunStatus
    detail: str = ""
    reply: str = ""
    target: Target | None = None
    say: tuple[OutboundMessage, ...] = ()
    text: str = ""
    gone: Target | None = None
    skip: Skip | None = None
    noted: tuple[str, ...] = ()
