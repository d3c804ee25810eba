"""Steps of runs, undo and forks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.messages import InboundMessage, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.records import LastTurn, Notice, StoredStep
from goclaw_py.records.rewind import NO_MESSAGES, CommandAnswer
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.messages.message_json import amendment
from goclaw_py.store.postgres.part import PostgresPart, enqueue, notify
from goclaw_py.store.postgres.runs import steps
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("rewind")
_RUNS = queries("runs")
_INBOX = queries("inbox")


class PostgresRewind(PostgresPart):
    """Implements ``RewindStore``."""

    async def run_steps(self, run: RunId) -> tuple[StoredStep, ...]:
        async with self._pool.connection() as connection:
            found = await connection.fetch(_SQL["own_steps"], storable(run))
        return tuple(StoredStep(run, row["seq"] + 1, steps.read_one(row)) for row in found)

    async def last_turn(self, key: SessionKey) -> LastTurn | None:
        async with self._pool.connection() as connection:
            row = await connection.row(_SQL["last_turn"], storable(key))
            if row is None:
                return None
            cut = await connection.fetch(_RUNS["interrupted_work"], row["follows"])
        calls = tuple(call for one in (*cut, row) for call in rows.calls(one["tools"]))
        return LastTurn(RunId(row["run_id"]), row["text"], calls, row["is_summarized"])

    async def undo_turn(
        self,
        key: SessionKey,
        run: RunId,
        *,
        answer: CommandAnswer,
        again: Mapping[int, InboundMessage] = NO_MESSAGES,
        now: datetime,
        node: NodeId,
    ) -> bool:
        """Lock the session first, as every writer of its history does."""
        async with self._pool.transaction() as connection:
            await connection.row(_RUNS["lock_session"], key)
            if not await connection.fetch(_SQL["undo"], key, run, answer.row, node, now):
                return False
            await connection.fetch(
                _INBOX["settle"], [answer.row], Outcome.COMPLETED, None, now, node
            )
            await enqueue(connection, answer.say, session=key, now=now)
            if again:
                content = [amendment(one) for one in again.values()]
                await connection.fetch(_SQL["answer_again"], list(again), content, key, run)
                await notify(connection, [Notice.INBOX])
        return True

    async def fork_session(
        self,
        key: SessionKey,
        new: SessionKey,
        target: Target,
        *,
        run: RunId | None = None,
        now: datetime,
    ) -> int:
        place = rows.TargetColumns.of(target)
        row = await self._pool.row(
            _SQL["fork"], key, new, run, place.channel, place.account, place.chat, now
        )
        return 0 if row is None else row["entries"]

    async def delete_session(self, key: SessionKey) -> bool:
        async with self._pool.transaction() as connection:
            if not await connection.fetch(_SQL["lock_deletable"], key):
                return not await connection.fetch(_SQL["has_session"], key)
            await connection.fetch(_SQL["delete"], key)
        return True
