"""Calls between nodes through the database (docs/adr/0020)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from goclaw_py.model.ids import NodeId


@dataclass(frozen=True, slots=True)
class NodeCall:
    """A call that a node has not answered."""

    id: int
    question: str
    asked_at: datetime


class CallStore(Protocol):
    """Calls between nodes. Requests and answers are opaque texts (SPEC NODE-1)."""

    async def ask(self, node: NodeId, question: str, *, now: datetime) -> int | None:
        """Ask a live node; the id of the question, None if there is no such node.

        Forgets what was asked more than a minute ago. Sends ``Notice.NODES``.
        """

    async def asked(self, node: NodeId) -> list[NodeCall]:
        """What a node has not answered, the oldest first."""

    async def answer(self, call: int, answer: str) -> None:
        """Answer a question, again is harmless. Sends ``Notice.NODES``."""

    async def answer_to(self, call: int) -> str | None:
        """The answer, if there is one by now."""
