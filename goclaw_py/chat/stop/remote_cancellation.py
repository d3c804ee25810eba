"""Cancellation of runs on other nodes (SPEC NODE-1, CMD-1…3)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from goclaw_py.chat.stop.cancellation import CancelResult, RunCanceller
from goclaw_py.cluster.rpc import Facts, NodeRpc
from goclaw_py.core.chat_commands import StopCommand
from goclaw_py.core.errors import GoclawError, NodeSilent, NotFound
from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import stop_reason
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import NodeStore
from goclaw_py.scheduler.views import StopReport

log = logging.getLogger(__name__)

_STOP: Final = "stop"
_STOP_JOBS: Final = "stop_jobs"
_RESET: Final = "reset"

_LOOK_S: Final = 0.2
_LOOKS: Final = 25
"""How often is looked whether a session of a dead node was taken over: until long after it is."""


class RemoteCanceller:
    """Asks other nodes to cancel, and cancels here when they ask.

    Args:
        node: Returns the present id of this node.
    """

    def __init__(
        self, store: NodeStore, clock: Clock, calls: NodeRpc, node: Callable[[], NodeId]
    ) -> None:
        self._store = store
        self._clock = clock
        self._calls = calls
        self._node = node

    def connect(
        self, canceller: RunCanceller, reset: Callable[[SessionKey], Awaitable[None]]
    ) -> None:
        """Set the dependencies. Call it once, before any request."""
        self._canceller = canceller
        self._reset_here = reset
        self._calls.serve(_STOP, self._on_stop)
        self._calls.serve(_STOP_JOBS, self._on_stop_jobs)
        self._calls.serve(_RESET, self._on_reset)

    async def stop(self, session: SessionKey, *, everything: bool) -> StopReport | None:
        """Stop on the node that owns a session; None if no other node does.

        If its owner has died, waits until another node, perhaps this one, has taken the session
        over. Raises ``NodeSilent`` and ``StoreUnavailable``.
        """
        answer = await self._ask_owner(session, _STOP, everything=everything)
        return None if answer is None else _report(answer)

    async def reset(self, session: SessionKey) -> bool:
        """Stop and start a new history there, as ``stop``; False if no other node owns it."""
        return await self._ask_owner(session, _RESET) is not None

    async def stop_jobs(
        self, chat: Target, command: StopCommand, stopped: CancelResult
    ) -> tuple[int, int]:
        """Stop background work for a chat on other nodes; return the numbers of subagents and jobs.

        It has the limits of what was ``stopped`` here. A node that does not answer is skipped and
        logged.
        """
        others, runs, jobs = await self._others(), 0, 0
        reached: list[NodeId] = []
        if command.everything:
            reached.append(self._node())
            asked = (self._stop_jobs_of(node, chat, command, stopped) for node in others)
            for node, of_node in zip(others, await asyncio.gather(*asked), strict=True):
                if of_node is not None:
                    reached.append(node)
                    runs, jobs = runs + of_node[0], jobs + of_node[1]
            runs += await self._canceller.stop_subagents_elsewhere(chat, stopped, reached)
        else:
            for node in others:
                of_node = await self._stop_jobs_of(node, chat, command, stopped)
                if of_node is not None and any(of_node):
                    return of_node
        # What waits for its session, and what silent or dead nodes have: it may run on another one.
        return runs, jobs + await self._canceller.stop_waiting_jobs(
            chat, everything=command.everything, run=command.run, by=stopped.by, reached=reached
        )

    async def _stop_jobs_of(
        self, node: NodeId, chat: Target, command: StopCommand, stopped: CancelResult
    ) -> tuple[int, int] | None:
        facts = {
            "chat": [chat.channel, chat.account, chat.chat, chat.thread],
            "everything": command.everything,
            "run": command.run,
            "by": stopped.by,
            "session": stopped.session,
        }
        try:
            answer = await self._calls.ask(node, _STOP_JOBS, **facts)
        except GoclawError as error:
            log.warning("remote_jobs_not_stopped", extra={"node": node, "error": str(error)})
            return None
        return len(answer["runs"]), len(answer["jobs"])

    async def _others(self) -> Sequence[NodeId]:
        here, now = self._node(), self._clock.now()
        nodes = await self._store.nodes()
        return [node.id for node in nodes if node.id != here and node.is_live(now)]

    async def _ask_owner(self, session: SessionKey, what: str, **facts: object) -> Facts | None:
        dead = None
        for _ in range(_LOOKS):
            owner = await self._store.owner(session)
            if owner is not None and owner != self._node():
                try:
                    return await self._ask(owner, what, session=session, **facts)
                except NotFound:
                    dead = owner  # another node, perhaps this one, continues its runs
            elif not await self._canceller.has_messages_elsewhere(session):
                return None
            await asyncio.sleep(_LOOK_S)
        if dead is None:
            return None
        raise NodeSilent(f"node {dead} has died, and no node has taken its sessions over; repeat")

    async def _ask(self, node: NodeId, what: str, **facts: object) -> Facts:
        """Call a node; a silent one is waited for until it renews its lease, or loses it."""
        before = await self._lease_of(node)
        try:
            return await self._calls.ask(node, what, **facts)
        except NodeSilent:
            while (lease := await self._lease_of(node)) > self._clock.now():
                if lease != before:
                    raise
                await asyncio.sleep(_LOOK_S)
            raise NotFound(f"node {node} has died") from None

    async def _lease_of(self, node: NodeId) -> datetime:
        leases = [one.lease_until for one in await self._store.nodes() if one.id == node]
        return leases[0] if leases else datetime.min.replace(tzinfo=UTC)

    # ------------------------------------------------------------------ asked by others

    async def _on_stop(self, facts: Facts) -> Facts:
        session, everything = SessionKey(facts["session"]), bool(facts["everything"])
        stopped = self._canceller.stop(session, everything=everything)
        await self._canceller.keep(stopped)
        if everything:
            await self._canceller.store_stop_of_session(session)
        report = stopped.report
        return {
            "stopped": report.stopped,
            "dropped": report.dropped,
            "already": report.already_stopping,
        }

    async def _on_stop_jobs(self, facts: Facts) -> Facts:
        everything, run = bool(facts["everything"]), facts["run"]
        channel, account, chat, thread = facts["chat"]
        reason, by = stop_reason(everything=everything), facts.get("by")
        session = None if facts["session"] is None else SessionKey(facts["session"])
        stopped = CancelResult(StopReport(), reason, session=session, by=by)
        if everything:
            # The session itself may be on another node than its subagents.
            stopped = self._canceller.stop_subagents(stopped, everything=True)
        stopped = self._canceller.stop_jobs(
            Target(channel, account, chat, thread),
            stopped,
            everything=everything,
            run=None if run is None else RunId(run),
        )
        # Its answer promises that they stay stopped.
        await self._canceller.keep()
        return {"runs": stopped.report.stopped, "jobs": stopped.jobs}

    async def _on_reset(self, facts: Facts) -> Facts:
        await self._reset_here(SessionKey(facts["session"]))
        return {}


def _report(answer: Facts) -> StopReport:
    return StopReport(
        tuple(map(RunId, answer["stopped"])),
        tuple(map(RunId, answer["dropped"])),
        bool(answer["already"]),
    )
