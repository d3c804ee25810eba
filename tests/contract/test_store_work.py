"""Work that waits in the database for jobs (SPEC CRON-18). What sources do is tested there."""

from __future__ import annotations

import pytest

from goclaw_py.model.ids import JobId
from goclaw_py.ports.store import NewWork, StoredWorkItem, WorkState
from tests.support.stores import World, at

pytestmark = pytest.mark.real_time

ANN_S, BOB_S = JobId("ann's"), JobId("bob's")


async def take(
    world: World, queue: str = "q", job: JobId = ANN_S, now: float = 1
) -> StoredWorkItem | None:
    return await world.b.take_work(queue, job, now=at(now), forgotten=at(now - 100))


async def taken(
    world: World, queue: str = "q", job: JobId = ANN_S, now: float = 1
) -> StoredWorkItem:
    item = await take(world, queue, job, now)
    assert item is not None
    return item


async def test_an_item_tells_who_has_it_since_when_and_what_came_of_it(world: World) -> None:
    new = NewWork("q", "title", "body", "https://example.org/1")
    item = await world.a.add_work(new, now=at(0))
    assert (item.new, item.created_at, item.state, item.takes) == (new, at(0), WorkState.OPEN, 0)
    assert await world.b.work() == [item]
    item = await taken(world)
    assert (item.state, item.taken_by) == (WorkState.TAKEN, ANN_S)
    assert (item.taken_at, item.takes) == (at(1), 1)
    assert await world.a.work() == [item]
    assert await world.a.end_work(item.id, takes=1, ok=False, outcome="no\0t", now=at(2))
    (ended,) = await world.b.work()
    assert (ended.state, ended.ended_at, ended.outcome) == (WorkState.FAILED, at(2), "no\ufffdt")


async def test_a_job_has_one_item_for_each_line(world: World) -> None:
    await world.a.add_work(NewWork("other", "other"), now=at(0))
    assert await take(world) is None
    assert await take(world, "Other") is None
    for _ in range(2):
        await world.a.add_work(NewWork("q", "q"), now=at(0))
    first, second, again = (
        await taken(world),
        await taken(world, "other"),
        await taken(world, now=2),
    )
    assert second.new.queue == "other"
    assert (again.id, again.takes, again.taken_at) == (first.id, 2, at(2))


async def test_only_the_last_taking_of_an_item_that_is_taken_counts(world: World) -> None:
    """SPEC CRON-5: nothing else ends or returns it, and an end is an end."""
    await world.a.add_work(NewWork("q", "one"), now=at(0))
    assert not await world.a.end_work(1, takes=0, ok=True, outcome="", now=at(0))
    assert not await world.a.return_work(1, takes=0, reason="")
    await take(world)
    await take(world)
    assert not await world.a.end_work(1, takes=1, ok=True, outcome="", now=at(3))
    assert not await world.a.return_work(1, takes=1, reason="")
    assert not await world.a.end_work(99, takes=2, ok=True, outcome="", now=at(3))
    assert await world.a.return_work(1, takes=2, reason="interrupted")
    assert not await world.a.return_work(1, takes=2, reason="again")
    (item,) = await world.a.work()
    assert (item.state, item.outcome, item.ended_at) == (WorkState.OPEN, "interrupted", None)


async def test_what_was_taken_too_long_ago_is_free_in_its_old_place(world: World) -> None:
    for title in ("one", "two"):
        await world.a.add_work(NewWork("q", title), now=at(0))
    await take(world, now=1)
    assert (await taken(world, job=BOB_S, now=101)).new.title == "two", "at the limit"
    assert (await taken(world, job=JobId("c"), now=101.000001)).new.title == "one"


async def test_work_is_listed_by_line_and_state_the_oldest_first(world: World) -> None:
    for number, queue in enumerate(("q", "other", "q", "q")):
        await world.a.add_work(NewWork(queue, str(number)), now=at(0))
    await take(world)

    async def titles(queue: str | None, state: WorkState | None, limit: int = 100) -> str:
        found = await world.a.work(queue, state=state, limit=limit)
        return " ".join(item.new.title for item in found)

    assert await titles(None, None) == "0 1 2 3"
    assert await titles("q", None) == "0 2 3"
    assert await titles(None, WorkState.OPEN) == "1 2 3"
    assert await titles("q", WorkState.OPEN) == "2 3"
    assert await titles("q", WorkState.TAKEN) == "0"
    assert await titles("q", WorkState.DONE) == ""
    assert await titles(None, None, 2) == "0 1"
