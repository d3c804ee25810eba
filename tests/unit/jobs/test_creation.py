"""How frequent a job may be, by who makes and who changes it (SPEC CRON-15)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from goclaw_py.jobs.creation import JobCreationRules, changed, made
from goclaw_py.jobs.models import Job, JobState, Prompt
from goclaw_py.jobs.policy import DEFAULT_PROFILE, JobPolicy, OnShort
from goclaw_py.jobs.schedule import Cron, Every, Schedule
from goclaw_py.model.errors import TooFrequent
from goclaw_py.model.ids import JobId, Owner
from goclaw_py.model.owners import Maker
from goclaw_py.ports.jobs import JobChange, JobDraft, Requester

NOON = datetime(2026, 3, 3, 12, 0, tzinfo=UTC)
HOURLY = JobCreationRules(replace(DEFAULT_PROFILE, policy=JobPolicy(min_interval_s=3600)))
FIVE_MINUTES = Every(timedelta(minutes=5))
TEN_MINUTES = Every(timedelta(minutes=10))
OTHERS = [Maker.PERSON, Maker.MODEL]


def by(maker: Maker) -> Requester:
    return Requester(Owner("telegram:direct:ann"), maker)


def job(maker: Maker, schedule: Schedule = TEN_MINUTES, **policy: object) -> Job:
    draft = JobDraft(schedule, Prompt("water them"), policy=policy)
    return made(HOURLY, draft, by(maker), "UTC", job_id=JobId("j"), now=NOON)


def granted() -> Job:
    """A job in Ann's chat that an operator lets run every ten minutes."""
    return job(Maker.OPERATOR, min_interval_s=1)


def change(before: Job, maker: Maker, wanted: JobChange) -> Job:
    return changed(HOURLY, before, wanted, by(maker), now=NOON)


@pytest.mark.parametrize("maker", Maker)
@pytest.mark.parametrize("schedule", [TEN_MINUTES, Cron("*/10 * * * *"), Cron("0,30 9 * * 1")])
def test_a_job_is_no_more_frequent_than_the_settings_say(maker: Maker, schedule: Schedule) -> None:
    with pytest.raises(TooFrequent, match="3600 s"):
        job(maker, schedule)


@pytest.mark.parametrize("maker", Maker)
def test_what_is_made_longer_is_made_as_long_as_the_settings_say(maker: Maker) -> None:
    assert job(maker, on_short=OnShort.CLAMP).spec.schedule == Every(timedelta(hours=1))


@pytest.mark.parametrize(
    "schedule", [TEN_MINUTES, Cron("* * * * * *"), Every(timedelta(seconds=1))]
)
def test_an_operator_lets_a_job_be_more_frequent(schedule: Schedule) -> None:
    assert job(Maker.OPERATOR, schedule, min_interval_s=0).spec.schedule == schedule


def test_not_even_an_operator_goes_below_a_second() -> None:
    with pytest.raises(TooFrequent):
        job(Maker.OPERATOR, Every(timedelta(milliseconds=999)), min_interval_s=0)


@pytest.mark.parametrize("maker", OTHERS)
@pytest.mark.parametrize("schedule", [FIVE_MINUTES, Cron("0,30 9 * * 1")])
def test_what_an_operator_grants_holds_for_that_schedule_only(
    maker: Maker, schedule: Schedule
) -> None:
    with pytest.raises(TooFrequent):
        change(granted(), maker, JobChange(schedule=schedule))
    for who, wanted in (
        (maker, JobChange(name="Water")),
        (Maker.OPERATOR, JobChange(schedule=schedule)),
    ):
        assert change(granted(), who, wanted).state is JobState.ACTIVE


def test_a_person_may_pause_what_an_operator_grants_and_resume_it() -> None:
    paused = change(granted(), Maker.PERSON, JobChange(state=JobState.PAUSED))
    resumed = change(paused, Maker.PERSON, JobChange(state=JobState.ACTIVE))
    assert (resumed.state, resumed.spec) == (JobState.ACTIVE, granted().spec)
    wanted = JobChange(state=JobState.ACTIVE, schedule=FIVE_MINUTES)
    with pytest.raises(TooFrequent):
        change(paused, Maker.PERSON, wanted)
