"""Nodes, their leases, and recovery after expired nodes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from goclaw_py.core.ids import NodeId, OccurrenceId, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.records import InterruptedRun, Node, NodeState, Notice, RecoveryReport, Renewed
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus, Why
from goclaw_py.store import rules
from goclaw_py.store.text import storable
from tests.support.memory_store.claims import release_claims
from tests.support.memory_store.cluster.tables import LeaseRecord
from tests.support.memory_store.tables import MemoryPart, RunRow


class MemoryNodes(MemoryPart):
    """Implements ``NodeStore``."""

    async def time(self) -> datetime | None:
        return None

    async def join(self, node: Node) -> None:
        known = self._db.nodes.get(node.id)
        entered = storable(node) if known is None else replace(known, lease_until=node.lease_until)
        self._db.nodes[node.id] = entered
        self._db.notify(Notice.NODES)

    async def renew(
        self,
        node: NodeId,
        *,
        until: datetime,
        state: NodeState | None = None,
        clock_set_back: bool = False,
    ) -> Renewed | None:
        known = self._db.nodes.get(node)
        if known is None:
            return None
        state = known.state if state is None else storable(state)
        if not clock_set_back:
            until = max(known.lease_until, until)
        self._db.nodes[node] = replace(known, lease_until=until, state=state)
        return Renewed(among_others=len(self._db.nodes) > 1)

    async def end_lease(self, node: NodeId, *, now: datetime) -> None:
        if (known := self._db.nodes.get(node)) is not None:
            self._db.nodes[node] = replace(known, lease_until=now)

    async def leave(self, node: NodeId, *, now: datetime) -> None:
        if node in self._db.nodes:
            runs = self._unfinished([node], None)
            cut = self._db.end_runs(runs, Outcome.INTERRUPTED, Reason.SHUTDOWN, now, "")
            self._db.free_rows({run.new.id for run in cut}, attempts_back=1)
            self._db.close_abandoned_drafts(now)
            release_claims(self._db, [node], now, died=False)
            self._db.free([node])

    async def nodes(self) -> list[Node]:
        return self._db.nodes_by_age()

    async def owner(self, session: SessionKey) -> NodeId | None:
        known = self._db.sessions.get(storable(session))
        return None if known is None else known.owner

    async def claim_lease(self, name: str, node: NodeId, *, now: datetime) -> bool:
        lease = self._db.leases.setdefault(name, LeaseRecord())
        if lease.owner == node:
            return True
        if node not in self._db.nodes or self._db.is_live(lease.owner, now):
            return False
        lease.owner = node
        lease.fence += 1
        return True

    async def drop_lease(self, name: str, node: NodeId) -> None:
        lease = self._db.leases.get(name)
        if lease is not None and lease.owner == node:
            lease.owner = None
            self._db.notify(Notice.NODES)

    async def recover(
        self,
        *,
        now: datetime,
        max_attempts: int,
        apology: str,
        only: Collection[NodeId] | None = None,
    ) -> RecoveryReport:
        ended = [node.id for node in self._db.nodes_by_age() if not node.is_live(now)]
        dead = [node for node in ended if only is None or node in only]
        if not dead:
            return RecoveryReport()
        report = self._recover(dead, now, max_attempts, apology)
        self._db.free(dead)
        return replace(report, nodes=tuple(dead))

    async def subagents_elsewhere(
        self, payer: SessionKey, nodes: Collection[NodeId], *, sender: str | None = None
    ) -> list[RunId]:
        return [
            run_id
            for run_id, run in self._db.runs.items()
            if run.end is None
            and run.new.task is not None
            and run.new.payer == storable(payer)
            and run.node not in nodes
            and sender in (None, run.asked.sender)
        ]

    async def mark_stopped(self, ids: Collection[str]) -> None:
        for one in storable(tuple(ids)):
            run = self._db.runs.get(RunId(one))
            if run is not None and run.end is None:
                run.is_stopped = True
            found = OccurrenceId(one) if run is None else run.new.occurrence
            row = None if found is None else self._db.cron.logs.get(found)
            is_waiting = row is not None and row.status is OccurrenceStatus.WAITING
            if row is not None and row.finished_at is None and not is_waiting:
                self._db.cron.logs[row.id] = replace(row, why=Why.STOPPED)

    async def unattended(self, node: NodeId, attended: Collection[str]) -> list[str]:
        runs = (run.new.id for run in self._unfinished([node], None))
        occurrences = (row.id for row in self._db.cron.claimed_by([node]))
        heartbeats = (row.id for row in self._db.heartbeat_runs.claimed_by([node]))
        return [id_ for id_ in (*runs, *occurrences, *heartbeats) if id_ not in attended]

    async def recover_work(
        self,
        node: NodeId,
        ids: Collection[str],
        *,
        now: datetime,
        max_attempts: int,
        apology: str,
    ) -> RecoveryReport:
        if node not in self._db.nodes:
            return RecoveryReport()
        report = self._recover([node], now, max_attempts, apology, ids)
        self._db.notify(Notice.INBOX, Notice.CRON, Notice.SUBAGENTS, Notice.OUTBOX)
        return report

    def _unfinished(self, nodes: Collection[NodeId], only: Collection[str] | None) -> list[RunRow]:
        """Return the unfinished runs of nodes, or ``only`` some of them."""
        runs = [run for run in self._db.runs.values() if run.end is None and run.node in nodes]
        return [run for run in runs if only is None or run.new.id in only]

    def _recover(
        self,
        nodes: Sequence[NodeId],
        now: datetime,
        max_attempts: int,
        apology: str,
        only: Collection[str] | None = None,
    ) -> RecoveryReport:
        """End what nodes work on, or ``only`` some of it, as lost."""
        error = "" if only is None else rules.UNATTENDED
        runs = self._unfinished(nodes, only)
        cut = self._db.end_runs(runs, Outcome.LOST, Reason.CRASHED, now, error)
        ids = {run.new.id for run in cut}
        crashed = [row for row in self._db.rows_of(ids) if row.attempts >= max_attempts]
        lost = [row for row in crashed if row.dropped is None]
        for row in lost[:]:
            for taken in [one for one in self._db.pending.values() if one.joined == row.id]:
                if taken.dropped is None:
                    taken.run_id = row.run_id
                    lost.append(taken)
        gave_up = [
            rules.LostMessage(row.id, row.session, row.message, row.run_id)
            for row in lost
            if row.run_id is not None
        ]
        for row in lost:
            self._db.end_row(row, Outcome.LOST, Reason.CRASHED, now)
        self._db.free_rows(ids, attempts_back=0)
        self._db.close_abandoned_drafts(now)
        release_claims(self._db, nodes, now, died=True, only=only)
        calls = {run: self._db.interrupted_work(run)[0] for run in ids}
        for session, message in rules.apologies(gave_up, apology, calls):
            self._db.enqueue([message], session=session, now=now)
        return RecoveryReport((), tuple(_interrupted_run(run) for run in cut), len(lost))


def _interrupted_run(run: RunRow) -> InterruptedRun:
    outcome = Outcome.LOST if run.end is None else run.end.outcome
    return InterruptedRun(run.new.id, run.new.session, run.new.target, outcome)
