"""Who meets whom on PostgreSQL: nobody waits for each other for ever, and each is first or last."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.core.errors import Fenced
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.records import InboxKind, InboxRow, NewRun, RetentionReport, Stops
from goclaw_py.store import upkeep_rules
from goclaw_py.store.postgres import PostgresStore, connection
from tests.integration.postgres_work import until_somebody_waits
from tests.support.postgres import Database
from tests.support.store_heartbeats import claim, claim_one, planned, running_heartbeat
from tests.support.stores import (
    AGENT,
    ANN,
    PATIENCE_S,
    T0,
    A,
    B,
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


async def test_to_claim_what_is_not_due_writes_nothing(
    store: PostgresStore, postgres_database: Database
) -> None:
    await planned(store, now=at(60))
    async with connection(postgres_database.address) as direct:
        before = await direct.row("select txid_current()")
        assert await claim(store) == []
        after = await direct.row("select txid_current()")
    assert before is not None
    assert after is not None
    # This connection used one number itself; nobody else took one.
    assert after["txid_current"] - before["txid_current"] == 1


async def test_who_claims_while_others_do_does_not_wait_for_them(
    store: PostgresStore, postgres_database: Database
) -> None:
    """A hung process delays nobody."""
    other = AgentName("other")
    await planned(store, AGENT, other)
    async with connection(postgres_database.address) as hung, hung.transaction():
        await hung.fetch("select from heartbeats where agent = $1 for update", AGENT)
        async with asyncio.timeout(PATIENCE_S):
            claimed = await claim(store, AGENT, other)
    assert [one.agent for one in claimed] == [other]
    assert (await claim_one(store)).agent == AGENT


async def test_a_node_that_is_being_recovered_claims_nothing(
    store: PostgresStore, postgres_database: Database
) -> None:
    """It finds itself dead when it gets its turn."""
    await planned(store)
    async with connection(postgres_database.address) as other:
        async with other.transaction():
            await other.fetch("select from nodes where id = $1 for update", A)
            claiming = asyncio.create_task(claim(store))
            await until_somebody_waits(postgres_database)
            await other.fetch("delete from nodes")
        (answer,) = await asyncio.gather(claiming, return_exceptions=True)
    assert type(answer).__name__ == "Fenced"
    assert (await running_heartbeat(store)).heartbeat_run is None


async def test_a_draft_that_is_opened_twice_at_once_is_opened_once(
    postgres_database: Database,
) -> None:
    async with (
        world_on(postgres_database) as world,
        connection(postgres_database.address) as other,
    ):
        await world.a.begin_run(new_run("r"), node=A)
        async with other.transaction():
            await other.fetch("select from runs where id = 'r' for share")
            opening = [
                asyncio.create_task(store.open_draft(RunId("r"), ANN, now=T0))
                for store in (world.a, world.b)
            ]
            await until_somebody_waits(postgres_database, 2)
        await asyncio.gather(*opening)
        assert [draft.run_id for draft in await world.a.drafts()] == ["r"]


@pytest.mark.parametrize("owner", ["null", f"'{B}'"])
async def test_a_message_does_not_overtake_one_that_is_stored_meanwhile(
    postgres_database: Database, owner: str
) -> None:
    """A session that has just changed is no longer the free one that was seen."""
    async with (
        world_on(postgres_database) as world,
        connection(postgres_database.address) as other,
    ):
        (first,) = await world.accept(ANN)
        await world.a.settle([first.id], Outcome.COMPLETED, now=T0)
        await world.a.release_sessions(A, [first.session])
        async with other.transaction():
            await other.fetch(f"update sessions set owner = {owner}")
            accepting = asyncio.create_task(world.accept(ANN))
            await until_somebody_waits(postgres_database)
            again = "update inbox set state = 'pending', finished_at = null, outcome = null"
            await other.fetch(again)
        assert await accepting == []
        await other.fetch("update sessions set owner = null")
        rows = await world.a.claim_pending(A, now=T0, places=[("telegram", "default")])
        assert [row.id for row in rows] == [first.id, rows[-1].id]
        assert rows[-1].id > first.id


CHATS = 12
EACH = 3


def chat(number: int) -> Target:
    return Target("telegram", "default", str(1000 + number))


async def with_drafts(world: World, rows: list[InboxRow], name: str) -> None:
    """Each message has been worked on, and a draft is left for it."""
    runs = [new_run(f"{name} {row.id}", row, target=row.message.target) for row in rows]
    await asyncio.gather(*(world.a.begin_run(run, node=A) for run in runs))
    for run in runs:
        await world.a.open_draft(run.id, run.target or chat(0), now=T0)
        await world.a.draft_posted(run.id, f"draft of {run.id}")
    cut = (end(run.id, Outcome.INTERRUPTED) for run in runs)
    await asyncio.gather(*(world.a.finish_run(one, node=A) for one in cut))


async def stopped(
    world: World, how: str, rows: list[InboxRow], number: str, after_s: float
) -> None:
    """Somebody stops all of a chat."""
    await asyncio.sleep(after_s)
    if how == "settle":
        ids = [row.id for row in rows]
        await world.b.settle(ids, Outcome.CANCELLED, now=T0, reason=Reason.STOPPED_ALL)
        return
    stop = inbox(number, rows[0].message.target, kind=InboxKind.COMMAND, outcome=Outcome.COMPLETED)
    if how == "a stop that comes again":
        await world.a.accept([stop], node=A, now=T0)
    names = tuple(row.message.external_id for row in rows)
    await world.b.accept([replace(stop, stops=Stops(names, Reason.STOPPED_ALL))], node=A, now=T0)


async def begin_and_end(world: World, run: NewRun, after_s: float) -> None:
    await asyncio.sleep(after_s)
    with suppress(Fenced):  # all that it would answer was stopped before
        await world.a.begin_run(run, node=A)
        await world.a.finish_run(end(run.id, Outcome.CANCELLED), node=A)


@pytest.mark.parametrize("how", ["settle", "a stop", "a stop that comes again"])
async def test_whatever_meets_in_a_chat_goes_on(postgres_database: Database, how: str) -> None:
    """A deadlock would end one of them with an error."""
    chance = random.Random(how)
    async with world_on(postgres_database) as world:
        for turn in range(6):
            rows = await world.accept(*(chat(n) for n in range(CHATS) for _ in range(EACH)))
            await with_drafts(world, rows, f"first {turn}")
            runs = [new_run(f"{turn} {row.id}", row, target=row.message.target) for row in rows]
            chance.shuffle(runs)
            of_chats = [rows[at : at + EACH] for at in range(0, len(rows), EACH)]
            await asyncio.gather(
                *(begin_and_end(world, run, chance.random() / 100) for run in runs),
                *(
                    stopped(world, how, mine, f"stop {turn}", chance.random() / 100)
                    for mine in of_chats
                ),
            )
            assert await world.a.drafts() == []
