"""Heartbeats on PostgreSQL: how it asks, and who meets whom (SPEC HB-12)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest

from goclaw_py.model.ids import AgentName
from goclaw_py.store.postgres import PostgresStore, connection
from goclaw_py.store.sql import queries
from tests.support.postgres import Database
from tests.support.store_heartbeats import claim, claim_one, planned, running_heartbeat
from tests.support.stores import AGENT, PATIENCE_S, A, a_node, at

pytestmark = pytest.mark.real_time

MANY = """
insert into heartbeats (agent, interval_us, anchor, next_at, began_at)
select 'agent' || n, 1000000, 'epoch', timestamptz 'epoch' + n * interval '1 s', 'epoch'
from generate_series(1, 1000) as n;
insert into heartbeat_runs (id, agent, kind, due_at, claimed_at, finished_at, status)
select
    'b' || n, 'agent' || n % 99, 'interval', 'epoch', timestamptz 'epoch' + n * interval '1 s',
    'epoch', (array['ok', 'alerted', 'skipped'])[n % 3 + 1]
from generate_series(1, 20000) as n;
insert into heartbeat_events (agent, text, at)
select 'agent' || n, 'x', 'epoch' from generate_series(1, 20000) as n;
insert into heartbeat_items (agent, key, done_at)
select 'agent' || n % 999, n::text, 'epoch' from generate_series(1, 20000) as n;
insert into runs (
    id, session, agent, trigger, lane, node, fence, epoch, model, started_at, finished_at, outcome,
    heartbeat_run
)
select
    'r' || n, 's' || n % 99, 'agent' || n % 9, (array['chat', 'heartbeat'])[n % 2 + 1], 'cron', 'n',
    1, 0, '', 'epoch', 'epoch', 'completed', case n % 2 when 1 then 'b' || n end
from generate_series(1, 20000) as n;
insert into outbox (
    channel, account, chat, message, state, created_at, next_attempt_at, finished_at, heartbeat_run,
    alert
)
select
    'c', 'a', 'k', '{}', 'sent', 'epoch', 'epoch', 'epoch', case n % 2 when 1 then 'b' || n end,
    case n % 2 when 1 then 'k' || n end
from generate_series(1, 20000) as n;
insert into inbox (
    channel, account, external_id, session, agent, kind, state, message, received_at, finished_at,
    outcome
)
select
    'c', 'a', n::text, 's' || n, 'agent' || n % 9, 'message', 'done', '{}', 'epoch', 'epoch',
    'completed'
from generate_series(1, 20000) as n;
insert into sessions (key, agent, created_at, last_active_at)
select 's' || n, 'x', 'epoch', 'epoch' from generate_series(1, 20000) as n;
"""

LARGE = ("heartbeat_runs", "heartbeat_events", "runs", "outbox", "inbox", "sessions")


@pytest.mark.parametrize("known", [True, False], ids=["analyzed", "without statistics"])
async def test_no_statement_about_few_heartbeat_runs_reads_all_of_them(
    postgres_database: Database, *, known: bool
) -> None:
    """Each plan is made for any values, as the store's connections make it.

    A chat moves once in its life; then the log is read.
    """
    named = {
        "heartbeat_runs": set(queries("heartbeat_runs")) - {"retarget"},
        "runs": {"begin", "finish", "lock_sessions_of_runs", "lost_heartbeat_runs"},
    }
    async with connection(postgres_database.address) as direct:
        await direct.script("set plan_cache_mode = force_generic_plan")
        await direct.script(MANY)
        if known:
            await direct.script("analyze")
        for file, names in named.items():
            for name in sorted(names):
                query = queries(file)[name]
                numbers = [int(number) for number in re.findall(r"\$(\d+)", query)]
                values = f"({', '.join(['null'] * max(numbers))})" if numbers else ""
                await direct.script(f"prepare {file}_{name} as {query}")
                plan = await direct.fetch(f"explain execute {file}_{name}{values}")
                lines = "\n".join(row["QUERY PLAN"] for row in plan)
                for table in LARGE:
                    assert f"Seq Scan on {table}" not in lines, (name, lines)
                if name in ("log", "sweep_log"):
                    assert "using heartbeat_runs_newest" in lines, lines
                if name == "undelivered":
                    assert "outbox_dead_alerts" in lines, lines


# ---------------------------------------------------------------------------- at the same time


@pytest.fixture
async def store(postgres_database: Database) -> AsyncIterator[PostgresStore]:
    opened = await postgres_database.open()
    await opened.join(a_node(A))
    yield opened
    await opened.close()


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
            await _until_somebody_waits(postgres_database)
            await other.fetch("delete from nodes")
        (answer,) = await asyncio.gather(claiming, return_exceptions=True)
    assert type(answer).__name__ == "Fenced"
    assert (await running_heartbeat(store)).heartbeat_run is None


async def _until_somebody_waits(database: Database) -> None:
    async with connection(database.address) as watching, asyncio.timeout(PATIENCE_S):
        while not await watching.fetch("select from pg_locks where not granted"):
            await asyncio.sleep(0.005)
