"""Short ways to say which heartbeats tests put into a store, and what becomes of their runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count

from goclaw_py.core.ids import CRON_LANE, AgentName, HeartbeatRunId, NodeId, RunId, SessionKey
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.records import NewRun, RunEnd, Store
from goclaw_py.schedule.heartbeat.models import (
    Heartbeat,
    HeartbeatClaim,
    HeartbeatConfig,
    HeartbeatRun,
    HeartbeatRunEnd,
    HeartbeatRunStatus,
)
from tests.support.stores import AGENT, ANN, T0, A, at

HALF_HOUR = timedelta(minutes=30)
OFFSET = timedelta(seconds=7)
_numbers = count(1)


def fresh(number: int) -> list[HeartbeatRunId]:
    """Ids that no other call gives."""
    return [HeartbeatRunId(f"beat {next(_numbers):06}") for _ in range(number)]


async def planned(
    store: Store,
    *agents: AgentName,
    interval: timedelta | None = HALF_HOUR,
    offset: timedelta = timedelta(0),
    now: datetime = T0,
) -> Heartbeat:
    """Plans for these agents, or for one; the heartbeat of the first one."""
    agents = agents or (AGENT,)
    await store.plan_heartbeats([HeartbeatConfig(one, interval, offset) for one in agents], now=now)
    return await running_heartbeat(store, agents[0])


async def running_heartbeat(store: Store, agent: AgentName = AGENT) -> Heartbeat:
    (found,) = await store.heartbeats([agent])
    return found


async def claim(
    store: Store,
    *agents: AgentName,
    node: NodeId = A,
    now: datetime = T0,
    limit: int = 100,
    wakes: int = 100,
) -> list[HeartbeatClaim]:
    return await store.claim_heartbeats(
        node, agents or [AGENT], now=now, ids=fresh(limit), wakes=wakes
    )


async def claim_one(
    store: Store, agent: AgentName = AGENT, *, node: NodeId = A, now: datetime = T0
) -> HeartbeatClaim:
    (claimed,) = await claim(store, agent, node=node, now=now)
    return claimed


async def manual(
    store: Store, agent: AgentName = AGENT, *, node: NodeId = A, now: datetime = T0
) -> HeartbeatClaim | None:
    (heartbeat_run,) = fresh(1)
    return await store.claim_heartbeat_now(node, agent, now=now, heartbeat_run=heartbeat_run)


def ended(
    claimed: HeartbeatClaim,
    status: HeartbeatRunStatus = HeartbeatRunStatus.OK,
    *,
    now: datetime | None = None,
) -> HeartbeatRunEnd:
    return HeartbeatRunEnd(claimed.id, claimed.agent, status, now or claimed.claimed_at)


async def end(
    store: Store,
    claimed: HeartbeatClaim,
    status: HeartbeatRunStatus = HeartbeatRunStatus.OK,
    *,
    now: datetime | None = None,
) -> None:
    await store.end_heartbeat_run(ended(claimed, status, now=now), node=A)


async def a_heartbeat_run(
    store: Store,
    status: HeartbeatRunStatus = HeartbeatRunStatus.OK,
    *,
    agent: AgentName = AGENT,
    now: datetime = T0,
) -> HeartbeatClaim:
    """One by hand that has ended."""
    claimed = await manual(store, agent, now=now)
    assert claimed
    await end(store, claimed, status, now=now)
    return claimed


def alerted(
    claimed: HeartbeatClaim, *, target: Target = ANN, now: datetime | None = None
) -> HeartbeatRunEnd:
    return replace(ended(claimed, HeartbeatRunStatus.ALERTED, now=now), target=target)


def alert(text: str, key: str = "", target: Target = ANN) -> OutboundMessage:
    return OutboundMessage(target, text, alert=key)


async def row_of(store: Store, heartbeat_run: HeartbeatRunId) -> HeartbeatRun:
    found = await store.heartbeat_run(heartbeat_run)
    assert found is not None
    return found


def run_for(name: str, claimed: HeartbeatClaim, *, started_at: datetime = T0) -> NewRun:
    return NewRun(
        id=RunId(name),
        session=SessionKey(f"agent:{claimed.agent}:heartbeat"),
        agent=claimed.agent,
        trigger=Trigger.HEARTBEAT,
        lane=CRON_LANE,
        inbox=(),
        target=None,
        started_at=started_at,
        heartbeat_run=claimed.id,
    )


def run_end(
    name: str, last: HeartbeatRunEnd | None = None, outcome: Outcome = Outcome.COMPLETED
) -> RunEnd:
    return RunEnd(RunId(name), outcome, at(9), heartbeat_run=last)


async def by_hand(store: Store, agent: AgentName = AGENT, *, now: datetime = T0) -> HeartbeatClaim:
    claimed = await manual(store, agent, now=now)
    assert claimed is not None
    return claimed
