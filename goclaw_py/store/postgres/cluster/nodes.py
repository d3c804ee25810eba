"""Nodes, their leases, and recovery after expired nodes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.records import InterruptedRun, Node, NodeState, Notice, RecoveryReport, Renewed
from goclaw_py.store import rules
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.claims import release_claims
from goclaw_py.store.postgres.delivery.drafts import close_abandoned
from goclaw_py.store.postgres.messages.message_json import inbound
from goclaw_py.store.postgres.part import PostgresPart, enqueue, notify
from goclaw_py.store.postgres.pool import Connection, Row
from goclaw_py.store.postgres.runs.beginnings import interrupted_work
from goclaw_py.store.sql import queries

_SQL = queries("nodes")


class PostgresNodes(PostgresPart):
    """Implements ``NodeStore``."""

    async def time(self) -> datetime | None:
        """Return the time of the server's clock when the statement runs."""
        row = await self._pool.row(_SQL["time"])
        return None if row is None else row["time"]

    async def join(self, node: Node) -> None:
        """Store a node; repeating it renews its lease."""
        async with self._pool.transaction() as connection:
            await connection.fetch(
                _SQL["join"],
                node.id,
                node.host,
                node.pid,
                node.release,
                node.started_at,
                node.lease_until,
                rows.node_state_json(node.state),
            )
            await notify(connection, [Notice.NODES])

    async def renew(
        self,
        node: NodeId,
        *,
        until: datetime,
        state: NodeState | None = None,
        clock_set_back: bool = False,
    ) -> Renewed | None:
        """Renew a lease, after waiting for a recovery of this node that is in progress."""
        stored = None if state is None else rows.node_state_json(state)
        renewed = await self._pool.row(_SQL["renew"], node, until, stored, clock_set_back)
        return None if renewed is None else Renewed(renewed["among_others"])

    async def end_lease(self, node: NodeId, *, now: datetime) -> None:
        await self._pool.fetch(_SQL["end_lease"], node, now)

    async def leave(self, node: NodeId, *, now: datetime) -> None:
        async with self._pool.transaction() as connection:
            if await connection.row(_SQL["lock_node"], node) is None:
                return
            runs = await _end_runs(connection, [node], Outcome.INTERRUPTED, Reason.SHUTDOWN, now)
            await connection.fetch(_SQL["free_rows"], [run["id"] for run in runs], 1)
            await close_abandoned(connection, now=now)
            await release_claims(connection, [node], now, died=False)
            await _free(connection, [node])

    async def nodes(self) -> list[Node]:
        return [rows.node(row) for row in await self._pool.fetch(_SQL["list"])]

    async def owner(self, session: SessionKey) -> NodeId | None:
        row = await self._pool.row(_SQL["owner"], session)
        return None if row is None or row["owner"] is None else NodeId(row["owner"])

    async def claim_lease(self, name: str, node: NodeId, *, now: datetime) -> bool:
        async with self._pool.transaction() as connection:
            lease = await connection.row(_SQL["lock_lease"], name)
            if lease is None:
                await connection.fetch(_SQL["enter_lease"], name)
                lease = await connection.row(_SQL["lock_lease"], name)
            if lease is not None and lease["owner"] == node:
                return True
            return await connection.row(_SQL["claim_lease"], name, node, now) is not None

    async def drop_lease(self, name: str, node: NodeId) -> None:
        async with self._pool.transaction() as connection:
            if await connection.row(_SQL["drop_lease"], name, node) is not None:
                await notify(connection, [Notice.NODES])

    async def recover(
        self,
        *,
        now: datetime,
        max_attempts: int,
        apology: str,
        only: Collection[NodeId] | None = None,
    ) -> RecoveryReport:
        """Recover expired nodes; skip nodes that another process is recovering."""
        wanted = None if only is None else list(only)
        async with self._pool.transaction() as connection:
            locked = await connection.fetch(_SQL["lock_expired"], now, wanted)
            dead = [NodeId(row["id"]) for row in locked]
            if not dead:
                return RecoveryReport()
            runs, ended = await _recover(connection, dead, now, max_attempts)
            await _free(connection, dead)
            await _apologise(connection, [_lost(row) for row in ended], apology, now)
        return RecoveryReport(tuple(dead), tuple(_interrupted_run(run) for run in runs), len(ended))

    async def subagents_elsewhere(
        self, payer: SessionKey, nodes: Collection[NodeId], *, sender: str | None = None
    ) -> list[RunId]:
        found = await self._pool.fetch(_SQL["subagents_elsewhere"], payer, list(nodes), sender)
        return [RunId(row["id"]) for row in found]

    async def mark_stopped(self, ids: Collection[str]) -> None:
        """Two transactions: whoever ends a run locks its job before its occurrence."""
        await self._pool.fetch(_SQL["mark_stopped_runs"], list(ids))
        await self._pool.fetch(_SQL["mark_stopped_occurrences"], list(ids))

    async def unattended(self, node: NodeId, attended: Collection[str]) -> list[str]:
        found = await self._pool.fetch(_SQL["unattended"], node, list(attended))
        return [row["id"] for row in found]

    async def recover_work(
        self,
        node: NodeId,
        ids: Collection[str],
        *,
        now: datetime,
        max_attempts: int,
        apology: str,
    ) -> RecoveryReport:
        async with self._pool.transaction() as connection:
            if await connection.row(_SQL["lock_node"], node) is None:
                return RecoveryReport()
            runs, ended = await _recover(connection, [node], now, max_attempts, list(ids))
            await _apologise(connection, [_lost(row) for row in ended], apology, now)
            await notify(connection, [Notice.INBOX, Notice.CRON, Notice.SUBAGENTS, Notice.OUTBOX])
        return RecoveryReport((), tuple(_interrupted_run(run) for run in runs), len(ended))


