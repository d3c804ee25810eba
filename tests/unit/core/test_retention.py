"""When things are forgotten (SPEC DB-5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.core.outcomes import Outcome
from goclaw_py.records import OutboxQuery, OutboxState, RunQuery, Unmentioned
from goclaw_py.schedule.retention import FIRST_S, TIDY_S, delete_expired, run_retention
from goclaw_py.store import upkeep_rules
from goclaw_py.testing.clock import LoopClock
from tests.support.flaky_store import FlakyStore
from tests.support.stores import ANN, A, a_node, key_of, message, new_run, pairing, say
from tests.support.stores import end as end_of

OLD = timedelta(days=1000)


@asynccontextmanager
async def forgetting(store: FlakyStore) -> AsyncIterator[None]:
    task = asyncio.create_task(delete_expired(store, LoopClock(), timedelta(days=365)))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def filled(messages: int = 1) -> FlakyStore:
    """A store with a message, a run and a request for pairing, all too old."""
    store, then = FlakyStore(), LoopClock().now() - OLD
    await store.join(a_node(A))
    await store.settle((), Outcome.COMPLETED, now=then, say=[say("hello")] * messages)
    for row in await store.outbox(OutboxQuery(limit=messages)):
        await store.drop_outbox([row.id], now=then)
    await store.note_unmentioned([Unmentioned(message(1), key_of(ANN), 50)], now=then)
    await store.begin_run(new_run("r", started_at=then), node=A)
    await store.finish_run(replace(end_of("r"), finished_at=then), node=A)
    await store.accept([], node=A, now=then, pairings=[pairing("7", "code", now=then)])
    return store


async def left_in(store: FlakyStore) -> tuple[int, int, int]:
    dropped = await store.outbox(OutboxQuery(limit=1000, state=OutboxState.DROPPED))
    said = await store.unmentioned(key_of(ANN))
    return len(dropped), len(await store.runs(RunQuery(limit=1000))), len(said)


async def test_a_start_is_not_disturbed_and_a_short_life_is_long_enough() -> None:
    store = await filled()
    async with forgetting(store):
        await asyncio.sleep(FIRST_S - 1)
        assert store.calls["sweep_outbox"] == 0
        await asyncio.sleep(2)
        assert await left_in(store) == (0, 0, 0)


async def test_it_goes_on_every_hour() -> None:
    store = await filled()
    async with forgetting(store):
        await asyncio.sleep(FIRST_S + 2.5 * TIDY_S)
        assert store.calls["sweep_requests"] >= 3
        looked = store.calls["sweep_inbox"]
        await asyncio.sleep(TIDY_S)
        # With nothing to do it is one question of each kind.
        assert store.calls["sweep_inbox"] == looked + 1


async def test_one_pass_is_enough_however_much_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep_rules, "MOST_SWEPT", 3)
    store = await filled(messages=50)
    async with forgetting(store):
        await asyncio.sleep(FIRST_S + 60)
        assert await left_in(store) == (0, 0, 0)


@pytest.mark.parametrize("call", ["sweep_outbox", "sweep_runs", "sweep_requests"])
async def test_a_database_that_is_away_is_tried_again(call: str) -> None:
    store = await filled()
    store.broken.add(call)
    async with forgetting(store):
        await asyncio.sleep(FIRST_S + 60)
        assert store.calls[call] == 1
        store.broken.clear()
        await asyncio.sleep(TIDY_S)
        assert await left_in(store) == (0, 0, 0)


async def test_logs_are_swept_in_steps_until_nothing_goes() -> None:
    left, asked = [3, 2, 0, 1], 0

    async def sweep() -> int:
        nonlocal asked
        asked += 1
        return left.pop(0) if left else 0

    task = asyncio.create_task(run_retention(sweep))
    await asyncio.sleep(FIRST_S + 1)
    assert asked == 3
    await asyncio.sleep(TIDY_S)
    assert asked == 5
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
