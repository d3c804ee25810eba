"""How runs ask people about their tool calls (SPEC AGENT-11)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from goclaw_py.model.errors import ApprovalNeeded
from goclaw_py.model.ids import AgentName
from goclaw_py.model.messages import OutboundMessage, PeerKind, Target
from goclaw_py.ports.store import NewApproval


@dataclass(frozen=True, slots=True)
class AskedChat:
    """The chat of a run; ``sender`` is the person who asked for the run."""

    target: Target
    peer: PeerKind
    sender: str


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of a run, and the messages that ask them."""

    approvals: tuple[NewApproval, ...] = ()
    say: tuple[OutboundMessage, ...] = ()


Ask = Callable[[ApprovalNeeded, AgentName, AskedChat | None], Awaitable[Questions]]
"""Returns what is stored with the end of a run that asks; waits for the database."""
