"""A heartbeat run that this process has claimed and not ended, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass

from goclaw_py.heartbeat.decisions import AskAgent, HeartbeatPolicy
from goclaw_py.heartbeat.models import HeartbeatClaim, HeartbeatRunStatus, Skip
from goclaw_py.model.budget import Budget
from goclaw_py.model.ids import HeartbeatRunId
from goclaw_py.model.messages import OutboundMessage, Target
from goclaw_py.model.run_events import Usage
from goclaw_py.scheduled_work.models import Execution


@dataclass(slots=True, eq=False)
class HeartbeatExecution(Execution):
    """A claimed heartbeat run.

    Args:
        policy: How its heartbeat behaves.
        go: What its agent is asked, once that is decided.
        detail: What was wrong with its checklist then.
        budget: What its run may use.
        usage: What its attempts have used.
        deferred: It is written down that its agent was busy.
        done: Whether its agent wants people to be told, and what, if it has said so with its tool.
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
        """See ``Execution``."""
        claimed = self.claimed
        return {"agent": claimed.agent, "heartbeat_run": self.id, "kind": claimed.kind}


@dataclass(frozen=True, slots=True)
class HeartbeatOutcome:
    """The outcome of a heartbeat run, and its notifications.

    Args:
        reply: What the agent said, token and all.
        text: What the history of the chat is to hold of it.
        gone: The topic of which it says that nothing can be written there.
        skip: Why its agent was not asked; ``noted`` are items that count as looked at all the same.
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
