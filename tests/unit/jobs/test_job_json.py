"""Jobs as JSON and back (SPEC CRON-0)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.jobs.job_json import job_json, job_of, spec_json, spec_of
from goclaw_py.jobs.models import (
    FixedMessage,
    Job,
    JobSpec,
    JobState,
    Notify,
    Program,
    Prompt,
    TargetKind,
)
from goclaw_py.jobs.schedule import At, Cron, Every
from goclaw_py.model.errors import BadJob, BadSchedule
from goclaw_py.model.ids import AgentName, JobId, OccurrenceId, Owner
from goclaw_py.model.messages import PeerKind, Target
from goclaw_py.model.owners import Maker

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

texts = st.text(max_size=9)
instants = st.datetimes(
    min_value=datetime(1971, 1, 1),  # noqa: DTZ001  hypothesis wants it without a zone
    max_value=datetime(2200, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
specs = st.builds(
    JobSpec,
    slug=texts,
    schedule=st.one_of(
        st.builds(At, instants),
        st.builds(Cron, texts),
        st.builds(
            Every,
            st.integers(1, 10**10).map(lambda ms: timedelta(milliseconds=ms)),
            st.none() | instants,
        ),
    ),
    zone=texts,
    payload=st.one_of(
        st.builds(Prompt, texts, texts),
        st.builds(FixedMessage, texts),
        st.builds(Program, st.lists(texts, max_size=3).map(tuple)),
    ),
    name=texts,
    agent=texts.map(AgentName),
    target=st.one_of(
        st.sampled_from(TargetKind), st.builds(Target, texts, texts, texts, st.none() | texts)
    ),
    peer=st.sampled_from(PeerKind),
    notify=st.sampled_from(Notify),
    session=texts,
    policy=st.dictionaries(
        texts,
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            texts,
            st.lists(st.floats(0, 9), max_size=3).map(tuple),
        ),
        max_size=3,
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
)


@given(jobs)
def test_a_job_that_went_through_json_is_the_same(job: Job) -> None:
    assert job_of(json.loads(json.dumps(job_json(job)))) == job


def test_instants_are_told_in_utc() -> None:
    kolkata = datetime.fromisoformat("2026-01-02T08:34:05+05:30")
    spec = JobSpec("x", At(kolkata), "UTC", FixedMessage("x"), not_after=kolkata)
    assert spec_json(spec)["not_after"] == "2026-01-02T03:04:05Z"
    assert spec_of(spec_json(spec)).not_after == NOW


def test_money_is_a_text() -> None:
    spec = JobSpec("x", At(NOW), "UTC", FixedMessage("x"), policy={"usd": Decimal("0.10")})
    assert spec_json(spec)["policy"] == {"usd": "0.10"}


def minimal() -> dict[str, object]:
    return {
        "slug": "x",
        "schedule": {"kind": "cron", "expression": "@daily"},
        "zone": "UTC",
        "payload": {"kind": "prompt", "text": "hi"},
    }


def test_what_is_missing_has_its_default_and_what_is_not_known_is_ignored() -> None:
    assert spec_of(minimal() | {"invented": 1}) == JobSpec("x", Cron("@daily"), "UTC", Prompt("hi"))


@pytest.mark.parametrize(("key", "value"), [
    ("slug", None),
    ("slug", 5),
    ("zone", []),
    ("payload", "hi"),
    ("payload", {"kind": "poem", "text": "x"}),
    ("payload", {"kind": "prompt"}),
    ("payload", {"kind": "command", "argv": "ls"}),
    ("payload", {"kind": "command", "argv": ["ls", 1]}),
    ("target", "nowhere"),
    ("target", {"channel": "telegram"}),
    ("target", 3),
    ("peer", "crowd"),
    ("notify", ["always"]),
    ("policy", [1]),
    ("max_runs", "7"),
    ("max_runs", True),
    ("not_after", "tomorrow"),
    ("not_after", "2026-01-02T03:04:05"),
    ("not_after", 12),
])  # fmt: skip
def test_what_is_no_definition_is_refused(key: str, value: object) -> None:
    with pytest.raises(BadJob):
        spec_of(minimal() | {key: value})


@pytest.mark.parametrize("schedule", [{}, {"kind": "never"}, {"kind": "every", "every_ms": "1"}])
def test_what_is_no_schedule_is_refused(schedule: object) -> None:
    with pytest.raises(BadSchedule):
        spec_of(minimal() | {"schedule": schedule})


@pytest.mark.parametrize("key", ["id", "owner", "spec", "created_at"])
def test_a_job_without_what_it_needs_is_refused(key: str) -> None:
    job = Job(
        JobId("1"), Owner("o"), Maker.PERSON, spec_of(minimal()), created_at=NOW, updated_at=NOW
    )
    given_job = job_json(job)
    del given_job[key]
    with pytest.raises(BadJob):
        job_of(given_job)
