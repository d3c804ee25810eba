"""What every store promises about ends of heartbeat runs, and whose they are (SPEC HB-9, HB-12)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from goclaw_py.core.errors import Fenced
from goclaw_py.core.ids import AgentName, HeartbeatRunId, RunId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import HeartbeatRunKind, Outcome, Trigger
from goclaw_py.core.run_events import Usage
from goclaw_py.schedule.heartbeat.models import (
    HeartbeatClaim,
    HeartbeatRun,
    HeartbeatRunEnd,
    HeartbeatRunStatus,
    Skip,
)
from goclaw_py.store import heartbeat_rules as heartbeat_run_rules
from tests.support.store_heartbeats import (
    HALF_HOUR,
    a_heartbeat_run,
    alert,
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
from tests.support.stores import AGENT, T0, A, B, World, at, new_run, ran, say

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

THREAD = Target("telegram", "default", "100", "7")
SPENT = Usage(1, 10, 2, 1, Decimal("0.5"))

End = Callable[[World, HeartbeatRunEnd], Awaitable[None]]


async def alone(world: World, last: HeartbeatRunEnd) -> None:
    await world.a.end_heartbeat_run(last, node=A)


async def with_words(world: World, last: HeartbeatRunEnd) -> None:
    await world.a.end_heartbeat_run(last, [], node=A)


async def with_a_run(world: World, last: HeartbeatRunEnd) -> None:
    session = SessionKey(f"agent:{last.agent}:heartbeat")
    begun = replace(new_run(f"run of {last.id}"), session=session, heartbeat_run=last.id)
    if not await world.a.find_run(begun.id):
        await world.a.begin_run(begun, node=A)
    await world.a.finish_run(run_end(begun.id, last), node=A)


@pytest.fixture(params=[alone, with_words, with_a_run])
def finish(request: pytest.FixtureRequest) -> End:
    """All ways to end a heartbeat run."""
    chosen: End = request.param
    return chosen


async def said(world: World) -> list[str]:
    return [row.message.text for row in await world.b.outbox()]


async def test_the_log_keeps_how_a_heartbeat_run_ended(world: World, finish: End) -> None:
    """HB-9."""
    await planned(world.a)
    claimed = await claim_one(world.a)
    told = {
        "detail": "nobody has ever spoken to it",
        "reply": "The pump is off.",
        "target": THREAD,
        "started_at": at(1),
        "attempts": 2,
        "usage": SPENT,
    }
    last = ended(claimed, HeartbeatRunStatus.NO_ROUTE, now=at(9))
    await finish(world, replace(last, **told))  # type: ignore[arg-type]
    row = await row_of(world.b, claimed.id)
    stored = HeartbeatRun(claimed.id, AGENT, HeartbeatRunKind.INTERVAL, T0, T0, last.status)
    assert replace(row, runs=()) == replace(stored, finished_at=at(9), **told)  # type: ignore[arg-type]
    heartbeat = await running_heartbeat(world.b)
    assert (heartbeat.heartbeat_run, heartbeat.node, heartbeat.next_at) == (None, None, at(1800))


async def test_a_heartbeat_run_that_has_ended_stays_as_it_is(world: World, finish: End) -> None:
    """One that nobody keeps counts as ended."""
    await planned(world.a)
    gone = HeartbeatRunEnd(HeartbeatRunId("gone"), AGENT, HeartbeatRunStatus.OK, T0)
    await alone(world, gone)
    assert await world.a.heartbeat_runs() == []
    claimed = await claim_one(world.a)
    await finish(world, ended(claimed, HeartbeatRunStatus.OK))
    again = replace(ended(claimed, HeartbeatRunStatus.FAILED), failed=True)
    for end_it in (finish, alone):
        await end_it(world, again)
    assert (await row_of(world.b, claimed.id)).status is HeartbeatRunStatus.OK
    assert (await running_heartbeat(world.b)).failures == 0


async def test_failures_in_a_row_are_kept_forgotten_or_counted(world: World, finish: End) -> None:
    """HB-10."""
    await planned(world.a)
    for failed, failures in ((True, 1), (True, 2), (None, 2), (True, 3), (False, 0)):
        last = ended(await by_hand(world.a), HeartbeatRunStatus.FAILED)
        await finish(world, replace(last, failed=failed))
        assert (await running_heartbeat(world.b)).failures == failures


async def test_another_nodes_heartbeat_run_is_not_ended_nor_anything_with_it(
    world: World, finish: End
) -> None:
    """HB-12."""
    agents = [AgentName(name) for name in ("mine", "other")]
    await planned(world.a, *agents)
    mine = await claim_one(world.a, agents[0])
    other = await claim_one(world.b, agents[1], node=B)
    with pytest.raises(Fenced):
        await finish(world, ended(other))
    assert {row.status for row in await world.a.heartbeat_runs()} == {HeartbeatRunStatus.RUNNING}
    assert [one.heartbeat_run for one in await world.a.heartbeats()] == [mine.id, other.id]


async def test_a_heartbeat_run_that_was_released_is_nobodys(world: World) -> None:
    await planned(world.a)
    claimed = await claim_one(world.a)
    await world.a.release_heartbeats([claimed.id], node=A)
    for end_it in (alone, with_words):
        with pytest.raises(Fenced):
            await end_it(world, ended(claimed))
    assert (await row_of(world.a, claimed.id)).status is HeartbeatRunStatus.DEFERRED


async def test_what_is_said_of_a_heartbeat_run_names_it(world: World) -> None:
    await planned(world.a)
    first = await claim_one(world.a)
    await world.a.end_heartbeat_run(ended(first), [alert("pump", "k")], node=A)
    second = await by_hand(world.a)
    last = replace(run_end("r", ended(second)), say=(say("tank"),))
    await ran(world, run_for("r", second), last)
    rows = (await world.b.outbox())[::-1]
    said = [(row.message.heartbeat_run, row.message.alert, row.created_at) for row in rows]
    assert said == [(first.id, "k", T0), (second.id, "", at(9))]


async def test_what_is_said_of_a_heartbeat_run_that_has_ended_falls_out(world: World) -> None:
    await planned(world.a)
    claimed = await claim_one(world.a)
    await world.a.begin_run(run_for("r", claimed), node=A)
    for text in ("first", "again"):
        await world.a.end_heartbeat_run(ended(claimed), [say(text)], node=A)
    late = replace(run_end("r", ended(claimed, HeartbeatRunStatus.FAILED)), say=(say("late"),))
    for _ in range(2):
        await world.a.finish_run(late, node=A)
    assert await said(world) == ["first"]
    assert [run.outcome for run in await world.a.runs()] == [Outcome.COMPLETED]


async def test_of_two_runs_that_end_a_heartbeat_run_at_once_one_speaks(world: World) -> None:
    await planned(world.a)
    claimed = await claim_one(world.a)
    ends = []
    for name in ("r0", "r1"):
        await world.a.begin_run(run_for(name, claimed), node=A)
        last = replace(ended(claimed), reply=name)
        ends.append(replace(run_end(name, last), say=(say(name),)))
    await asyncio.gather(*(world.a.finish_run(one, node=A) for one in ends))
    assert await said(world) == [(await row_of(world.a, claimed.id)).reply]


async def test_a_heartbeat_run_has_its_runs_and_used_what_they_used(world: World) -> None:
    """HB-10, HB-12: retries are paid for too, and its session pays for its subagents."""
    await planned(world.a)
    claimed = await claim_one(world.a)
    spent = [SPENT, None, Usage(2, 20, 3, 0, Decimal("0.25"))]
    for n, usage in enumerate(spent):
        mine = run_for(f"r{n}", claimed, started_at=at(n + 1))
        await world.a.begin_run(mine, node=A)
        assert (await row_of(world.b, claimed.id)).started_at == at(1)
        if n == 1:
            child = replace(mine, id=RunId("c"), session=SessionKey("agent:main:subagent:c"))
            child = replace(child, trigger=Trigger.SUBAGENT, parent=mine.id, payer=mine.session)
            await ran(world, replace(child, heartbeat_run=None), replace(run_end("c"), usage=SPENT))
        last = ended(claimed) if n == 2 else None
        await world.a.finish_run(replace(run_end(f"r{n}", last), usage=usage), node=A)
    row = await row_of(world.b, claimed.id)
    assert row.runs == (RunId("r0"), RunId("r1"), RunId("r2"))
    assert (row.started_at, row.usage) == (at(1), Usage(4, 40, 7, 2, Decimal("1.25")))


async def test_a_heartbeat_run_answers_what_was_due_when_it_was_decided(world: World) -> None:
    """HB-4: one that waited for its agent until the next was due is that one too."""
    await planned(world.a)
    for due, noted, over, following in ((0, 1801, 1809, 3600), (3600, None, 5409, 5400)):
        claimed = await claim_one(world.a, now=at(due))
        last = replace(ended(claimed, now=at(over)), noted_at=None if noted is None else at(noted))
        await alone(world, last)
        assert (await running_heartbeat(world.b)).next_at == at(following)


async def test_a_heartbeat_run_further_ahead_than_any_can_be_is_planned_again(world: World) -> None:
    """HB-1: a clock was wrong when it was written."""
    await planned(world.a)
    far = T0 + timedelta(days=2000)
    await end(world.a, await claim_one(world.a, now=far))
    assert (await running_heartbeat(world.a)).next_at == far + HALF_HOUR
    await planned(world.a, now=at(1))
    assert (await running_heartbeat(world.b)).next_at == T0 + HALF_HOUR


async def test_whoever_plans_late_lets_no_point_be_beaten_twice(world: World) -> None:
    """HB-12: a process that had to wait for the row brings the time at which it began to wait."""
    await planned(world.a)
    await end(world.a, await claim_one(world.a, now=T0))
    await planned(world.b, now=at(-1))
    assert (await running_heartbeat(world.b)).next_at == T0 + HALF_HOUR


async def by_its_end(world: World, claimed: HeartbeatClaim) -> None:
    await end(world.a, claimed)


async def by_giving_back(world: World, claimed: HeartbeatClaim) -> None:
    await world.a.release_heartbeats([claimed.id], node=A)


async def by_another_claim(world: World, claimed: HeartbeatClaim) -> None:
    await by_giving_back(world, claimed)
    await claim_one(world.b, node=B)


@pytest.mark.parametrize("lose", [by_its_end, by_giving_back, by_another_claim])
async def test_no_run_begins_for_a_heartbeat_run_that_is_not_its_nodes(
    world: World, lose: Callable[[World, HeartbeatClaim], Awaitable[None]]
) -> None:
    """HB-12; nor does it make a session."""
    await planned(world.a)
    claimed = await claim_one(world.a)
    await lose(world, claimed)
    run = run_for("r", claimed)
    for one in (run, replace(run, heartbeat_run=HeartbeatRunId("unknown"))):
        with pytest.raises(Fenced):
            await world.a.begin_run(one, node=A)
    assert await world.a.runs() == []
    assert await world.a.session(run.session) is None


async def test_of_runs_that_begin_at_once_the_late_ones_are_refused(world: World) -> None:
    agents = [AgentName(f"agent {n}") for n in range(9)]
    await planned(world.a, *agents)
    claimed = await claim(world.a, *agents)
    for one in claimed[::2]:
        await end(world.a, one)
    calls = [world.a.begin_run(run_for(f"r{n}", one), node=A) for n, one in enumerate(claimed)]
    got = await asyncio.gather(*calls, return_exceptions=True)
    assert [isinstance(one, Fenced) for one in got] == [n % 2 == 0 for n in range(9)]
    assert len(await world.a.runs()) == 4


async def test_the_log_is_read_by_outcome_as_it_is_shown(world: World) -> None:
    """HB-9."""
    await planned(world.a)
    ok = (await a_heartbeat_run(world.a, now=at(1))).id
    skipped = []
    for n, skip in enumerate([Skip.EMPTY, Skip.QUIET_HOURS]):
        claimed = await by_hand(world.a, now=at(n + 2))
        await alone(world, replace(ended(claimed, HeartbeatRunStatus.SKIPPED), skip=skip))
        skipped.append(claimed.id)

    async def found(outcome: str | None, limit: int = 50) -> list[HeartbeatRunId]:
        return [row.id for row in await world.b.heartbeat_runs(AGENT, limit=limit, outcome=outcome)]

    empty, quiet = skipped
    assert await found(None) == [quiet, empty, ok]
    assert await found(None, 2) == [quiet, empty]
    assert await found("ok") == [ok]
    assert await found("skipped") == [quiet, empty]
    assert await found("skipped:empty") == [empty]
    for nothing in ("skipped:", "skipped:budget", "alerted", "delivery_failed", "what\0", ""):
        assert await found(nothing) == []
    assert await world.b.heartbeat_runs(AgentName("other")) == []


async def test_the_log_of_each_agent_keeps_the_newest_thousand(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for what counts for budgets. So many take too long here."""
    assert heartbeat_run_rules.KEPT_ROWS == 1000
    monkeypatch.setattr(heartbeat_run_rules, "KEPT_ROWS", 10)
    other = AgentName("other")
    await planned(world.a, AGENT, other)
    old = await a_heartbeat_run(world.a, now=T0)
    paid = await by_hand(world.a, now=at(1))
    await alone(world, replace(ended(paid), usage=SPENT))
    kept = await a_heartbeat_run(world.a, agent=other, now=at(3))
    for n in range(11):
        await a_heartbeat_run(world.a, HeartbeatRunStatus.SKIPPED, now=at(n + 10))
    ids = [row.id for row in await world.a.heartbeat_runs(AGENT, limit=100)]
    assert len(ids) == 11
    assert (paid.id in ids, old.id in ids) == (True, False)
    assert [row.id for row in await world.a.heartbeat_runs(other)] == [kept.id]
