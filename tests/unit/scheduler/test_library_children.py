"""The scheduler as a library: runs that ask for runs, and those that would wait for ever.

SPEC LANE-8.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from goclaw_py import (
    Lane,
    NestingLimits,
    NotCompleted,
    Outcome,
    QueuePolicy,
    Reason,
    Run,
    RunState,
    Scheduler,
    WouldDeadlock,
)
from tests.unit.scheduler.library_parts import Calls, Text, do, forever, outcome_of, steps

Doing = Callable[[Text], Awaitable[Any]]


def says(text: str, after_s: float = 1) -> Doing:
    async def say(_run: Text) -> str:
        await asyncio.sleep(after_s)
        return text

    return say


async def test_stopping_a_run_stops_the_children_that_it_waits_for_with_it() -> None:
    children: list[Text] = []

    async def parent(run: Text) -> None:
        children.append(scheduler.submit("child", forever, parent=run, awaited=True))
        await children[0]

    async with Scheduler(do) as scheduler:
        run = scheduler.submit("ann", parent)
        await steps()
        assert scheduler.stop("ann").stopped == (run.id, children[0].id)
        assert await outcome_of(run) is Outcome.CANCELLED
        assert children[0].outcome is Outcome.CANCELLED


async def test_a_child_that_fails_fails_whoever_awaits_it() -> None:
    async def child(_run: Text) -> None:
        raise LookupError("in the child")

    async def parent(run: Text) -> None:
        await scheduler.submit("child", child, parent=run, awaited=True)

    async with Scheduler(do) as scheduler:
        with pytest.raises(LookupError, match="in the child"):
            await scheduler.submit("ann", parent)


async def test_the_parent_must_work_and_belong_to_the_same_scheduler() -> None:
    async with Scheduler(do) as scheduler, Scheduler(do) as other:
        ended = scheduler.submit("ann", says("a"))
        await ended
        orphan = scheduler.submit("bob", says("b"), parent=ended)
        assert (orphan.outcome, orphan.reason) == (Outcome.REJECTED, Reason.PARENT_ENDED)
        with pytest.raises(ValueError, match="it has another scheduler"):
            other.submit("bob", says("b"), parent=ended)
        with pytest.raises(NotCompleted, match="its parent works no more"):
            await orphan


async def test_nesting_has_a_limit() -> None:
    async def parent(run: Text) -> list[Any]:
        children = [scheduler.submit(f"c{n}", says("c"), parent=run) for n in range(3)]
        return await asyncio.gather(*children, return_exceptions=True)

    async with Scheduler(do, nesting=NestingLimits(depth=3, children=2)) as scheduler:
        result = await scheduler.submit("ann", parent)
        assert result[:2] == ["c", "c"]
        assert isinstance(result[2], NotCompleted)
        assert result[2].reason is Reason.TOO_MANY_CHILDREN


# ---------------------------------------------------------------- what would wait for ever


@pytest.mark.parametrize("waited", [False, True])
async def test_awaiting_a_run_of_its_own_session_is_refused_at_once(waited: bool) -> None:
    async def work(_run: Text) -> str:
        if waited:
            await asyncio.sleep(1)
        inner = scheduler.submit("ann", says("inner"))
        with pytest.raises(WouldDeadlock, match="awaits run 2, which cannot end before run 1 has"):
            await inner
        inners.append(inner)
        return "outer"

    inners: list[Text] = []
    async with Scheduler(do) as scheduler:
        assert await scheduler.submit("ann", work) == "outer"
        assert await inners[0] == "inner"


async def test_a_run_that_awaits_itself_is_refused() -> None:
    async def work(run: Text) -> None:
        with pytest.raises(WouldDeadlock):
            await run

    async with Scheduler(do) as scheduler:
        await scheduler.submit("ann", work)


async def test_a_run_that_awaits_what_it_has_taken_in_is_refused() -> None:
    async def work(run: Text) -> None:
        await asyncio.sleep(1)
        assert len(scheduler.steer_in(run)) == 1
        with pytest.raises(WouldDeadlock):
            await late[0]

    policy = QueuePolicy(mode="steer")  # type: ignore[arg-type]  # names become members
    async with Scheduler(do, policy=policy) as scheduler:
        run = scheduler.submit("ann", work)
        late = [scheduler.submit("ann", says("late"))]
        await run


async def waiting_in_turn(scheduler: Calls, links: list[tuple[str, str, str]]) -> list[Text]:
    """Let runs start together and then, a second apart, submit and await another one each.

    A link is the session and lane of a run, and the session of what it awaits, in its own lane.
    """

    def awaiting(delay_s: float, session: str) -> Doing:
        async def work(run: Text) -> Any:
            await asyncio.sleep(delay_s)
            return await scheduler.submit(session, says(session, 0), run.lane)

        return work

    runs = [
        scheduler.submit(session, awaiting(1 + n, awaited), name)
        for n, (session, name, awaited) in enumerate(links)
    ]
    async with asyncio.timeout(100):
        await asyncio.gather(*runs, return_exceptions=True)
    return runs


@pytest.mark.parametrize(
    "links",
    [
        pytest.param([("a", "wide", "b"), ("b", "wide", "a")], id="two sessions"),
        pytest.param(
            [("a", "wide", "b"), ("b", "wide", "c"), ("c", "wide", "a")], id="three sessions"
        ),
        pytest.param([("a", "two", "x"), ("b", "two", "y")], id="both slots of a lane"),
        pytest.param([("a", "one", "x")], id="the only slot of a lane"),
        pytest.param(
            [("a", "two", "x"), ("c", "wide", "a"), ("b", "two", "c")], id="lane and sessions"
        ),
    ],
)
async def test_only_the_run_that_would_close_a_circle_is_refused(
    links: list[tuple[str, str, str]],
) -> None:
    lanes = [Lane("one", 1), Lane("two", 2), Lane("wide", 9)]
    async with Scheduler(do, lanes) as scheduler:
        *others, last = await waiting_in_turn(scheduler, links)
    assert isinstance(last.error, WouldDeadlock)
    assert [run.outcome for run in others] == [Outcome.COMPLETED] * len(others)


async def test_a_circle_that_others_close_later_is_found_out_too() -> None:
    """A run that waited for the agent gets it, and waits for the lane of who awaits the agent."""

    async def work(_run: Text) -> str:
        behind = scheduler.submit("c", says("behind", 0), agent="writer")
        with pytest.raises(WouldDeadlock):
            await behind
        behinds.append(behind)
        return "not in vain"

    behinds: list[Text] = []
    async with Scheduler(do, [Lane("slow", 1)], agents={"writer": 1}) as scheduler:
        scheduler.submit("a", says("a", 1.5), agent="writer")
        scheduler.submit("b", says("b", 0), "slow", agent="writer")
        run = scheduler.submit("d", work, "slow")
        async with asyncio.timeout(100):
            assert await run == "not in vain"
            assert await behinds[0] == "behind"


async def test_who_gave_up_waiting_is_part_of_no_circle() -> None:
    async def impatient(_run: Text) -> str:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await scheduler.submit("b", says("b", 0))
        await asyncio.sleep(5)
        return "gave up"

    async def patient(_run: Text) -> Any:
        await asyncio.sleep(2)
        return await scheduler.submit("a", says("behind a", 0))

    async with Scheduler(do) as scheduler:
        runs = [scheduler.submit("a", impatient), scheduler.submit("b", patient)]
        assert await asyncio.gather(*runs) == ["gave up", "behind a"]


async def test_a_message_can_be_awaited_from_outside_however_much_waits() -> None:
    async with Scheduler(do, [Lane("main", 1)], policy=QueuePolicy(capacity=999)) as scheduler:
        runs = [scheduler.submit("ann", says(str(n), 0)) for n in range(500)]

        async def await_last(_run: Run[Any, Any]) -> Any:
            return await runs[-1]

        other = scheduler.submit("bob", await_last, "subagent")
        assert await other == "499"
    assert runs[0].state is RunState.DONE
