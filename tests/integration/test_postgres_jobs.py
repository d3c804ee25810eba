"""Jobs on PostgreSQL: how it asks, and what fails halfway (SPEC CRON-5)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from goclaw_py.jobs.execution_models import JobUpdate, OccurrenceClaim, OccurrenceStatus
from goclaw_py.model.ids import JobId, OccurrenceId
from goclaw_py.store.postgres import PostgresStore, connection
from goclaw_py.store.postgres.pool import DatabaseError
from goclaw_py.store.sql import queries
from tests.support.postgres import Database, run_sql
from tests.support.store_jobs import (
    a_job,
    a_spec,
    added,
    claim,
    claim_manual,
    claim_one,
    ended,
    kept,
    run_end,
    run_for,
)
from tests.support.stores import ANN, APOLOGY, LEASE_S, PATIENCE_S, T0, A, B, a_node, at, say

pytestmark = pytest.mark.real_time

MANY = """
with n as (select generate_series(1, 20000) as n)
insert into cron_jobs (
    id, owner, slug, name, search_text, agent, kind, spec, maker, notify, state, revision,
    created_at, updated_at, next_run_at
)
select
    'job' || n, 'owner' || n % 999, 'slug' || n, '', 'slug' || n, 'x', 'every', '{}', 'person',
    'always', (array['paused', 'active', 'active', 'completed'])[n % 4 + 1], 1, 'epoch', 'epoch',
    timestamptz 'epoch' + n * interval '1 s'
from n;
with n as (select generate_series(1, 20000) as n)
insert into job_runs (
    id, job, slug, owner, scheduled_at, claimed_at, finished_at, status, definition
)
select
    'o' || n, 'job' || n % 99, 's', 'o', timestamptz 'epoch' + n * interval '1 s', 'epoch', 'epoch',
    'ok', '{}'
from n;
with n as (select generate_series(1, 20000) as n)
insert into runs (
    id, session, agent, trigger, lane, node, fence, epoch, model, started_at, finished_at, outcome,
    occurrence
)
select
    'r' || n, 's' || n % 99, 'x', 'cron', 'cron', 'n', 1, 0, '', 'epoch', 'epoch', 'completed',
    'o' || n
