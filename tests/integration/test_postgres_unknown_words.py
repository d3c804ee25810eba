"""Words that a newer release has stored in PostgreSQL, shown here as they are (SPEC DB-2)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.records import InboxRow, StoredRun
from goclaw_py.schedule.heartbeat import status_texts
from goclaw_py.schedule.heartbeat.models import HeartbeatRunStatus
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus
from goclaw_py.schedule.jobs.view_texts import why_words
from goclaw_py.scheduler import texts
from goclaw_py.store.postgres import PostgresStore
from goclaw_py.web.api import wire
from tests.support import store_heartbeats, store_jobs
from tests.support.postgres import Database, run_sql
from tests.support.stores import AGENT, ANN, T0, A, end, inbox, new_run

pytestmark = pytest.mark.real_time


async def received(store: PostgresStore) -> InboxRow:
    (row,) = (await store.accept([inbox(1, ANN)], node=A, now=T0)).rows
    return row


async def test_a_run_with_an_unknown_reason_and_trigger_is_listed(
    store: PostgresStore, postgres_database: Database
) -> None:
    await store.begin_run(new_run("r", await received(store)), node=A)
    await store.finish_run(end("r", Outcome.FAILED), node=A)
    words = "update runs set reason = 'full_moon', trigger = 'tide'"
    await run_sql(postgres_database.address, words)
    (run,) = await store.runs()
    assert (run.reason, run.trigger) == ("full_moon", "tide")
    assert run.trigger not in {*Trigger}
    assert texts.why(run.outcome, run.reason, None) == "failed: full_moon"
    # As the client of the API reads it.
    assert wire.read(StoredRun, wire.dump(StoredRun, run)) == run


async def test_a_message_with_an_unknown_reason_is_listed(
    store: PostgresStore, postgres_database: Database
) -> None:
    row = await received(store)
    await store.settle([row.id], Outcome.DROPPED, now=T0)
    await run_sql(postgres_database.address, "update inbox set reason = 'full_moon'")
    (letter,) = await store.dead_letters()
    assert letter.row.reason == "full_moon"


async def test_an_occurrence_with_an_unknown_reason_is_listed(
    store: PostgresStore, postgres_database: Database
) -> None:
    await store_jobs.added(store, store_jobs.a_job("tea"))
    claimed = await store_jobs.claim_one(store)
    skipped = replace(store_jobs.ended(claimed), status=OccurrenceStatus.SKIPPED)
    await store.end_occurrence(skipped, node=A)
    await run_sql(postgres_database.address, "update job_runs set reason = 'full_moon'")
    (row,) = await store.log_of()
    assert row.why is not None
    assert why_words(row.why) == "full_moon"


async def test_a_heartbeat_run_with_an_unknown_reason_and_kind_is_listed(
    store: PostgresStore, postgres_database: Database
) -> None:
    await store_heartbeats.planned(store)
    await store_heartbeats.a_heartbeat_run(store, HeartbeatRunStatus.SKIPPED)
    words = "update heartbeat_runs set skip = 'full_moon', kind = 'tide'"
    await run_sql(postgres_database.address, words)
    (row,) = await store.heartbeat_runs(AGENT)
    assert row.kind == "tide"
    assert status_texts.outcome_words(row) == "it was skipped: full_moon"
