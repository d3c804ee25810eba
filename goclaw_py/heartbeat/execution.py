"""A heartbeat run that this process has claimed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from goclaw_py.heartbeat.decisions import AskAgent, HeartbeatPolicy
from goclaw_py.heartbeat.models import HeartbeatClaim
from goclaw_py.model.budget import Budget
from goclaw_py.model.ids import HeartbeatRunId, NodeId, RunId
from goclaw_py.model.run_events import Usage
from goclaw_py.model.session_keys import beat_session


@dataclass(slots=True, eq=False)
class HeartbeatExecution:
    """A claimed heartbeat run.

    Args:
        policy: How its heartbeat behaves.
        node: The node that has claimed it, whatever this process is called by now.
        go: What its agent is asked, once that is decided.
        looked_at: When it was decided.
        detail: What was wrong with its checklist then.
        budget: What its run may use.
        attempt: The number of the attempt that is under way, from 1.
        run: The run of the attempt.
        usage: What its attempts have used.
        deferred: It is written down that its agent was busy.
        waits: Nothing of it runs; it waits for its agent, or for its next attempt.
        stopped: It begins no more attempt.
        is_over: How it ends is decided, and being stored.
        done: Whether its agent wants people to be told, and what, if it has said so with its tool.
    """

    claimed: HeartbeatClaim
    policy: HeartbeatPolicy
    node: NodeId
    go: AskAgent | None = None
    looked_at: datetime | None = None
    detail: str = ""
    budget: Budget | None = None
    attempt: int = 0
    run: RunId | None = None
    started_at: datetime | None = None
    usage: Usage | None = None
    deferred: bool = False
    waits: bool = False
    stopped: bool = False
    is_over: bool = False
    done: tuple[bool, str] | None = None

    @property
    def id(self) -> HeartbeatRunId:
        """That of the beat."""
        return self.claimed.id


def facts_of(held: HeartbeatExecution) -> dict[str, object]:
    """What log lines say of it."""
    return {
        "agent": held.claimed.agent,
        "heartbeat_run": held.id,
        "kind": held.claimed.kind,
        "attempt": held.attempt,
        "run_id": held.run,
        "session": None if held.run is None else beat_session(held.claimed.agent, held.run),
    }
