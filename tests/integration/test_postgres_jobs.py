"""Jobs on PostgreSQL: how it asks, and what fails halfway (SPEC CRON-5)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from goclaw_py.core.ids import JobId, OccurrenceId
from goclaw_py.records import SessionQuery
from goclaw_py.schedule.jobs.execution_models import JobUpdate, OccurrenceClaim, OccurrenceStatus
from goclaw_py.store.postgres import PostgresStore, connection
from tests.integration.postgres_work import changes_all_or_nothing, until_somebody_waits
from tests.support.postgres import Database
from tests.support.store_jobs import (
    a_job,
    a_spec,
    added,
    claim,
    claim_manual,
    claim_one,
    ended,
    run_end,
    run_for,
    stored_job,
)
from tests.support.stores import ANN, APOLOGY, LEASE_S, PATIENCE_S, T0, A, B, a_node, at, say

pytestmark = pytest.mark.real_time


async def test_to_claim_what_is_not_due_writes_nothing(
    store: PostgresStore, postgres_database: Database
) -> None:
    await added(store, a_job("tea", due_at=at(60)))
    async with connection(postgres_database.address) as direct:
        before = await direct.row("select pg_current_xact_id_if_assigned(), txid_current()")
        assert await claim(store) == []
        after = await direct.row("select pg_current_xact_id_if_assigned(), txid_current()")
    assert before is not None
    assert after is not None
    # This connection used one number itself; nobody else took one.
    assert after["txid_current"] - before["txid_current"] == 1


TABLES = ("cron_jobs", "job_runs", "owner_zones", "runs", "outbox", "sessions", "nodes")


@dataclass(frozen=True, slots=True)
class Busy:
    """A store with a job that is due, one with a run, and one that runs by hand without any."""

    store: PostgresStore
    at_work: OccurrenceClaim
    manual: OccurrenceClaim


@pytest.fixture
async def busy(store: PostgresStore) -> Busy:
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
    return Busy(store, at_work, manual)


async def _finish(busy: Busy) -> None:
    end = replace(run_end("r", ended(busy.at_work)), say=(say("done"),))
    await busy.store.finish_run(end, node=A)


async def _end_for_good(busy: Busy) -> None:
    end = ended(busy.at_work, update=JobUpdate(None, delete=True, forget=True))
    await busy.store.finish_run(run_end("r", end), node=A)


Change = Callable[[Busy], Awaitable[object]]
CHANGES: dict[str, tuple[Change, str]] = {
    "claim": (lambda b: claim(b.store, now=at(5)), "cron_jobs job_runs"),
    "finish": (_finish, "cron_jobs job_runs runs outbox"),
    "end": (
        lambda b: b.store.end_occurrence(ended(b.manual), (say("x"),), node=A),
        "cron_jobs job_runs outbox",
    ),
    "end for good": (_end_for_good, "cron_jobs job_runs runs"),
    "give back": (
        lambda b: b.store.give_back([b.at_work.id], node=A, status=OccurrenceStatus.INTERRUPTED),
        "cron_jobs job_runs",
    ),
    "recover": (
        lambda b: b.store.recover(now=at(LEASE_S), max_attempts=3, apology=APOLOGY),
        "cron_jobs job_runs runs nodes",
    ),
    "leave": (lambda b: b.store.leave(A, now=at(1)), "cron_jobs job_runs nodes"),
    "delete": (lambda b: b.store.delete_job(JobId("job-work"), forget=True), "cron_jobs job_runs"),
    "move": (
        lambda b: b.store.move_chat("telegram", "default", old="100", new="300", now=at(5)),
        "cron_jobs job_runs owner_zones",
    ),
}


@pytest.mark.parametrize(
    ("name", "table"),
    [(name, table) for name, (_, tables) in CHANGES.items() for table in tables.split()],
)
async def test_a_change_that_fails_at_one_table_changes_no_other(
    busy: Busy, postgres_database: Database, name: str, table: str
) -> None:
    """CRON-5: the same as when the process or the server dies there."""
    await changes_all_or_nothing(postgres_database, lambda: CHANGES[name][0](busy), TABLES, table)


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
            await until_somebody_waits(postgres_database)
            await other.fetch("update job_runs set node = null, status = 'lost'")
            await other.fetch("update sessions set owner = null")
            await other.fetch("delete from nodes")
        (answer,) = await asyncio.gather(claiming, return_exceptions=True)
    assert type(answer).__name__ == "Fenced"
    assert (await stored_job(busy.store, a_job("due"))).running is None


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


async def test_many_runs_that_begin_at_once_get_sessions_of_their_own(store: PostgresStore) -> None:
    """Also those whose session exists and is free, and none of them for a node that is dead."""
    await added(store, *(a_job(f"j{n}") for n in range(40)))
    for hour in range(2):
        claimed = await claim(store, now=T0 + timedelta(hours=hour))
        names = [f"r{hour} {one.job.id}" for one in claimed]
        pairs = list(zip(names, claimed, strict=True))
        await asyncio.gather(*(store.begin_run(run_for(name, one), node=A) for name, one in pairs))
        await asyncio.gather(
            *(store.finish_run(run_end(name, ended(one)), node=A) for name, one in pairs)
        )
        await store.release_sessions(
            A, [one.key for one in await store.sessions(SessionQuery(limit=99))]
        )
    assert {one.fence for one in await store.sessions(SessionQuery(limit=99))} == {2}
    await store.leave(A, now=at(5))
    strangers = [
        run_for(f"s {n}", OccurrenceClaim(OccurrenceId(f"o {n}"), a_job(f"s{n}"), T0, T0))
        for n in range(9)
    ]
    got = await asyncio.gather(
        *(store.begin_run(run, node=A) for run in strangers), return_exceptions=True
    )
    assert {type(one).__name__ for one in got} == {"Fenced"}
    assert len(await store.sessions(SessionQuery(limit=99))) == 40