def _interrupted_run(row: Row) -> InterruptedRun:
    session, outcome = SessionKey(row["session"]), Outcome(row["outcome"])
    return InterruptedRun(RunId(row["id"]), session, rows.target(row), outcome)


def _lost(row: Row) -> rules.LostMessage:
    session, run = SessionKey(row["session"]), RunId(row["run_id"])
    return rules.LostMessage(row["id"], session, inbound(row["message"]), run)


async def _recover(
    connection: Connection,
    nodes: Sequence[NodeId],
    now: datetime,
    max_attempts: int,
    only: Sequence[str] | None = None,
) -> tuple[list[Row], list[Row]]:
    """End what locked nodes work on, or ``only`` some of it, as lost.

    Returns the runs, and the messages that have no attempts left.
    """
    runs = await _end_runs(connection, nodes, Outcome.LOST, Reason.CRASHED, now, only)
    ids = [run["id"] for run in runs]
    ended = await connection.fetch(_SQL["end_crashed_rows"], ids, max_attempts, now)
    await connection.fetch(_SQL["free_rows"], ids, 0)
    await close_abandoned(connection, now=now)
    await release_claims(connection, nodes, now, died=True, only=only)
    return runs, ended


async def _end_runs(
    connection: Connection,
    nodes: Sequence[NodeId],
    outcome: Outcome,
    reason: Reason,
    now: datetime,
    only: Sequence[str] | None = None,
) -> list[Row]:
    """End the unfinished runs of these nodes, or ``only`` some of them, the oldest first.

    The sessions are locked before, so a node that is finishing a run is done with it or finds that
    it lost it.
    """
    await connection.fetch(_SQL["lock_sessions_of"], nodes)
    error = None if only is None else rules.UNATTENDED
    runs = await connection.fetch(_SQL["end_runs_of"], nodes, outcome, reason, now, only, error)
    return sorted(runs, key=lambda run: (run["started_at"], run["id"]))


async def _free(connection: Connection, nodes: Sequence[NodeId]) -> None:
    """Release everything that these nodes own, remove them, and notify the others."""
    unsent = await connection.fetch(_SQL["free_outbox"], nodes)
    await connection.fetch(_SQL["free_sessions"], nodes)
    await connection.fetch(_SQL["free_leases"], nodes)
    await connection.fetch(_SQL["remove"], nodes)
    unsent_too = [Notice.OUTBOX] if unsent else []
    await notify(
        connection, [Notice.INBOX, Notice.CRON, Notice.SUBAGENTS, Notice.NODES, *unsent_too]
    )


async def _apologise(
    connection: Connection, lost: Sequence[rules.LostMessage], apology: str, now: datetime
) -> None:
    calls = {run: (await interrupted_work(connection, run))[0] for run in {row.run for row in lost}}
    for session, message in rules.apologies(lost, apology, calls):
        await enqueue(connection, [message], session=session, now=now)
