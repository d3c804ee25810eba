"""What another release has stored of jobs in PostgreSQL, and this one cannot read (SPEC DB-2)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from goclaw_py.core.errors import BadJob
from goclaw_py.core.targets import Maker
from goclaw_py.records import JobQuery
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus
from goclaw_py.schedule.jobs.job_json import spec_json
from goclaw_py.schedule.jobs.models import JobState
from goclaw_py.schedule.jobs.schedule import At
from goclaw_py.store.postgres import PostgresStore, connection
from tests.support.postgres import Database, run_sql
from tests.support.store_jobs import (
    a_job,
    a_spec,
    added,
    claim,
    claim_one,
    ended,
    renamed,
    stored_job,
)
from tests.support.stores import ANN, BOB, T0, A, at

pytestmark = pytest.mark.real_time

JOB = a_job("strange", spec=replace(a_spec("strange"), name="Strange", target=ANN))
WHOLE = spec_json(JOB.spec)
SHAPES: dict[str, object] = {
    "null": None,
    "a list": [],
    "a number": 7,
    "nothing": {},
    "only nulls": dict.fromkeys(WHOLE),
    "an unknown key of the policy": WHOLE | {"policy": {"retries": 1, "mood": "good"}},
    "a policy of another shape": WHOLE | {"policy": {"backoff": {"first": 1}, "usd": [[]]}},
    "an unknown kind of schedule": WHOLE | {"schedule": {"kind": "moon", "phase": "full"}},
    "an interval without end": WHOLE | {"schedule": {"kind": "every", "every_ms": 10**18}},
    "an unknown payload": WHOLE | {"payload": {"kind": "dance"}},
    "an unknown notify": WHOLE | {"notify": "sometimes"},
    "a target of another shape": WHOLE | {"target": {"channel": 1}},
}


async def stored_spec(database: Database) -> object:
    async with connection(database.address) as direct:
        row = await direct.row("select spec::text from cron_jobs where id = $1", JOB.id)
    assert row is not None
    return json.loads(row["spec"])


@pytest.fixture(params=SHAPES)
async def shape(
    request: pytest.FixtureRequest, store: PostgresStore, postgres_database: Database
) -> object:
    """What is stored of a job; another one is as it should be."""
    await added(store, JOB, a_job("tea"))
    given = SHAPES[request.param]
    async with connection(postgres_database.address) as direct:
        text = json.dumps(given)
        await direct.fetch("update cron_jobs set spec = $2 where id = $1", JOB.id, text)
    return given


async def test_what_cannot_be_read_stops_nothing_else(
    store: PostgresStore, postgres_database: Database, shape: object
) -> None:
    assert [job.spec.slug for job in (await store.jobs(JobQuery())).jobs] == ["strange", "tea"]
    claimed = await claim_one(store)
    assert claimed.job.spec.slug == "tea"
    await store.end_occurrence(ended(claimed), node=A)
    job = await stored_job(store, JOB)
    assert (job.state, job.next_run_at, job.running) == (JobState.DISABLED, None, None)
    assert "this release cannot read it" in job.last_error
    assert await store.find_jobs("strange") == [job]
    rows = {row.job: row for row in await store.log_of()}
    assert {row.status for row in rows.values()} == {OccurrenceStatus.OK, OccurrenceStatus.FAILED}
    assert "this release cannot read it" in rows[JOB.id].error
    assert rows[JOB.id].definition["spec"] == await stored_spec(postgres_database)
    with pytest.raises(BadJob):
        await store.change_job(renamed(job, "other"))
    assert await store.delete_job(JOB.id, forget=True)


async def test_the_release_that_wrote_it_finds_all_of_it_in_the_chat_that_moved(
    store: PostgresStore, postgres_database: Database, shape: object
) -> None:
    before = await stored_spec(postgres_database)
    assert await store.move_chat("telegram", "default", old="100", new="200", now=at(1))
    after = await stored_spec(postgres_database)
    if isinstance(before, dict):
        target = before.get("target")
        if target == WHOLE["target"]:
            before["target"] = spec_json(replace(JOB.spec, target=BOB))["target"]
        assert after == before | {"slug": "strange"}
    else:
        assert after == before
    moved = await stored_job(store, JOB)
    assert (moved.owner, moved.revision) == ("telegram:direct:200", JOB.revision + 1)


async def test_what_can_be_read_is_shown(store: PostgresStore, postgres_database: Database) -> None:
    await added(store, JOB)
    spec = WHOLE | {"schedule": {"kind": "moon"}, "policy": {"retries": 1, "mood": "good"}}
    await run_sql(
        postgres_database.address,
        f"update cron_jobs set spec = '{json.dumps(spec)}', maker = 'robot'",
    )
    shown = await stored_job(store, JOB)
    assert shown.spec == replace(JOB.spec, schedule=At(T0), policy={"retries": 1})
    assert shown.maker is Maker.MODEL
    assert "a schedule is" in shown.last_error


async def test_a_maker_that_is_not_known_lets_nothing_run(
    store: PostgresStore, postgres_database: Database
) -> None:
    await added(store, JOB)
    await run_sql(postgres_database.address, "update cron_jobs set maker = 'robot'")
    assert await claim(store) == []
    job = await stored_job(store, JOB)
    assert (job.state, job.spec) == (JobState.DISABLED, JOB.spec)
    assert "maker" in job.last_error


async def test_one_row_of_the_log_that_cannot_be_read_hides_no_other(
    store: PostgresStore, postgres_database: Database
) -> None:
    await added(store, a_job("tea"))
    for hour in range(3):
        now = at(hour * 3600)
        claimed = await claim_one(store, now=now)
        await store.end_occurrence(ended(claimed, now=now), node=A)
    first, second, third = (row.id for row in (await store.log_of())[::-1])
    await run_sql(
        postgres_database.address,
        f"update job_runs set definition = '[1]' where id = '{first}'",
        f"update job_runs set reason = 'tired', definition = '{{\"id\": 7}}' where id = '{second}'",
    )
    rows = await store.log_of()
    assert [row.id for row in rows] == [third, second, first]
    assert [row.why for row in rows] == [None, "tired", None]
    assert rows[1].definition == {"id": 7, "running": second}
    assert rows[2].definition == {}


async def test_what_an_older_release_stored_begins_no_chain(
    store: PostgresStore, postgres_database: Database
) -> None:
    """AGENT-14: the number of turns that led to a job is newer than its definition."""
    await added(store, replace(JOB, chained=3))
    async with connection(postgres_database.address) as direct:
        await direct.fetch("update cron_jobs set spec = spec - 'chained' where id = $1", JOB.id)
    assert await stored_job(store, JOB) == JOB
    assert (await claim_one(store)).job.chained == 0
