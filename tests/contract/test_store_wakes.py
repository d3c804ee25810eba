"""What every store promises about heartbeat runs that somebody asks for (SPEC HB-11)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.heartbeat.models import WAKES_APART, HeartbeatClaim
from goclaw_py.model.ids import AgentName
from goclaw_py.model.outcomes import HeartbeatRunKind
from tests.support.store_heartbeats import (
    HALF_HOUR,
    OFFSET,
    a_heartbeat_run,
    claim,
    claim_one,
    end,
    fresh,
    manual,
    planned,
    running_heartbeat,
)
from tests.support.stores import AGENT, T0, A, B, World, at

pytestmark = pytest.mark.real_time

ANNA, BERT, CLEO = (AgentName(name) for name in ("anna", "bert", "cleo"))


# ---------------------------------------------------------------------------- wakes


async def test_a_wake_brings_a_heartbeat_run_and_moves_nothing(world: World) -> None:
    """HB-11, HB-1: the grid stays."""
    before = await planned(world.a, now=at(1))
    assert await world.a.wake_heartbeat(AGENT, HeartbeatRunKind.EVENT, now=T0)
    assert await world.b.next_heartbeat_due([AGENT]) == T0
    assert await world.b.next_heartbeat_due([AGENT], wakes=False) == at(1)
    claimed = await claim_one(world.b, node=B, now=at(0.5))
    assert (claimed.kind, claimed.due_at, claimed.next_at) == (HeartbeatRunKind.EVENT, T0, at(1))
    assert await running_heartbeat(world.a) == replace(
        before, began_at=at(0.5), heartbeat_run=claimed.id, node=B
    )


async def test_a_wake_that_waits_already_is_enough(world: World) -> None:
    """A heartbeat run by hand answers it."""
    await planned(world.a, now=at(500))
    await world.a.wake_heartbeat(AGENT, HeartbeatRunKind.JOB, now=at(1))
    assert await world.a.wake_heartbeat(AGENT, HeartbeatRunKind.EVENT, now=at(2))
    found = await running_heartbeat(world.a)
    assert (found.wake_at, found.wake_kind) == (at(1), HeartbeatRunKind.JOB)
    await a_heartbeat_run(world.a, now=at(2))
    assert (await running_heartbeat(world.a)).wake_at is None
    assert await claim(world.a, now=at(99)) == []


async def test_wakes_are_thirty_seconds_apart_from_any_heartbeat_run(world: World) -> None:
    """HB-11."""
    await planned(world.a, now=at(500))
    await a_heartbeat_run(world.a, now=at(10))
    await world.a.wake_heartbeat(AGENT, HeartbeatRunKind.EVENT, now=at(11))
    earliest = at(10) + WAKES_APART
    assert await world.a.next_heartbeat_due([AGENT]) == earliest
    assert await claim(world.a, now=earliest - timedelta.resolution) == []
    assert (await claim_one(world.a, now=earliest)).due_at == at(11)


async def test_a_heartbeat_run_by_the_grid_takes_a_wake_along(world: World) -> None:
    """Also one that would have to wait: there is nothing left to tell."""
    await planned(world.a, interval=timedelta(seconds=20))
    await end(world.a, await claim_one(world.a))
    await world.a.wake_heartbeat(AGENT, HeartbeatRunKind.EVENT, now=at(10))
    claimed = await claim_one(world.a, now=at(20))
    assert claimed.kind is HeartbeatRunKind.INTERVAL
    await end(world.a, claimed)
    assert (await running_heartbeat(world.a)).wake_at is None


async def test_no_more_wakes_are_claimed_than_are_wanted(world: World) -> None:
    """HB-11: what is due by the grid, or was given back, does not count."""
    await planned(world.a, ANNA, BERT, CLEO, now=at(500))
    for second, agent in ((2, ANNA), (1, BERT), (3, CLEO)):
        await world.a.wake_heartbeat(agent, HeartbeatRunKind.EVENT, now=at(second))
    await planned(world.a, AGENT, now=at(4))
    agents = (ANNA, BERT, CLEO, AGENT)
    assert [one.agent for one in await claim(world.a, *agents, now=at(5), wakes=1)] == [BERT, AGENT]
    assert await claim(world.a, *agents, now=at(5), wakes=0) == []
    assert [one.agent for one in await claim(world.a, *agents, now=at(5))] == [ANNA, CLEO]


async def test_a_wake_of_a_heartbeat_that_is_off_is_claimed_too(world: World) -> None:
    """The log then says why nothing came."""
    await planned(world.a, interval=None)
    assert await world.a.wake_heartbeat(AGENT, HeartbeatRunKind.JOB, now=T0)
    claimed = await claim_one(world.a)
    assert (claimed.kind, claimed.next_at) == (HeartbeatRunKind.JOB, None)
    assert not claimed.heartbeat.is_on


# ---------------------------------------------------------------------------- by hand


@pytest.mark.parametrize("interval", [HALF_HOUR, None])
async def test_a_heartbeat_run_by_hand_comes_whatever_is_due(
    world: World, interval: timedelta | None
) -> None:
    """HB-11: also of a heartbeat that is off, and at once; the grid stays.

    It can be repeated when its answer was lost. Any other is refused while it works.
    """
    before = await planned(world.a, interval=interval, offset=OFFSET)
    first = await a_heartbeat_run(world.a, now=at(1))
    (run,) = fresh(1)
    claimed = await world.a.claim_heartbeat_now(A, AGENT, now=at(2), heartbeat_run=run)
    after = replace(before, began_at=at(2), heartbeat_run=run, node=A)
    assert claimed == HeartbeatClaim(
        run, AGENT, HeartbeatRunKind.MANUAL, at(2), at(2), before.next_at, after
    )
    again = [
        await store.claim_heartbeat_now(node, AGENT, now=at(3), heartbeat_run=run)
        for store, node in ((world.a, A), (world.b, B))
    ]
    assert again == [claimed, None]
    assert await manual(world.a) is None
    assert [one.id for one in await world.b.heartbeat_runs()] == [run, first.id]
