"""This process as a node: its row, its lease, and recovery after expired nodes.

Only the lease is renewed. Sessions, outbox rows and named leases name their owner; an owner whose
lease has ended owns nothing (docs/adr/0004).
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
from collections.abc import Awaitable, Callable, Collection, Coroutine
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from goclaw_py.chat.outbound import texts
from goclaw_py.core.concurrency import WakeEvent
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import NodeId
from goclaw_py.core.retry import hedged, retry_until_available
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.clocks import SharedClock, new_id
from goclaw_py.records import MembershipStore, Node, NodeState, RecoveryReport, Renewed
from goclaw_py.scheduler.operator_warnings import OperatorWarning

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=10)
RENEW_S = 3.0
RECOVER_S = 2.0
_SPARE = timedelta(seconds=2)
"""This long before its lease ends, a node that cannot renew it checks whether to stop its runs."""
_MOMENT_S = 1.0
_ANSWER_S = 2.5
"""Seconds before a slow renewal is repeated over another connection."""
MAX_ATTEMPTS = 3
"""A message fails after this many attempts by nodes that died (SPEC IO-2)."""


class Membership:
    """The node of this process.

    Args:
        clock: A shared clock is set by the database's, first of all and then regularly.
        release: The version of the program, shown to operators.
        on_recovery: Called after work of an expired node was released.
        on_lost: Called with this node when it has expired or stopped its runs, before a new node is
            joined, so that the new one's claims are not confused with the old ones.
        state: Returns the state to store with each renewal.
        before_release: Called before the claims of the node that this process was are released.
    """

    def __init__(
        self,
        store: MembershipStore,
        clock: Clock,
        release: str,
        *,
        on_recovery: Callable[[RecoveryReport], None],
        on_lost: Callable[[NodeId], None],
        state: Callable[[], NodeState] = NodeState,
        before_release: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._shared = clock if isinstance(clock, SharedClock) else None
        self._state = state
        self._peers: tuple[Node, ...] = ()
        self._has_company = True
        """Whether other nodes existed at the last renewal; True before the first."""
        self._news = 0
        """The number of nodes known to have joined or left."""
        self._given_up: NodeId | None = None
        """The id under which this process stopped its runs, until it has a new one."""
        self._former: NodeId | None = None
        """The same, until its claims are released."""
        self._told: frozenset[str] = frozenset()
        self._store = store
        self._clock = clock
        self._release = release
        self._on_recovery = on_recovery
        self._on_lost = on_lost
        self._before_release = before_release
        self.node: Node = self._new_node()
        self._renewing = asyncio.Lock()
        self._changed = WakeEvent()
        self._bury_from = self.node.lease_until
        """Until then, an expired node may still be about to renew its lease."""

    async def join(self) -> None:
        """Join as a new node, and recover nodes of this machine whose process has ended."""
        await self._enter_anew()
        await retry_until_available(self._bury_the_dead)

    def live(self) -> NodeId | None:
        """Return this node while no other can have taken over its work; None after its lease.

        A process that was suspended must check this before it does anything visible.
        """
        is_live = self._given_up is None and self.node.is_live(self._clock.now())
        return self.node.id if is_live else None

    def duties(self) -> tuple[Callable[[], Coroutine[Any, Any, None]], ...]:
        """The background tasks of a node, each of which runs until cancelled."""
        return self.renew_regularly, self.guard, self.watch

    async def leave(self) -> None:
        """Release everything."""
        if self._before_release is not None:
            await self._before_release()
        for node in filter(None, (self._given_up, self._former, self.node.id)):
            await self._store.leave(node, now=self._clock.now())

    async def renew_regularly(self) -> None:
        """Renew the lease, and do nothing that could delay it. Runs until cancelled."""
        while True:
            await asyncio.sleep(RENEW_S)
            await retry_until_available(self._renew)

    async def guard(self) -> None:
        """Stop the runs of a disconnected node before others start them. Runs until cancelled.

        A node that is alone keeps its runs, because no other can take them (SPEC QUEUE-2, DB-4).
        """
        was_late = is_late = False
        while True:
            left_s = (self.node.lease_until - self._clock.now()).total_seconds()
            # A process that was suspended is late when it continues, and has a moment to renew;
            # less if it wakes shortly before its lease ends.
            is_short = is_late and not was_late and 0 < left_s < 2 * _MOMENT_S
            moment_s = left_s / 2 if is_short else _MOMENT_S
            await asyncio.sleep(max(left_s - _SPARE.total_seconds(), moment_s))
            was_late = is_late
            is_late = self._clock.now() >= self.node.lease_until - _SPARE
            if was_late and is_late and self._has_company and self._given_up is None:
                log.error("lease_lost", extra={"reason": "database_unavailable"})
                self._give_up()

    async def watch(self) -> None:
        """Search for expired nodes. Runs until cancelled.

        While the database is unavailable, leases end although their nodes are alive. After that,
        all nodes get time to renew before any is recovered. A node that has just joined does not
        know whether the database was unavailable, so it waits too.
        """
        was_away = False
        while True:
            self._changed.clear()
            try:
                await self._renew()
                if was_away:
                    self._bury_from, was_away = self._clock.now() + LEASE, False
                if self._former is not None:
                    await self._bury_the_dead()
                if self._clock.now() >= self._bury_from:
                    await self._end_leases_ahead()
                    await self.recover()
                self._peers = tuple(await self._store.nodes())
                self._log_differences()
            except StoreUnavailable as error:
                log.debug("store_unavailable", extra={"error": str(error), "part": "cluster"})
                was_away = True
            await self._changed.wait(RECOVER_S)

    def check_others(self) -> None:
        """Check for other nodes: a node that believes to be alone is not, until it has checked."""
        self._news += 1
        self._has_company = True
        self._changed.call()

    def others(self) -> tuple[Node, ...]:
        """Return the other nodes as last seen, including expired ones that are not recovered."""
        return tuple(node for node in self._peers if node.id != self.node.id)

    def warnings(self) -> tuple[OperatorWarning, ...]:
        """Return warnings about this machine's clock, and about nodes with other settings."""
        words = None if self._shared is None else self._shared.warning()
        clock = OperatorWarning(
            *("gateway.clock", "The clock of this machine", words or ""),
            command="timedatectl set-ntp true",
        )
        return ((clock,) if words else ()) + tuple(self._differences())

    def _differences(self) -> list[OperatorWarning]:
        now = self._clock.now()
        live = (node for node in self.others() if node.is_live(now))
        return [
            OperatorWarning(
                "gateway.release_differs"
                if node.release != self.node.release
                else "gateway.settings_differ",
                f"Node {node.id}",
                f"({node.machine}, pid {node.pid}) {found}",
                "/health#nodes",
                f"goclaw nodes show {node.id}",
            )
            for node in live
            if (found := differences(self.node, node))
        ]

    def _log_differences(self) -> None:
        found = frozenset(map(str, self._differences()))
        for line in sorted(found - self._told):
            log.warning("node_differs", extra={"warning": line})
        self._told = found

    async def recover(self, only: Collection[NodeId] | None = None) -> None:
        """Release the work of expired nodes: of all, or ``only`` of some."""
        recovery = await self._store.recover(
            now=self._clock.now(), max_attempts=MAX_ATTEMPTS, apology=texts.LOST, only=only
        )
        if recovery.nodes:
            log.warning(
                "expired_nodes_recovered",
                extra={
                    "nodes": len(recovery.nodes),
                    "runs_cut": len(recovery.cut_runs),
                    "runs_given_up": recovery.gave_up,
                },
            )
            self._on_recovery(recovery)

    async def _renew(self) -> None:
        # Two callers must not both find the old node expired and join twice.
        async with self._renewing:
            if self._given_up is None and await self._extend():
                return
            await self._enter_anew()
            self._changed.call()

    async def _extend(self) -> bool:
        """Extend the lease; False if this node has expired."""
        renewed, until, news = await hedged(self._ask_for_more, every_s=_ANSWER_S)
        if self._given_up is not None:
            return False
        if renewed is None:
            log.error("lease_lost", extra={"reason": "expired"})
            self._give_up()
            return False
        if self._clock.now() >= self.node.lease_until:
            # What kept this process from renewing in time may have kept the others too.
            self._bury_from = self._clock.now() + LEASE
        # News that came meanwhile may be newer than the answer.
        self._has_company = renewed.among_others or self._news != news
        self.node = replace(self.node, lease_until=until)
        return True

    async def _ask_for_more(self) -> tuple[Renewed | None, datetime, int]:
        """Renew; return the response, the new end of the lease, and the value of ``_news``."""
        await self._read_clock()
        until, news = self._clock.now() + LEASE, self._news
        clock_set_back = (
            until < self.node.lease_until
        )  # or it would end after the lease that there is
        if clock_set_back:
            self._bury_from = until
        renewed = await self._store.renew(
            self.node.id, until=until, state=self._state(), clock_set_back=clock_set_back
        )
        return renewed, until, news

    def _give_up(self) -> None:
        # The new node is not stored yet: until it has joined, it can claim and start nothing.
        self._given_up, self.node = self.node.id, self._new_node()
        self._on_lost(self._given_up)

    async def _read_clock(self) -> None:
        if self._shared is None:
            return
        begun_s = self._shared.begin()
        there = await self._store.time()
        if there is not None and self._shared.read(there, begun_s):
            log.warning("database_clock_jumped")
            self._bury_from = self._clock.now() + LEASE

    async def _enter_anew(self) -> None:
        await retry_until_available(self._read_clock)
        self.node = self._new_node()
        await retry_until_available(self._enter)

    async def _enter(self) -> None:
        # Whenever the database is back, the lease is fresh: this must not be among the dead.
        until = self._clock.now() + LEASE
        self.node = replace(self.node, lease_until=until, state=self._state())
        self._bury_from = self.node.lease_until
        try:
            await self._store.join(self.node)
        except StoreUnavailable:
            # It may have joined all the same, started something, and have expired at the next
            # attempt.
            doubtful, self.node = self.node.id, self._new_node()
            if self._given_up is not None:
                self._on_lost(doubtful)
            raise
        # From here on its lease is guarded, whatever else takes its time.
        self._former, self._given_up = self._given_up or self._former, None

    async def _bury_the_dead(self) -> None:
        """Recover nodes that have certainly ended: of this machine, or this process before."""
        nodes = await self._store.nodes()
        if self._former is not None and self._before_release is not None:
            await self._before_release()
        if self._former not in [node.id for node in nodes]:
            self._former = None
        gone = [node.id for node in nodes if node.id == self._former or self._is_gone(node)]
        for node_id in gone:
            await self._store.end_lease(node_id, now=self._clock.now())
        if gone:
            await self.recover(gone)

    async def _end_leases_ahead(self) -> None:
        """End leases of nodes that have died before the clock was set back.

        Live nodes have renewed theirs since, by the present clock.
        """
        now = self._clock.now()
        for node in self.others():
            if node.lease_until > now + 2 * LEASE:
                await self._store.end_lease(node.id, now=now)

    def _is_gone(self, node: Node) -> bool:
        """Return whether it was another process of this machine that has ended."""
        is_other = node.host == self.node.host and node.pid != self.node.pid
        return is_other and not _alive(node.pid)

    def _new_node(self) -> Node:
        now = self._clock.now()
        return Node(
            id=NodeId(new_id(self._clock)),
            host=host_identity(),
            pid=os.getpid(),
            release=self._release,
            started_at=now,
            lease_until=now + LEASE,
        )


def differences(here: Node, there: Node) -> str:
    """Return how another node differs from this one, as a clause; "" if it does not."""
    parts: list[str] = []
    if there.release != here.release:
        parts.append(f"runs release {there.release or 'unknown'}, this one {here.release}")
    if other := other_sections(here, there):
        parts.append(f"has other settings here: {', '.join(other)}")
    return " and ".join(parts)


def other_sections(here: Node, there: Node) -> list[str]:
    """Return the sections of the settings that two nodes do not share, such as ``[lanes]``."""
    ours, theirs = here.state.settings, there.state.settings
    if not ours or not theirs:
        return []
    other = sorted(k for k in ours.keys() | theirs.keys() if ours.get(k) != theirs.get(k))
    return [f"[{key}]" for key in other]


def host_identity() -> str:
    """Return an id of this machine's boot and of the namespace of its process ids.

    Two containers of a machine have equal pids for different processes, so with the name alone one
    would take the other's gateway for a dead process.
    """
    boot = Path("/proc/sys/kernel/random/boot_id")
    parts = [platform.node()]
    if boot.exists():
        parts.append(boot.read_text().strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return "/".join(parts)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
