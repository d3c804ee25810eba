"""What a burst of jobs costs on PostgreSQL, in statements and transactions (SPEC CRON-4)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from goclaw_py.core.errors import Fenced
from goclaw_py.schedule.jobs.execution_models import OccurrenceClaim
from goclaw_py.store.postgres import Connection, PostgresStore, connection
from goclaw_py.store.postgres.pool import Row
from goclaw_py.store.sql import queries
from tests.support.postgres import Database
from tests.support.store_jobs import a_job, added, claim, ended, run_end, run_for
from tests.support.stores import A, B, a_node, at

pytestmark = pytest.mark.real_time

BURST = 100
_FILES = ("inbox", "lanes", "occurrences", "runs", "approvals")
_NAMES = {text: f"{file}.{name}" for file in _FILES for name, text in queries(file).items()}


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the statements of the store by their names."""
    counted: Counter[str] = Counter()
    fetch, row = Connection.fetch, Connection.row

    async def fetched(self: Connection, query: str, *arguments: object) -> list[Row]:
        counted[_NAMES.get(query, query)] += 1
        return await fetch(self, query, *arguments)

    async def one(self: Connection, query: str, *arguments: object) -> Row | None:
        counted[_NAMES.get(query, query)] += 1
        return await row(self, query, *arguments)

    monkeypatch.setattr(Connection, "fetch", fetched)
    monkeypatch.setattr(Connection, "row", one)
    return counted


async def burst(store: PostgresStore) -> list[OccurrenceClaim]:
    await added(store, *(a_job(f"j{number:03}") for number in range(BURST)))
    claimed = await claim(store, limit=BURST)
    assert len(claimed) == BURST
    return claimed


async def begin_all(
    store: PostgresStore, claimed: Sequence[OccurrenceClaim]
) -> list[BaseException]:
    """Begin a run of each at the same time; return the refusals."""
    begun = await asyncio.gather(
        *(store.begin_run(run_for(one.id, one), node=A) for one in claimed), return_exceptions=True
    )
    return [one for one in begun if isinstance(one, BaseException)]


async def end_all(store: PostgresStore, claimed: Sequence[OccurrenceClaim]) -> None:
    ends = (run_end(one.id, ended(one, now=at(9))) for one in claimed)
    await asyncio.gather(*(store.finish_run(end, node=A) for end in ends))


async def test_a_burst_is_claimed_by_one_statement(
    store: PostgresStore, statements: Counter[str]
) -> None:
    await added(store, *(a_job(f"j{number:03}") for number in range(BURST)))
    statements.clear()
    assert len(await claim(store, limit=BURST)) == BURST
    assert statements == {"occurrences.claim_due": 1}


async def test_a_burst_begins_and_ends_with_as_many_statements_as_one_job(
    store: PostgresStore, statements: Counter[str]
) -> None:
    claimed = await burst(store)
    statements.clear()
    assert await begin_all(store, claimed) == []
    assert statements == {
        "runs.lost_times": 1,
        "runs.enter_sessions": 1,
        "inbox.claim_sessions": 1,
        "runs.begin": 1,
    }
    statements.clear()
    await end_all(store, claimed)
    assert statements == {
        "runs.lock_sessions_of_runs": 1,
        "occurrences.lock": 1,
        "runs.finish": 1,
        "occurrences.end": 1,
        "approvals.stop_of_occurrences": 1,
        "occurrences.prune": 1,
    }


async def test_a_burst_begins_and_ends_in_one_transaction_each(
    store: PostgresStore, postgres_database: Database
) -> None:
    claimed = await burst(store)
    async with connection(postgres_database.address) as direct:

        async def transactions() -> int:
            row = await direct.row("select txid_current() as number")
            assert row is not None
            return int(row["number"])

        before = await transactions()
        await begin_all(store, claimed)
        begun = await transactions()
        await end_all(store, claimed)
        # Each look uses a number itself.
        assert (begun - before - 1, await transactions() - begun - 1) == (1, 1)


async def test_a_session_of_another_node_does_not_make_a_burst_begin_run_by_run(
    store: PostgresStore, postgres_database: Database, statements: Counter[str]
) -> None:
    claimed = await burst(store)
    other = await postgres_database.open()
    try:
        await other.join(a_node(B))
        (strange,) = await added(other, a_job("strange"))
        (theirs,) = await claim(other, node=B)
        assert theirs.job.id == strange.id
        taken = run_for("theirs", theirs)
        # It runs in the session of the first job of the burst.
        first = run_for(claimed[0].id, claimed[0])
        await other.begin_run(replace(taken, session=first.session), node=B)
    finally:
        await other.close()
    statements.clear()
    (refused,) = await begin_all(store, claimed)
    assert isinstance(refused, Fenced)
    assert statements["runs.begin"] == 1
    assert statements.total() < 10
