"""Forgetting on PostgreSQL: how it asks, and who waits (SPEC DB-5)."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.model.ids import SessionKey
from goclaw_py.model.outcomes import Outcome
from goclaw_py.ports.store import RetentionReport
from goclaw_py.store import upkeep_rules
from goclaw_py.store.postgres import connection
from goclaw_py.store.sql import queries
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

MANY = """
with n as (select generate_series(1, 20000) as n)
insert into sessions (key, agent, created_at, last_active_at)
select
    case n % 40
        when 0 then 'agent:main:cron:' || gen_random_uuid() || ':' || gen_random_uuid()
        when 1 then 'agent:main:cron:' || gen_random_uuid()
        else 'agent:main:telegram:direct:' || n
    end, 'main', 'epoch', timestamptz 'epoch' + n * interval '1 min'
from n;
with n as (select generate_series(1, 20000) as n)
insert into history (session, epoch, role, text, at)
select key, 0, 'user', 'x', 'epoch' from sessions;
with n as (select generate_series(1, 20000) as n)
insert into inbox (
    channel, account, external_id, session, agent, kind, state, message, received_at, finished_at,
    outcome, run_id
)
select
    'c', 'a', n::text, 's' || n, 'x', 'message', 'done', '{}',
    timestamptz 'epoch' + n * interval '1 min', timestamptz 'epoch' + n * interval '1 min',
    'completed', 'r' || n
from n;
with n as (select generate_series(1, 20000) as n)
insert into outbox (
    channel, account, chat, message, state, created_at, next_attempt_at, finished_at, occurrence
)
select
    'c', 'a', 'k', '{}', 'sent', timestamptz 'epoch' + n * interval '1 min', 'epoch',
    timestamptz 'epoch' + n * interval '1 min', 'o' || n
from n;
with n as (select generate_series(1, 20000) as n)
insert into runs (
    id, session, agent, trigger, lane, node, fence, epoch, model, started_at, finished_at, outcome,
    occurrence, heartbeat_run
)
select
    'r' || n, 's' || n % 99, 'x', 'cron', 'cron', 'n', 1, 0, '',
    timestamptz 'epoch' + n * interval '1 min', timestamptz 'epoch' + n * interval '1 min',
    'completed', 'o' || n, 'b' || n
from n;
with n as (select generate_series(1, 20000) as n)
insert into job_runs (
    id, job, slug, owner, scheduled_at, claimed_at, finished_at, status, definition
)
select 'o' || n, 'j' || n % 99, 's', 'o', 'epoch', 'epoch', 'epoch', 'ok', '{}' from n;
with n as (select generate_series(1, 20000) as n)
insert into heartbeat_runs (id, agent, kind, due_at, claimed_at, finished_at, status)
select 'b' || n, 'main', 'interval', 'epoch', 'epoch', 'epoch', 'ok' from n;
with n as (select generate_series(1, 20000) as n)
insert into cron_jobs (
    id, owner, slug, name, search_text, agent, kind, spec, maker, notify, state, revision,
    created_at, updated_at
)
select
    'j' || n, 'o', 's' || n, '', '', 'x', 'every', '{}', 'person', 'always', 'active', 1, 'epoch',
    'epoch'
from n;
"""
TABLES = (
    "sessions",
    "history",
    "inbox",
    "outbox",
    "runs",
    "job_runs",
    "heartbeat_runs",
    "cron_jobs",
)


@pytest.mark.parametrize("known", [True, False], ids=["analyzed", "without statistics"])
async def test_no_step_reads_a_whole_table(postgres_database: Database, *, known: bool) -> None:
    """Each plan is made for any values, as the store's connections make it."""
    index = {
        "sweep_inbox": "using inbox_pkey",
        "sweep_outbox": "using outbox_pkey",
        "sweep_runs": "using runs_newest",
        "lock_idle_sessions": "sessions_passing",
        "forget_history": "history_of_session",
        "forget_sessions": "sessions_pkey",
    }
    async with connection(postgres_database.address) as direct:
        await direct.script("set plan_cache_mode = force_generic_plan")
        await direct.script(MANY)
        if known:
            await direct.script("analyze")
        for name, query in queries("upkeep").items():
            numbers = re.findall(r"\$(\d+)", query)
            await direct.script(f"prepare {name} as {query}")
            values = ", ".join(["null"] * max(map(int, numbers)))
            plan = await direct.fetch(f"explain execute {name}({values})")
            lines = "\n".join(row["QUERY PLAN"] for row in plan)
            for table in TABLES:
                assert f"Seq Scan on {table}" not in lines, (name, lines)
            assert index.get(name, "") in lines, (name, lines)


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