from n;
with n as (select generate_series(1, 20000) as n)
insert into outbox (
    channel, account, chat, message, state, created_at, next_attempt_at, finished_at, occurrence
)
select 'c', 'a', 'k', '{}', 'sent', 'epoch', 'epoch', 'epoch', 'o' || n from n;
with n as (select generate_series(1, 20000) as n)
insert into sessions (key, agent, created_at, last_active_at)
select 's' || n, 'x', 'epoch', 'epoch' from n;
"""


@pytest.mark.parametrize("known", [True, False], ids=["analyzed", "without statistics"])
async def test_no_statement_about_few_jobs_reads_all_of_them(
    postgres_database: Database, *, known: bool
) -> None:
    """Each plan is made for any values, as the store's connections make it."""
    named = {
        "occurrences": set(queries("occurrences")),
        "jobs": {"add", "named", "job", "lock", "with_slug", "with_id", "slugs", "rename_in_log"},
        "runs": {"begin", "enter_sessions", "lock_sessions_of_runs", "lost_times"},
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
                for table in ("cron_jobs", "job_runs", "runs", "outbox", "sessions"):
                    assert f"Seq Scan on {table}" not in lines, (name, lines)
                if name in ("next_due", "claim_due", "crowd"):
                    assert "using cron_jobs_due" in lines, lines
                if name == "sweep_jobs":
                    assert "cron_jobs_over" in lines, lines
                if name == "sweep_log":
                    assert "using job_runs_newest" in lines, lines


async def test_a_look_at_what_is_due_reads_an_index_only(postgres_database: Database) -> None:
    async with connection(postgres_database.address) as direct:
        await direct.script(MANY)
        await direct.script("vacuum analyze cron_jobs")
        plan = await direct.fetch("explain " + queries("occurrences")["next_due"])
    assert "Index Only Scan using cron_jobs_due" in "\n".join(row["QUERY PLAN"] for row in plan)


async def test_to_claim_what_is_not_due_writes_nothing(postgres_database: Database) -> None:
    store = await postgres_database.open()
    try:
        await store.join(a_node(A))
        await added(store, a_job("tea", due_at=at(60)))
        async with connection(postgres_database.address) as direct:
            before = await direct.row("select pg_current_xact_id_if_assigned(), txid_current()")
            assert await claim(store) == []
            after = await direct.row("select pg_current_xact_id_if_assigned(), txid_current()")
        assert before is not None
        assert after is not None
        # This connection used one number itself; nobody else took one.
        assert after["txid_current"] - before["txid_current"] == 1
    finally:
        await store.close()


# ---------------------------------------------------------------------------- halfway

TABLES = ("cron_jobs", "job_runs", "owner_zones", "runs", "outbox", "sessions", "nodes")

REFUSE = """
create function refuse() returns trigger language plpgsql as $$
begin
    raise exception 'no more';
end
$$;
"""


@dataclass(frozen=True, slots=True)
class Busy:
    """A store with a job that is due, one with a run, and one that runs by hand without any."""

    store: PostgresStore
    at_work: OccurrenceClaim
    manual: OccurrenceClaim


@pytest.fixture
async def busy(postgres_database: Database) -> AsyncIterator[Busy]:
    store = await postgres_database.open()
    try:
        await store.join(a_node(A))
        here = replace(a_spec("work"), target=ANN)
        work, hand, _ = await added(
            store,
            a_job("work", spec=here),
            a_job("hand", due_at=at(500)),
            a_job("due", due_at=at(3)),
        )
        at_work = await claim_one(store)
        manual = await claim_manual(store, hand)
        assert manual
        await store.begin_run(run_for("r", at_work), node=A)
        await store.choose_zone(work.owner, "Asia/Tokyo")
        yield Busy(store, at_work, manual)
    finally:
        await store.close()


async def everything(database: Database) -> dict[str, list[str]]:
    """What all tables hold."""
    async with connection(database.address) as opened:
        return {
            table: sorted(
                row["text"] for row in await opened.fetch(f"select t::text as text from {table} t")
            )
            for table in TABLES
        }


async def _claim(busy: Busy) -> object:
    return await claim(busy.store, now=at(5))


async def _finish(busy: Busy) -> None:
    end = replace(run_end("r", ended(busy.at_work)), say=(say("done"),))
    await busy.store.finish_run(end, node=A)


async def _end(busy: Busy) -> None:
    await busy.store.end_occurrence(ended(busy.manual), (say("x"),), node=A)


async def _end_for_good(busy: Busy) -> None:
    end = ended(busy.at_work, update=JobUpdate(None, delete=True, forget=True))
    await busy.store.finish_run(run_end("r", end), node=A)


async def _give_back(busy: Busy) -> None:
    await busy.store.give_back([busy.at_work.id], node=A, status=OccurrenceStatus.INTERRUPTED)


async def _recover(busy: Busy) -> object:
    return await busy.store.recover(now=at(LEASE_S), max_attempts=3, apology=APOLOGY)


async def _leave(busy: Busy) -> None:
    await busy.store.leave(A, now=at(1))


async def _delete(busy: Busy) -> object:
    return await busy.store.delete_job(JobId("job-work"), forget=True)


async def _move(busy: Busy) -> object:
    return await busy.store.move_chat("telegram", "default", old="100", new="300", now=at(5))


Change = Callable[[Busy], Awaitable[object]]

CASES: list[tuple[Change, str]] = [
    *((_claim, table) for table in ("cron_jobs", "job_runs")),
    *((_finish, table) for table in ("cron_jobs", "job_runs", "runs", "outbox")),
    *((_end, table) for table in ("cron_jobs", "job_runs", "outbox")),
    *((_end_for_good, table) for table in ("cron_jobs", "job_runs", "runs")),
    *((_give_back, table) for table in ("cron_jobs", "job_runs")),
    *((_recover, table) for table in ("cron_jobs", "job_runs", "runs", "nodes")),
    *((_leave, table) for table in ("cron_jobs", "job_runs", "nodes")),
    *((_delete, table) for table in ("cron_jobs", "job_runs")),
    *((_move, table) for table in ("cron_jobs", "job_runs", "owner_zones")),
]


@pytest.mark.parametrize(
    ("change", "table"), CASES, ids=[f"{change.__name__[1:]}-{table}" for change, table in CASES]
)
async def test_a_change_that_fails_at_one_table_changes_no_other(
    busy: Busy, postgres_database: Database, change: Change, table: str
) -> None:
    """CRON-5: the same as when the process or the server dies there."""
    before = await everything(postgres_database)
    refusal = (
        f"create trigger refuse before insert or update or delete on {table} "
        "execute function refuse()"
    )
    await run_sql(postgres_database.address, REFUSE, refusal)
    with pytest.raises(DatabaseError, match="no more"):
        await change(busy)
    assert await everything(postgres_database) == before
    await run_sql(postgres_database.address, f"drop trigger refuse on {table}")
    await change(busy)
    assert await everything(postgres_database) != before


# ---------------------------------------------------------------------------- at the same time


async def test_who_claims_while_others_do_does_not_wait_for_them(
    busy: Busy, postgres_database: Database
) -> None:
    """CRON-4: a hung process delays nothing."""
    await added(busy.store, a_job("second", due_at=at(4)))
    async with connection(postgres_database.address) as other, other.transaction():
        await other.fetch("select from cron_jobs where id = 'job-due' for update")
        async with asyncio.timeout(PATIENCE_S):
            claimed = await claim(busy.store, now=at(5))
    assert [one.job.spec.slug for one in claimed] == ["second"]
    assert [one.job.spec.slug for one in await claim(busy.store, now=at(5))] == ["due"]


async def test_a_node_that_is_being_recovered_claims_nothing(
    busy: Busy, postgres_database: Database
) -> None:
    """CRON-5: it finds itself dead when it gets its turn."""
    async with connection(postgres_database.address) as other:
        async with other.transaction():
            await other.fetch("select from nodes where id = $1 for update", A)
            claiming = asyncio.create_task(claim(busy.store, now=at(5)))
            await _until_somebody_waits(postgres_database)
            await other.fetch("update job_runs set node = null, status = 'lost'")
            await other.fetch("update sessions set owner = null")
            await other.fetch("delete from nodes")
        (answer,) = await asyncio.gather(claiming, return_exceptions=True)
    assert type(answer).__name__ == "Fenced"
    assert (await kept(busy.store, a_job("due"))).running is None


async def test_a_recovery_and_an_end_at_once_agree_on_who_was_first(
    busy: Busy, postgres_database: Database
) -> None:
    """CRON-5."""
    other = await postgres_database.open()
    try:
        await other.join(replace(a_node(B), lease_until=at(1000)))
        got = await asyncio.gather(
            other.recover(now=at(LEASE_S), max_attempts=3, apology=APOLOGY),
            _finish(busy),
            return_exceptions=True,
        )
        row = await other.logged(busy.at_work.id)
        assert row is not None
        if got[1] is None:
            assert row.status is OccurrenceStatus.OK
        else:
            assert (type(got[1]).__name__, row.status) == ("Fenced", OccurrenceStatus.LOST)
    finally:
        await other.close()


async def _until_somebody_waits(database: Database) -> None:
    async with connection(database.address) as watching, asyncio.timeout(PATIENCE_S):
        while not await watching.fetch("select from pg_locks where not granted"):
            await asyncio.sleep(0.005)


async def test_many_runs_that_begin_at_once_get_sessions_of_their_own(
    postgres_database: Database,
) -> None:
    """Also those whose session exists and is free, and none of them for a node that is dead."""
    store = await postgres_database.open()
    try:
        await store.join(a_node(A))
        await added(store, *(a_job(f"j{n}") for n in range(40)))
        for hour in range(2):
            claimed = await claim(store, now=T0 + timedelta(hours=hour))
            names = [f"r{hour} {one.job.id}" for one in claimed]
            pairs = list(zip(names, claimed, strict=True))
            await asyncio.gather(
                *(store.begin_run(run_for(name, one), node=A) for name, one in pairs)
            )
            await asyncio.gather(
                *(store.finish_run(run_end(name, ended(one)), node=A) for name, one in pairs)
            )
            await store.release_sessions(A, [one.key for one in await store.sessions(limit=99)])
        assert {one.fence for one in await store.sessions(limit=99)} == {2}
        await store.leave(A, now=at(5))
        strangers = [
            run_for(f"s {n}", OccurrenceClaim(OccurrenceId(f"o {n}"), a_job(f"s{n}"), T0, T0))
            for n in range(9)
        ]
        got = await asyncio.gather(
            *(store.begin_run(run, node=A) for run in strangers), return_exceptions=True
        )
        assert {type(one).__name__ for one in got} == {"Fenced"}
        assert len(await store.sessions(limit=99)) == 40
    finally:
        await store.close()
