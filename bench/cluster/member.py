"""One node in this process, wired as the real one is: all of a gateway but sockets and signals.

Its agent takes no time, and its channel is a ``PeopleChannel``.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench.cluster.people import ACCOUNT, CHANNEL, PeopleChannel
from bench.heartbeat.gateway import write_checklists
from bench.heartbeat.measure import TASK
from bench.jobs.gateway import Instant
from goclaw_py.cluster import membership as cluster_module
from goclaw_py.cluster.membership import Membership
from goclaw_py.core.concurrency import WakeEvent
from goclaw_py.core.ids import CRON_LANE, MAIN_AGENT, MAIN_LANE, AgentName
from goclaw_py.core.session_keys import AccessRules, DirectPolicy
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.clocks import SharedClock, SystemClock
from goclaw_py.gateway.container import Container
from goclaw_py.gateway.dependencies import GatewayDependencies
from goclaw_py.records import Notice
from goclaw_py.records.bound import bind
from goclaw_py.runs.session_settings import ChatRules
from goclaw_py.runs.toolbox import NO_TOOLS, Toolbox, ToolContext
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.schedule.heartbeat.models import HeartbeatConfig
from goclaw_py.schedule.heartbeat.module import HeartbeatSetup
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.scheduler.scheduler import RunScheduler
from goclaw_py.store.postgres import PostgresStore

_POLL_S = 2.0
_PEOPLE_S = 10.0
_LONG = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Kind:
    """How a node is set up.

    Args:
        among_others: Renews a lease, looks for dead nodes, answers questions, reads the clock of
            the database. Else it enters itself once, for a day, as if it were alone for ever.
        shared_cron: The places of lane cron are those of all nodes together.
        cron: How many there are.
        beats_s: How many seconds apart the agent's heartbeat is; 0: it has none.
    """

    among_others: bool = True
    shared_cron: bool = False
    cron: int = 1
    main: int = 100
    capacity: int = 1_000
    heartbeats_s: int = 0


@dataclass(frozen=True, slots=True)
class Member:
    """A node that works."""

    container: Container
    channel: PeopleChannel
    clock: Clock
    cluster: Membership
    agent: Instant


class _NoTools:
    def toolbox(self, here: ToolContext) -> Toolbox:
        del here
        return NO_TOOLS


@asynccontextmanager
async def member(store: PostgresStore, kind: Kind) -> AsyncIterator[Member]:
    """A node at work until the end of the block."""
    clock: Clock = SharedClock() if kind.among_others else SystemClock()
    pending, lost = WakeEvent(), asyncio.Event()
    if not kind.among_others:
        cluster_module.LEASE = _LONG  # it has a process of its own
    cluster = Membership(
        store, clock, "bench", on_recovery=lambda _: pending.call(), on_lost=lambda _: lost.set()
    )
    with tempfile.TemporaryDirectory() as folder:
        channel, agent = PeopleChannel(), Instant()
        deps = _around(kind, channel, agent, folder)
        bound = bind(store, lambda: cluster.node.id)
        container = Container(bound, clock, _scheduler(kind), deps)
        store.on_notice(lambda notice: _hear(notice, container, cluster, pending))
        await cluster.join()
        await container.access_control.refresh()
        await container.claim_pending()
        duties = [asyncio.create_task(duty) for duty in _duties(kind, container, cluster, pending)]
        try:
            yield Member(container, channel, clock, cluster, agent)
        finally:
            await container.drain(5, asyncio.Event())
            await container.outbox.close(5)
            for duty in duties:
                duty.cancel()
            await asyncio.gather(*duties, return_exceptions=True)
            await cluster.leave()


def _scheduler(kind: Kind) -> RunScheduler:
    shared = (CRON_LANE,) if kind.shared_cron else ()
    return RunScheduler({MAIN_LANE: kind.main, CRON_LANE: kind.cron}, shared=shared)


def _around(kind: Kind, channel: PeopleChannel, agent: Instant, folder: str) -> GatewayDependencies:
    policy = QueuePolicy(capacity=kind.capacity)
    write_checklists([Path(folder) / "workspace"], TASK)
    workspaces = {MAIN_AGENT: Path(folder) / "workspace"}
    access = AccessRules(direct=DirectPolicy.OPEN)
    place = CHANNEL, ACCOUNT
    return GatewayDependencies(
        channels={place: channel},
        rules={place: ChatRules(MAIN_AGENT, access, policy, policy)},
        agents={MAIN_AGENT: agent},
        workspaces=workspaces,
        context_windows={MAIN_AGENT: 100_000},
        tool_factory=_NoTools(),
        heartbeats=_heartbeats(kind, workspaces),
    )


def _heartbeats(kind: Kind, workspaces: Mapping[AgentName, Path]) -> HeartbeatSetup:
    if not kind.heartbeats_s:
        return HeartbeatSetup()
    every = timedelta(seconds=kind.heartbeats_s)
    return HeartbeatSetup(
        policies={MAIN_AGENT: HeartbeatPolicy(every)},
        plans={MAIN_AGENT: HeartbeatConfig(MAIN_AGENT, every, timedelta())},
        workspaces=workspaces,
    )


def _duties(
    kind: Kind, container: Container, cluster: Membership, pending: WakeEvent
) -> list[Coroutine[Any, Any, None]]:
    alone = [
        container.outbox.run(),
        container.job_module.run(),
        container.heartbeats.run(),
        container.heartbeats.retry_notifications(),
        container.incidents.watch(),
        container.supervisor.run(container.gateway),
        _keep_taking_up(container, pending),
        _keep_knowing_people(container),
    ]
    if not kind.among_others:
        return alone
    among = (*cluster.duties(), container.calls.run, container.lane_permits.run)
    return [*alone, *(duty() for duty in among)]


async def _keep_taking_up(container: Container, pending: WakeEvent) -> None:
    while True:
        pending.clear()
        await container.claim_pending()
        await container.gateway.release_idle()
        await pending.wait(_POLL_S)


async def _keep_knowing_people(container: Container) -> None:
    while True:
        await asyncio.sleep(_PEOPLE_S)
        await container.access_control.refresh()


def _hear(notice: Notice, container: Container, cluster: Membership, pending: WakeEvent) -> None:
    match notice:
        case Notice.INBOX:
            pending.call()
        case Notice.OUTBOX:
            container.outbox.wake.call()
        case Notice.CRON:
            container.poll_due()
        case Notice.LANES:
            container.lane_permits.poll_soon()
        case Notice.NODES:
            cluster.check_others()
            container.calls.poll()
            container.supervisor.check_leases()
        case Notice.PEOPLE:
            pass
