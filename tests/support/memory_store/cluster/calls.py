"""Calls between nodes."""

from __future__ import annotations

from datetime import datetime

from goclaw_py.core.ids import NodeId
from goclaw_py.records import NodeCall, Notice
from goclaw_py.store.rules import CALLS_KEPT
from goclaw_py.store.text import storable
from tests.support.memory_store.tables import MemoryPart


class MemoryNodeCalls(MemoryPart):
    """Implements ``CallStore``."""

    async def ask(self, node: NodeId, question: str, *, now: datetime) -> int | None:
        self._db.calls.forget(now - CALLS_KEPT)
        if not self._db.is_live(node, now):
            return None
        number = self._db.calls.enter(node, storable(question), now)
        self._db.notify(Notice.NODES)
        return number

    async def open_calls(self, node: NodeId) -> list[NodeCall]:
        return [
            one.call
            for one in self._db.calls.rows.values()
            if one.node == node and one.answer is None
        ]

    async def answer(self, call: int, answer: str) -> None:
        if call in self._db.calls.rows:
            self._db.calls.rows[call].answer = storable(answer)
            self._db.notify(Notice.NODES)

    async def answer_to(self, call: int) -> str | None:
        found = self._db.calls.rows.get(call)
        return None if found is None else found.answer
