"""Stops on other nodes (SPEC NODE-1, CMD-1…3)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from goclaw_py.chat.stop.local import BACKGROUND, LocalStops, Stopped
from goclaw_py.chat.stop.plan import Stop, StopOrigin
from goclaw_py.cluster.rpc import Facts, NodeRpc
from goclaw_py.core.errors import GoclawError, NodeSilent, NotFound
from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.time.clock import Clock
from goclaw_py.records.bound import BoundStore
from goclaw_py.scheduler.views import StopReport

log = logging.getLogger(__name__)

_STOP: Final = "stop"
_STOP_JOBS: Final = "stop_jobs"
_RESET: Final = "reset"

_POLL_S: Final = 0.2
_POLLS: Final = 25
"""How often is polled whether a session of a dead node was taken over: until long after it is."""


class RemoteStops:
    """Asks other nodes to stop, and stops here when they ask."""

    def __init__(
        self,
        store: BoundStore,
        clock: Clock,
        calls: NodeRpc,
        local: LocalStops,
    ) -> None:
        self._store = store
        self._clock = clock
        self._calls = calls
        self._local = local
        calls.serve(_STOP, self._on_stop)
        calls.serve(_STOP_JOBS, self._on_stop_jobs)
        calls.serve(_RESET, self._on_reset)

    async def stop(self, stop: Stop) -> StopReport | None:
        """Stop on the node that owns the session; None if no other node does.

        If its owner has died, waits until another node, perhaps this one, has taken the session
        over. Raises ``NodeSilent`` and ``StoreUnavailable``.
        """
        assert stop.session is not None
        answer = await self._ask_owner(
            stop.session, _STOP, everything=stop.everything, run=stop.run
        )
        return None if answer is None else _report(answer)

    async def reset(self, session: SessionKey) -> bool:
        """Stop and start a new history there, as ``stop``; False if no other node owns it."""
        return await self._ask_owner(session, _RESET) is not None

    async def stop_background(self, chat: Target, stop: Stop) -> tuple[int, int]:
        """Stop background work for a chat on other nodes; return the numbers of subagents and jobs.

        A node that does not answer is skipped and logged. Raises ``StoreUnavailable``.
        """
        others, runs, jobs = await self._others(), 0, 0
        reached: list[NodeId] = []
        if stop.everything:
            reached.append(self._store.node())
            asked = (self._ask_background(node, chat, stop) for node in others)
            for node, of_node in zip(others, await asyncio.gather(*asked), strict=True):
                if of_node is not None:
                    reached.append(node)
                    runs, jobs = runs + of_node[0], jobs + of_node[1]
        else:
            for node in others:
                of_node = await self._ask_background(node, chat, stop)
                if of_node is not None and any(of_node):
                    return of_node
        # What waits for its session, and what silent or dead nodes have: it may run on another one.
        left_runs, left_jobs = await self._local.database.stop_unclaimed(chat, stop, reached)
        return runs + left_runs, jobs + left_jobs

    async def _ask_background(
        self, node: NodeId, chat: Target, stop: Stop
    ) -> tuple[int, int] | None:
        facts = {
            "chat": [chat.channel, chat.account, chat.chat, chat.thread],
            "everything": stop.everything,
            "run": stop.run,
            "by": stop.by,
            "session": stop.session,
        }
        try:
            answer = await self._calls.ask(node, _STOP_JOBS, **facts)
        except GoclawError as error:
            log.warning("remote_jobs_not_stopped", extra={"node": node, "error": str(error)})
            return None
        return len(answer["runs"]), len(answer["jobs"])

    async def _others(self) -> Sequence[NodeId]:
        here, now = self._store.node(), self._clock.now()
        nodes = await self._store.nodes()
        return [node.id for node in nodes if node.id != here and node.is_live(now)]

    async def _ask_owner(self, session: SessionKey, what: str, **facts: object) -> Facts | None:
        dead = None
        for _ in range(_POLLS):
            owner = await self._store.owner(session)
            if owner is not None and owner != self._store.node():
                try:
                    return await self._ask(owner, what, session=session, **facts)
                except NotFound:
                    dead = owner  # another node, perhaps this one, continues its runs
            elif not await self._local.database.has_messages_elsewhere(session):
                return None
            await asyncio.sleep(_POLL_S)
        if dead is None:
            return None
        raise NodeSilent(
            f"node {dead} has expired, and no node has taken its sessions over; repeat"
        )

    async def _ask(self, node: NodeId, what: str, **facts: object) -> Facts:
        """Call a node; a silent one is waited for until it renews its lease, or loses it."""
        before = await self._lease_of(node)
        try:
            return await self._calls.ask(node, what, **facts)
        except NodeSilent:
            while (lease := await self._lease_of(node)) > self._clock.now():
                if lease != before:
                    raise
                await asyncio.sleep(_POLL_S)
            raise NotFound(f"node {node} has expired") from None

    async def _lease_of(self, node: NodeId) -> datetime:
        leases = [one.lease_until for one in await self._store.nodes() if one.id == node]
        return leases[0] if leases else datetime.min.replace(tzinfo=UTC)

    # ------------------------------------------------------------------ asked by others

    async def _on_stop(self, facts: Facts) -> Facts:
        session, everything = SessionKey(facts["session"]), bool(facts["everything"])
        run = facts.get("run")  # an older node sends none
        stopped = self._local.stop(Stop(session, everything, run, origin=StopOrigin.OUTSIDE))
        await self._local.store(stopped)
        if everything:
            await self._local.database.store_session(session)
        report = stopped.report
        return {
            "stopped": report.stopped,
            "dropped": report.dropped,
            "already": report.already_stopping,
        }

    async def _on_stop_jobs(self, facts: Facts) -> Facts:
        channel, account, chat, thread = facts["chat"]
        stop = Stop(
            None if facts["session"] is None else SessionKey(facts["session"]),
            bool(facts["everything"]),
            run=facts["run"],
            by=facts.get("by"),
        )
        target = Target(channel, account, chat, thread)
        # The session itself may be on another node than its subagents.
        stopped = self._local.stop_background(target, Stopped(stop), BACKGROUND)
        # Its answer promises that they stay stopped.
        await self._local.database.store()
        return {"runs": stopped.report.stopped, "jobs": stopped.jobs}

    async def _on_reset(self, facts: Facts) -> Facts:
        await self._local.start_new_session(SessionKey(facts["session"]))
        return {}


def _report(answer: Facts) -> StopReport:
    return StopReport(
        tuple(map(RunId, answer["stopped"])),
        tuple(map(RunId, answer["dropped"])),
        bool(answer["already"]),
    )
