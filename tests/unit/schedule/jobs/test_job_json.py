"""Jobs as JSON and back (SPEC CRON-0)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.errors import BadJob, BadSchedule
from goclaw_py.core.ids import AgentName, JobId, OccurrenceId, Owner
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.targets import Maker
from goclaw_py.schedule.jobs.job_json import job_json, job_of, spec_json, spec_of, stored_spec
from goclaw_py.schedule.jobs.models import (
    FixedMessage,
    Job,
    JobSpec,
    JobState,
    Notify,
    Program,
    Prompt,
)
from goclaw_py.schedule.jobs.models import TargetKind as Kind
from goclaw_py.schedule.jobs.schedule import At, Cron, Every

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

texts = st.text(max_size=9)
# hypothesis wants the limits without a zone
instants = st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
milliseconds = st.integers(1, 10**10).map(lambda ms: timedelta(milliseconds=ms))
values = st.none() | st.booleans() | st.integers() | texts
specs = st.builds(
    JobSpec,
    slug=texts,
    schedule=st.builds(At, instants)
    | st.builds(Cron, texts)
    | st.builds(Every, milliseconds, st.none() | instants),
    zone=texts,
    payload=st.builds(Prompt, texts, texts)
    | st.builds(FixedMessage, texts)
    | st.builds(Program, st.lists(texts, max_size=3).map(tuple)),
    name=texts,
    agent=texts.map(AgentName),
    target=st.sampled_from(Kind) | st.builds(Target, texts, texts, texts, st.none() | texts),
    peer=st.sampled_from(PeerKind),
    notify=st.sampled_from(Notify),
    session=texts,
    policy=st.dictionaries(
        texts, values | st.lists(st.floats(0, 9), max_size=3).map(tuple), max_size=3
    ),
    max_runs=st.none() | st.integers(1, 99),
    not_after=st.none() | instants,
    wake_heartbeat=st.booleans(),
    source=texts,
)
jobs = st.builds(
    Job,
    id=texts.map(JobId),
    owner=texts.map(Owner),
    maker=st.sampled_from(Maker),
    creator=st.sampled_from(["", "telegram/default/7"]),
    spec=specs,
    created_at=instants,
    updated_at=instants,
    state=st.sampled_from(JobState),
    revision=st.integers(1, 9),
    next_run_at=st.none() | instants,
    running=st.none() | texts.map(OccurrenceId),
    last_run_at=st.none() | instants,
    last_status=texts,
    last_error=texts,
    failures=st.integers(0, 9),
    runs=st.integers(0, 9),
    coalesced=st.integers(0, 9),
    chained=st.integers(0, 9),
)


@given(jobs)
def test_a_job_that_went_through_json_is_the_same(job: Job) -> None:
    assert job_of(json.loads(json.dumps(job_json(job)))) == job


def test_instants_are_told_in_utc_and_money_as_a_text() -> None:
    kolkata, usd = datetime.fromisoformat("2026-01-02T08:34:05+05:30"), {"usd": Decimal("0.10")}
    spec = JobSpec("x", At(kolkata), "UTC", FixedMessage("x"), not_after=kolkata, policy=usd)
    assert spec_json(spec)["not_after"] == "2026-01-02T03:04:05Z"
    assert spec_of(spec_json(spec)).not_after == NOW
    assert spec_json(spec)["policy"] == {"usd": "0.10"}


MINIMAL: dict[str, object] = {
    "slug": "x",
    "schedule": {"kind": "cron", "expression": "@daily"},
    "zone": "UTC",
    "payload": {"kind": "prompt", "text": "hi"},
}


def test_what_is_missing_has_its_default_and_what_is_not_known_is_ignored() -> None:
    assert spec_of(MINIMAL | {"invented": 1}) == JobSpec("x", Cron("@daily"), "UTC", Prompt("hi"))


@pytest.mark.parametrize(("given", "count"), [(4, 4), (None, 0), ("7", 0), ([], 0)])
def test_a_row_of_the_database_has_the_number_of_turns_in_its_definition(
    given: object, count: int
) -> None:
    job = Job(JobId("x"), Owner("x"), Maker.MODEL, spec_of(MINIMAL), NOW, NOW, chained=4)
    row = {key: value for key, value in job_json(job).items() if key != "chained"}
    assert job_of(row | {"spec": stored_spec(job)}) == job
    assert job_of(row | {"spec": stored_spec(job) | {"chained": given}}).chained == count
    assert job_of(row).chained == 0


def test_the_database_has_the_former_keys_of_a_policy() -> None:
    """A gateway of an earlier release reads what this one stores, and the other way round."""
    spec = spec_of(MINIMAL | {"policy": {"run_timeout_s": 60, "retries": 1}})
    assert spec.policy == {"run_timeout": 60, "retries": 1}
    job = Job(JobId("x"), Owner("x"), Maker.MODEL, spec, NOW, NOW)
    assert stored_spec(job)["policy"] == {"run_timeout_s": 60, "retries": 1}


@pytest.mark.parametrize(("key", "values"), [
    ("slug", [None, 5]), ("zone", [[]]),
    ("payload", ["hi", {"kind": "poem", "text": "x"}, {"kind": "prompt"}]),
    ("payload", [{"kind": "command", "argv": "ls"}, {"kind": "command", "argv": ["ls", 1]}]),
    ("target", ["nowhere", {"channel": "telegram"}, 3]),
    ("peer", ["crowd"]), ("notify", [["always"]]), ("policy", [[1]]), ("max_runs", ["7", True]),
    ("not_after", ["tomorrow", "2026-01-02T03:04:05", 12]),
])  # fmt: skip
def test_what_is_no_definition_is_refused(key: str, values: list[object]) -> None:
    for value in values:
        with pytest.raises(BadJob):
            spec_of(MINIMAL | {key: value})


@pytest.mark.parametrize("schedule", [{}, {"kind": "never"}, {"kind": "every", "every_ms": "1"}])
def test_what_is_no_schedule_is_refused(schedule: object) -> None:
    with pytest.raises(BadSchedule):
        spec_of(MINIMAL | {"schedule": schedule})


@pytest.mark.parametrize("key", ["id", "owner", "spec", "created_at"])
def test_a_job_without_what_it_needs_is_refused(key: str) -> None:
    stored = job_json(Job(JobId("1"), Owner("o"), Maker.PERSON, spec_of(MINIMAL), NOW, NOW))
    del stored[key]
    with pytest.raises(BadJob):
        job_of(stored)
