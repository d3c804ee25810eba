"""What every store promises about heartbeat runs whose process went away (SPEC HB-4, HB-12)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from goclaw_py.heartbeat.models import HeartbeatRunStatus
from goclaw_py.model.ids import AgentName, HeartbeatRunId
from goclaw_py.model.outcomes import HeartbeatRunKind
from goclaw_py.model.run_events import Usage
from tests.support.store_heartbeats import (
    HALF_HOUR,
    by_hand,
    claim,
    claim_one,
    end,
    ended,
    planned,
    row_of,
    run_end,
    run_for,
    running_heartbeat,
)
from tests.support.stores import AGENT, T0, A, B, World, a_node, at, ran, recovered

pytestmark = pytest.mark.real_time

SPENT = Usage(1, 10, 2, 1, Decimal("0.5"))


async def left(world: World) -> datetime:
    await world.a.leave(A, now=at(12))
    return at(12)


async def returned(world: World) -> datetime:
    await world.a.release_heartbeats([row.id for row in await world.a.heartbeat_runs()], node=A)
    return at(12)


@pytest.mark.parametrize("let_go", [recovered, left, returned])
async def test_what_is_given_back_goes_on_in_its_row(
    world: World, let_go: Callable[[World], Awaitable[datetime]]
) -> None:
    """HB-4, HB-12: before anything else, and with its kind."""
    other = AgentName("other")
    await planned(world.a)
    await planned(world.a, other, now=at(-50))
    claimed = await by_hand(world.a, now=at(-1))
    now = await let_go(world)
    row = await row_of(world.b, claimed.id)
    assert (row.status, row.node, row.finished_at) == (HeartbeatRunStatus.DEFERRED, None, None)
    assert await world.b.next_heartbeat_due([AGENT]) == at(-1)
    first, second = await claim(world.b, AGENT, other, node=B, now=now, wakes=0)
    assert (first.id, first.kind, first.due_at) == (claimed.id, HeartbeatRunKind.MANUAL, at(-1))
    assert (first.claimed_at, first.heartbeat.began_at, first.next_at) == (
        now,
        at(-1),
        T0 + HALF_HOUR,
    )
    assert second.agent == other
    row = await row_of(world.b, claimed.id)
    assert (row.status, row.node, row.detail) == (HeartbeatRunStatus.RUNNING, B, "")


async def test_what_is_given_back_answers_what_was_due_meanwhile(world: World) -> None:
    """HB-1: times missed while down give one heartbeat run."""
    await planned(world.a)
    claimed = await claim_one(world.a)
    await world.a.release_heartbeats([claimed.id], node=A)
    late = T0 + 5 * HALF_HOUR + timedelta(seconds=1)
    again = await claim_one(world.b, node=B, now=late)
    assert (again.id, again.next_at) == (claimed.id, T0 + 6 * HALF_HOUR)
    await world.b.end_heartbeat_run(ended(again), node=B)
    assert await claim(world.b, AGENT, node=B, now=late) == []


async def test_a_heartbeat_run_whose_process_died_at_work_is_lost(world: World) -> None:
    """Its agent may have done anything."""
    await planned(world.a)
    claimed = await claim_one(world.a)
    event = await world.a.add_event(AGENT, "x", now=T0, wake=False)
    await ran(world, run_for("r0", claimed, started_at=at(1)), replace(run_end("r0"), usage=SPENT))
    await world.a.begin_run(run_for("r1", claimed, started_at=at(2)), node=A)
    now = await recovered(world)
    row = await row_of(world.b, claimed.id)
    assert (row.status, row.finished_at, row.node) == (HeartbeatRunStatus.LOST, now, None)
    assert (row.started_at, row.attempts, row.usage) == (at(1), 2, SPENT)
    assert "died" in row.detail
    heartbeat = await running_heartbeat(world.b)
    assert (heartbeat.heartbeat_run, heartbeat.node, heartbeat.failures) == (None, None, 0)
    assert await world.b.events(AGENT) == [event]


async def test_a_heartbeat_run_that_a_shutdown_cut_is_not_lost_when_its_next_process_dies(
    world: World,
) -> None:
    """That one had begun nothing."""
    await planned(world.b)
    claimed = await claim_one(world.b, node=B)
    await world.b.begin_run(run_for("r", claimed), node=B)
    await world.b.leave(B, now=at(5))
    assert (await row_of(world.a, claimed.id)).status is HeartbeatRunStatus.DEFERRED
    await claim_one(world.a, now=at(6))
    await world.b.join(a_node(B))
    await recovered(world)
    assert (await row_of(world.b, claimed.id)).status is HeartbeatRunStatus.DEFERRED


@pytest.mark.parametrize("by", ["its id", "what is known"])
async def test_only_what_a_node_has_in_hand_is_given_back(world: World, by: str) -> None:
    """Or what it does not know of: the answer to its claim was lost.

    What was claimed by hand may be on its way.
    """
    names = ("by hand", "known", "unknown", "other", "over")
    by_hand_, known, unknown, theirs, over = agents = [AgentName(name) for name in names]
    await planned(world.a, *agents)
    ids = {by_hand_: (await by_hand(world.a, by_hand_)).id}
    for agent in (known, unknown, over):
        claimed = await claim_one(world.a, agent)
        ids[agent] = claimed.id
        if agent is over:
            await end(world.a, claimed)
    ids[theirs] = (await claim_one(world.b, theirs, node=B)).id
    if by == "its id":
        given = [ids[unknown], ids[theirs], ids[over], HeartbeatRunId("unknown")]
        await world.a.release_heartbeats(given, node=A)
    else:
        await world.a.release_unclaimed_heartbeats([ids[known]], node=A)
    stati = {row.id: row.status for row in await world.a.heartbeat_runs()}
    assert stati == dict.fromkeys(ids.values(), HeartbeatRunStatus.RUNNING) | {
        ids[unknown]: HeartbeatRunStatus.DEFERRED,
        ids[over]: HeartbeatRunStatus.OK,
    }
