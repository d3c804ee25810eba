"""Forgetting on PostgreSQL: how it asks, and who waits (SPEC DB-5)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.model.ids import SessionKey
from goclaw_py.model.outcomes import Outcome
from goclaw_py.ports.store import RetentionReport
from goclaw_py.store import upkeep_rules
from goclaw_py.store.postgres import connection
from tests.support.postgres import Database
from tests.support.stores import (
    ANN,
    PATIENCE_S,
    T0,
    A,
    World,
    an_id,
    at,
    end,
    inbox,
    new_run,
    pairing,
    say,
    world_on,
)

pytestmark = pytest.mark.real_time

YEARS = T0 + timedelta(days=1000)


async def filled(world: World) -> None:
    """Two of everything, too old."""
    for number in (1, 2):
        await world.a.accept(
            [inbox(number, outcome=Outcome.COMPLETED)],
            node=A,
            now=T0,
            pairings=[pairing(str(number), "code")],
        )
        await world.put(say("hello"))
        await world.a.mark_sent(await world.claimed(), "id", now=T0)
        run = replace(
            new_run(f"r{number}", started_at=at(number)),
            session=SessionKey(f"agent:main:heartbeat:{an_id(number)}"),
        )
        await world.a.begin_run(run, node=A)
        await world.a.finish_run(end(f"r{number}"), node=A)
    await world.a.leave(A, now=T0)


@pytest.mark.parametrize(
    ("table", "first", "name"),
    [
        ("inbox", "id = (select min(id) from inbox)", "sweep_inbox"),
        ("outbox", "id = (select min(id) from outbox where state = 'sent')", "sweep_outbox"),
        ("runs", "id = 'r1'", "sweep_runs"),
        ("sessions", f"key like '%{an_id(1)}'", "sweep_sessions"),
        ("pairing_requests", "sender_id = '1'", "sweep_requests"),
    ],
)
async def test_what_somebody_else_works_on_is_passed_over(
    postgres_database: Database, table: str, first: str, name: str
) -> None:
    async with world_on(postgres_database) as world:
        await filled(world)
        async with connection(postgres_database.address) as direct, asyncio.timeout(PATIENCE_S):
            async with direct.transaction():
                await direct.fetch(f"select from {table} where {first} for update")
                assert await rows_of(world, name) == 1
            assert await rows_of(world, name) == 1
            assert await rows_of(world, name) == 0


async def rows_of(world: World, name: str) -> int:
    swept = await getattr(world.b, name)(now=YEARS)
    return swept.rows if isinstance(swept, RetentionReport) else swept


async def test_several_processes_forget_together_what_one_would(
    postgres_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_rules, "MOST_SWEPT", 7)
    async with world_on(postgres_database) as world:
        for number in range(100):
            await world.a.accept([inbox(number, outcome=Outcome.COMPLETED)], node=A, now=at(number))

        async def one_pass(store_number: int) -> int:
            store, gone, after = (world.a, world.b)[store_number % 2], 0, 0
            while True:
                swept = await store.sweep_inbox(now=YEARS, after=after)
                gone += swept.rows
                if swept.after is None:
                    return gone
                after = swept.after

        gone = await asyncio.gather(*map(one_pass, range(4)))
        assert sum(gone) == 100
        fresh = await world.a.accept([inbox("new", ANN)], node=A, now=T0)
        assert [row.message.external_id for row in fresh.rows] == ["100:new"]
