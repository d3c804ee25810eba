"""Calls between nodes."""

from __future__ import annotations

from datetime import datetime

from goclaw_py.core.ids import NodeId
from goclaw_py.records import NodeCall, Notice
from goclaw_py.store.postgres.part import PostgresPart
from goclaw_py.store.rules import CALLS_KEPT
from goclaw_py.store.sql import queries

_SQL = queries("calls")


class PostgresNodeCalls(PostgresPart):
    """Implements ``CallStore``."""

    async def ask(self, node: NodeId, question: str, *, now: datetime) -> int | None:
        async with self._pool.connection() as connection:
            await connection.fetch(_SQL["forget"], now - CALLS_KEPT)
            row = await connection.row(_SQL["add"], node, question, now, Notice.NODES)
        return None if row is None else row["id"]

    async def open_calls(self, node: NodeId) -> list[NodeCall]:
        found = await self._pool.fetch(_SQL["unanswered"], node)
        return [NodeCall(row["id"], row["question"], row["asked_at"]) for row in found]

    async def answer(self, call: int, answer: str) -> None:
        await self._pool.fetch(_SQL["answer"], call, answer, Notice.NODES)

    async def answer_to(self, call: int) -> str | None:
        row = await self._pool.row(_SQL["answer_to"], call)
        return None if row is None else row["answer"]
