"""What every store promises about heartbeats, and about the runs that are due (SPEC HB-1)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goclaw_py.core.errors import Fenced
from goclaw_py.core.ids import AgentName, HeartbeatRunId, NodeId
from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.core.run_events import Usage
from goclaw_py.records import Notice
from goclaw_py.schedule.heartbeat.models import (
    WAKES_APART,
    Heartbeat,
    HeartbeatClaim,
    HeartbeatConfig,
    HeartbeatRun,
    HeartbeatRunStatus,
)
from tests.support.store_heartbeats import (
    HALF_HOUR,
    OFFSET,
    a_heartbeat_run,
    by_hand,
    claim,
    claim_one,
    end,
    ended,
    fresh,
    manual,
    planned,
    row_of,
    run_end,
    run_for,
    running_heartbeat,
)
from tests.support.stores import AGENT, T0, A, B, World, a_node, at, listen, ran, recovered, until

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

ANNA, BERT, CLEO = (AgentName(name) for name in ("anna", "bert", "cleo"))
HOUR = timedelta(hours=1)
NEVER = AgentName("never")


# ---------------------------------------------------------------------------- the grid


async def test_the_grid_begins_an_offset_after_the_first_enabling(world: World) -> None:
    assert await planned(world.a, interval=None) == Heartbeat(AGENT, None)
    assert await world.a.next_heartbeat_due([AGENT]) is None
    found = await planned(world.a, offset=OFFSET, now=at(50))
    assert found == Heartbeat(AGENT, HALF_HOUR, anchor=at(57), next_at=at(57))
    assert await world.b.heartbeats() == [found]


async def test_a_restart_keeps_the_schedule_however_long_it_is_over(world: World) -> None:
    before = await planned(world.a, offset=OFFSET)
    for away_s in (0, 1, 1800, 100_000_000):
        assert await planned(world.b, offset=timedelta(0), now=at(away_s)) == before


async def test_another_interval_keeps_the_anchor_and_takes_its_next_point(world: World) -> None:
    before = await planned(world.a)
    after = await planned(world.a, interval=timedelta(seconds=7), now=at(15))
    assert (after.anchor, after.next_at) == (before.anchor, at(21))
    assert (await planned(world.a, interval=HOUR, now=at(21))).next_at == at(3600)


async def test_a_heartbeat_that_comes_back_on_takes_the_next_point(world: World) -> None:
    """A point at that very instant is not over; the anchor itself counts."""
    for now, next_at in ((at(-5), T0), (T0, T0), (at(1800), at(1800)), (at(1800.000001), at(3600))):
        await planned(world.a)
        await planned(world.a, interval=None)
        assert (await planned(world.a, now=now)).next_at == next_at


def a_plan(agent: AgentName) -> HeartbeatConfig:
    return HeartbeatConfig(agent, HALF_HOUR, OFFSET)


async def test_times_of_a_clock_that_was_ahead_are_replaced(world: World) -> None:
    """HB-1: the points of the grid stay; what is within an interval is right."""
    await planned(world.a, ANNA, BERT, CLEO, now=at(7200))
    await planned(world.a, BERT, interval=None)
    claimed = await claim_one(world.a, ANNA, now=at(7201))
    end = replace(ended(claimed), done=("mail",))
    await world.a.end_heartbeat_run(end, node=A)
    await world.a.wake_heartbeat(ANNA, HeartbeatRunKind.EVENT, now=at(7300))
    await world.a.replan_heartbeats([*map(a_plan, (ANNA, BERT, NEVER))], now=at(50))
    anna = await running_heartbeat(world.b, ANNA)
    assert (anna.next_at, anna.began_at, anna.wake_at) == (at(1800), at(50), at(50))
    assert (await running_heartbeat(world.b, BERT)).next_at is None
    assert (await running_heartbeat(world.b, CLEO)).next_at == at(7200)
    assert (await world.b.run_facts(ANNA, spent_since=T0)).done == {"mail": at(50)}
    assert [one.due_at for one in await claim(world.a, ANNA, now=at(1800))] == [at(1800)]
    later = await running_heartbeat(world.b, ANNA)
    await world.a.replan_heartbeats([a_plan(ANNA)], now=at(1800))
    assert await running_heartbeat(world.b, ANNA) == later


async def test_what_was_released_by_a_clock_that_was_ahead_is_due_at_once(world: World) -> None:
    await planned(world.a, now=at(7200))
    claimed = await claim_one(world.a, now=at(7200))
    await world.a.release_heartbeats([claimed.id], node=A)
    await world.a.replan_heartbeats([a_plan(AGENT)], now=at(5))
    assert await world.a.next_heartbeat_due([AGENT]) == at(5)


async def test_plans_for_some_agents_leave_the_others_alone(world: World) -> None:
    await planned(world.a, ANNA)
    await planned(world.a, BERT, interval=HOUR, now=at(9))
    await world.a.plan_heartbeats([], now=at(10))
    plans = [(one.agent, one.interval) for one in await world.b.heartbeats()]
    assert plans == [(ANNA, HALF_HOUR), (BERT, HOUR)]
    assert [one.agent for one in await world.b.heartbeats([BERT, NEVER])] == [BERT]
    assert await world.b.heartbeats([]) == []


async def test_two_processes_that_plan_at_once_make_one_heartbeat(world: World) -> None:
    plans = [HeartbeatConfig(AGENT, HALF_HOUR, OFFSET)]
    await asyncio.gather(*(one.plan_heartbeats(plans, now=T0) for one in [world.a, world.b] * 4))
    assert await world.a.heartbeats() == [
        Heartbeat(AGENT, HALF_HOUR, anchor=T0 + OFFSET, next_at=T0 + OFFSET)
    ]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(interval_us=st.integers(1_000_000, 10**14), late_us=st.integers(0, 10**15))
async def test_the_next_point_of_the_grid_is_exact(
    world: World, interval_us: int, late_us: int
) -> None:
    """Law: the first point after now, to the microsecond, whatever the interval."""
    agent = AgentName(f"agent {interval_us} {late_us}")
    interval = timedelta(microseconds=interval_us)
    await planned(world.a, agent, interval=interval)
    now = T0 + timedelta(microseconds=late_us)
    claimed = await claim_one(world.a, agent, now=now)
    assert claimed.next_at is not None
    assert (claimed.next_at - T0) % interval == timedelta(0)
    assert claimed.next_at - interval <= now < claimed.next_at


# ---------------------------------------------------------------------------- what people choose


@pytest.mark.parametrize("interval", [HALF_HOUR, None])
async def test_people_switch_it_off_and_on_again(world: World, interval: timedelta | None) -> None:
    before = await planned(world.a, interval=interval)
    assert await world.a.switch_heartbeat(AGENT, on=False, now=at(1))
    off = await running_heartbeat(world.b)
    assert (off.switched, off.is_on, off.next_at) == (False, False, None)
    assert await world.a.switch_heartbeat(AGENT, on=None, now=at(2))
    again = await running_heartbeat(world.b)
    assert again == replace(before, next_at=None if interval is None else at(1800))
    if interval is not None:
        assert await world.a.switch_heartbeat(AGENT, on=True, now=at(9999))
        assert await running_heartbeat(world.b) == replace(again, switched=True)


async def test_what_people_have_switched_off_stays_off_whatever_is_planned(world: World) -> None:
    """And it is muted for a time."""
    before = await planned(world.a)
    for until_ in (at(60), None):
        assert await world.a.mute_heartbeat(AGENT, until_)
        assert await running_heartbeat(world.b) == replace(before, muted_until=until_)
    await world.a.switch_heartbeat(AGENT, on=False, now=T0)
    assert (await planned(world.a, interval=HOUR)).next_at is None
    assert await claim(world.a, now=at(99_999)) == []
    await world.a.switch_heartbeat(AGENT, on=True, now=at(5))
    assert (await running_heartbeat(world.a)).next_at == at(3600)


async def test_of_an_agent_that_is_not_planned_nothing_can_be_chosen(world: World) -> None:
    assert not await world.a.switch_heartbeat(NEVER, on=True, now=T0)
    assert not await world.a.mute_heartbeat(NEVER, None)
    assert not await world.a.wake_heartbeat(NEVER, HeartbeatRunKind.EVENT, now=T0)
    assert await manual(world.a, NEVER) is None
    assert await claim(world.a, NEVER) == []
    assert await world.a.heartbeats() == []


# ---------------------------------------------------------------------------- claims


async def test_a_claim_tells_what_the_heartbeat_run_has_to_know(world: World) -> None:
    before = await planned(world.a)
    (run,) = ids = fresh(1)
    (claimed,) = await world.a.claim_heartbeats(A, [AGENT], now=at(2.5), ids=ids, wakes=0)
    after = replace(before, next_at=at(1800), began_at=at(2.5), heartbeat_run=run, node=A)
    due = (run, AGENT, HeartbeatRunKind.INTERVAL, T0, at(2.5))
    assert claimed == HeartbeatClaim(*due, at(1800), after)
    assert await running_heartbeat(world.b) == after
    stored = HeartbeatRun(*due, HeartbeatRunStatus.RUNNING, node=A)
    assert await world.b.heartbeat_run(run) == stored


async def test_times_that_were_missed_give_one_heartbeat_run(world: World) -> None:
    """HB-1: also one that is given back answers what was due meanwhile."""
    await planned(world.a)
    claimed = await claim_one(world.a, now=at(10 * 1800 + 5))
    assert (claimed.due_at, claimed.next_at) == (T0, at(11 * 1800))
    await world.a.release_heartbeats([claimed.id], node=A)
    late = at(15 * 1800 + 1)
    again = await claim_one(world.b, node=B, now=late)
    assert (again.id, again.next_at) == (claimed.id, at(16 * 1800))
    await world.b.end_heartbeat_run(ended(again), node=B)
    assert await claim(world.b, AGENT, node=B, now=late) == []


async def test_what_is_due_is_claimed_the_longest_due_first(world: World) -> None:
    """Only of agents that are named: a process does not know those of others."""
    for second, agent in ((3, CLEO), (1, ANNA), (2, BERT), (0, NEVER)):
        await planned(world.a, agent, now=at(second))
    agents = (BERT, CLEO, ANNA)
    assert await world.a.next_heartbeat_due([]) is None
    assert await world.a.next_heartbeat_due(agents) == at(1)
    assert await claim(world.a, *agents, now=at(0.5)) == []
    assert [one.agent for one in await claim(world.a, *agents, now=at(9), limit=2)] == [ANNA, BERT]
    assert await world.a.next_heartbeat_due([BERT]) is None
    assert [one.agent for one in await claim(world.b, *agents, node=B, now=at(9))] == [CLEO]
    assert await claim(world.a, *agents, now=at(9)) == []


async def test_a_heartbeat_has_one_heartbeat_run_at_a_time(world: World) -> None:
    await planned(world.a, interval=timedelta(seconds=1))
    claimed = await claim_one(world.a)
    await world.a.wake_heartbeat(AGENT, HeartbeatRunKind.EVENT, now=at(1))
    assert await claim(world.b, node=B, now=at(99)) == []
    assert await manual(world.b, node=B) is None
    assert await world.a.next_heartbeat_due([AGENT]) is None
    await end(world.a, claimed)
    assert await world.a.next_heartbeat_due([AGENT]) == at(1)


@pytest.mark.parametrize("is_due", [True, False])
async def test_a_node_that_is_not_alive_claims_nothing(world: World, *, is_due: bool) -> None:
    before = await planned(world.a)
    died_at = await recovered(world)
    now = died_at if is_due else at(-1)
    for node in (NodeId("stranger"), A):
        for call in (claim, manual):
            with pytest.raises(Fenced):
                await call(world.a, node=node, now=now)
    assert await running_heartbeat(world.a) == before
    assert await world.a.heartbeat_runs() == []


async def test_two_nodes_that_claim_at_once_never_get_the_same(world: World) -> None:
    """HB-12."""
    agents = [AgentName(f"agent {n:02}") for n in range(60)]
    await planned(world.a, *agents)
    nodes = ((world.a, A), (world.b, B)) * 5
    calls = (claim(store, *agents, node=node, limit=9) for store, node in nodes)
    claimed = [one.agent for got in await asyncio.gather(*calls) for one in got]
    assert len(set(claimed)) == len(claimed)
    rest = await claim(world.a, *agents)
    assert {*claimed, *(one.agent for one in rest)} == set(agents)
    assert len(await world.a.heartbeat_runs(limit=100)) == 60


async def test_a_thousand_that_are_due_at_once_are_claimed_and_ended_at_once(world: World) -> None:
    agents = [AgentName(f"agent {n:04}") for n in range(1000)]
    await planned(world.a, *agents)
    claimed = await claim(world.a, *agents, limit=1000)
    assert [one.agent for one in claimed] == agents
    ends = [ended(one, HeartbeatRunStatus.SKIPPED) for one in claimed]
    await asyncio.gather(*(world.a.end_heartbeat_run(end, node=A) for end in ends))
    assert {one.heartbeat_run for one in await world.a.heartbeats()} == {None}


# ---------------------------------------------------------------------------- notices


async def test_whatever_makes_a_heartbeat_run_due_is_noticed(world: World) -> None:
    """DB-3."""
    heard = listen(world.b)
    await planned(world.a)
    await until(heard.expect(Notice.CRON))
    claimed = await claim_one(world.a)

    async def give_back() -> None:
        await world.a.release_heartbeats([(await claim_one(world.a, now=at(99))).id], node=A)

    for change in (
        world.a.switch_heartbeat(AGENT, on=False, now=T0),
        world.a.switch_heartbeat(AGENT, on=True, now=T0),
        world.a.wake_heartbeat(AGENT, HeartbeatRunKind.EVENT, now=at(1)),
        end(world.a, claimed),
        give_back(),
    ):
        heard.clear()
        await change
        await until(heard.expect(Notice.CRON))


async def test_a_heartbeat_run_that_was_deferred_says_so_until_its_run_begins(world: World) -> None:
    """HB-4: one row. Only who has it in hand defers it."""
    await planned(world.a)
    claimed = await claim_one(world.a)
    with pytest.raises(Fenced):
        await world.b.defer_heartbeat(claimed.id, node=B, detail="")
    await world.a.defer_heartbeat(claimed.id, node=A, detail="somebody talks to it")
    row = await row_of(world.b, claimed.id)
    assert (row.status, row.node) == (HeartbeatRunStatus.DEFERRED, A)
    assert row.detail == "somebody talks to it"
    await world.a.begin_run(run_for("r", claimed), node=A)
    row = await row_of(world.b, claimed.id)
    assert (row.status, row.detail) == (HeartbeatRunStatus.RUNNING, "")
    await end(world.a, claimed)
    for heartbeat_run in (claimed.id, HeartbeatRunId("unknown")):
        with pytest.raises(Fenced):
            await world.a.defer_heartbeat(heartbeat_run, node=A, detail="")
    assert (await row_of(world.a, claimed.id)).status is HeartbeatRunStatus.OK


# ----------------------------------------------- heartbeat runs that somebody asks for (SPEC HB-11)


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


# ---------------------------------------- heartbeat runs whose process went away (SPEC HB-4, HB-12)


SPENT = Usage(1, 10, 2, 1, Decimal("0.5"))


async def left(world: World) -> datetime:
    await world.a.leave(A, now=at(12))
    return at(12)


async def returned(world: World) -> datetime:
    await world.a.release_heartbeats([row.id for row in await world.a.heartbeat_runs()], node=A)
    return at(12)


@pytest.mark.parametrize("let_go", [recovered, left, returned])
async def test_what_is_released_goes_on_in_its_row(
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


async def test_what_a_shutdown_interrupted_is_not_lost_when_its_next_process_dies(
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
async def test_only_what_a_node_has_claimed_is_released(world: World, by: str) -> None:
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
