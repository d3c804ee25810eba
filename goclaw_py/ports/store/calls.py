"""Calls between nodes through the database (docs/adr/0020)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from goclaw_py.model.ids import NodeId


@dataclass(frozen=True, slots=True)
class NodeCall:
    """A call that its node has not answered yet."""

    id: int
    question: str
    asked_at: datetime


class CallStore(Protocol):
    """Calls between nodes. Requests and answers are opaque texts (SPEC NODE-1)."""

    async def ask(self, node: NodeId, question: str, *, now: datetime) -> int | None:
        """Store a call to a live node; return its id, or None if there is no such node.

        Deletes calls that are older than a minute. Sends ``Notice.NODES``.
        """

    async def asked(self, node: NodeId) -> list[NodeCall]:
        """Return the unanswered calls to a node, the oldest first."""

    async def answer(self, call: int, answer: str) -> None:
        """Answer a call; may be repeated. Sends ``Notice.NODES``."""

    async def answer_to(self, call: int) -> str | None:
        """Return the answer to a call, or None if there is none yet."""
