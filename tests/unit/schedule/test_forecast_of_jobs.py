"""A forecast of jobs against numbers worked out by hand (SPEC OPS-6, CRON-6, CRON-10, LANE-1).

It is Monday, 16 March 2026, 00:00 UTC; 30 days later it is Wednesday, 15 April. Clocks in Berlin
are put forward on 29 March.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from goclaw_py.app.gateway_config import forecast_rules, job_rules
from goclaw_py.config import Settings, load
from goclaw_py.core.ids import AgentName, JobId
from goclaw_py.core.messages import Target
from goclaw_py.operations.jobs.models import JobDraft, Requester
from goclaw_py.schedule import forecast as module
from goclaw_py.schedule.forecast import forecast
from goclaw_py.schedule.forecast_models import Assumed, Forecast, ForecastInput, ForecastJob
from goclaw_py.schedule.jobs.creation import made
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus, Why
from goclaw_py.schedule.jobs.models import FixedMessage, Job, JobState, Payload, Program, Prompt
from goclaw_py.schedule.jobs.schedule import At, Cron, Every, Schedule
from tests.support.guides import ROOT

SINCE = datetime(2026, 3, 16, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
WIDE = "[lanes]\ncron = 10\n"
HOURLY = Cron("30 * * * *")


@dataclass(slots=True)
class Case:
    """Jobs, and what their runs take."""

    settings: Settings
    since: datetime = SINCE
    jobs: list[Job] = field(default_factory=list)
    assumed: dict[JobId, Assumed] = field(default_factory=dict)

    def add(
        self,
        schedule: Schedule,
        slug: str = "job",
        takes: timedelta = MINUTE,
        usd: str | None = None,
        payload: Payload | None = None,
        **more: Any,
    ) -> None:
        """A job that was made at the beginning."""
        job_id = JobId(f"id-{len(self.jobs)}")
        payload = payload or Prompt("What is new?")
        draft = JobDraft(schedule, payload, slug=slug, zone="Europe/Berlin", **more)
        rules = job_rules(self.settings)
        job = made(rules, draft, Requester(None), "UTC", job_id=job_id, now=self.since)
        self.jobs.append(job)
        cost = None if usd is None else Decimal(usd)
        self.assumed[job_id] = Assumed(takes.total_seconds(), cost)

    def add_many(self, count: int, **more: Any) -> None:
        """Jobs at half past each hour whose runs take ten minutes."""
        for number in range(count):
            self.add(HOURLY, f"job-{number}", 10 * MINUTE, **more)

    def overdue(self, by: timedelta) -> None:
        """The last job should have run so long ago."""
        self.jobs[-1] = replace(self.jobs[-1], next_run_at=self.since - by)

    def run(self, days: int = 30) -> Forecast:
        """Forecast."""
        given = ForecastInput(self.jobs, self.assumed)
        return forecast(forecast_rules(self.settings), given, since=self.since, days=days)

    def one(self, days: int = 30) -> ForecastJob:
        """Forecast the only job."""
        (found,) = self.run(days).jobs
        return found


def case(folder: Path, text: str = WIDE) -> Case:
    (folder / "goclaw.toml").write_text(text, "utf-8")
    return Case(load(env={"GOCLAW_HOME": str(folder)}))


def figures(found: Forecast) -> Mapping[str, Sequence[int]]:
    """Runs, coalesced firings and model calls of each job."""
    return {one.job.spec.slug: (one.runs, one.coalesced, one.model_calls) for one in found.jobs}


def test_thirty_days_of_all_kinds_of_jobs(tmp_path: Path) -> None:
    played = case(tmp_path)
    played.add(Cron("0 9 * * 1-5"), "standup", usd="0.10")
    played.add(Every(10 * MINUTE), "poll", 25 * MINUTE, usd="0.001")
    played.add(At(SINCE + 5 * DAY), "tea")
    played.add(Cron("0 6 * * *"), "paused", paused=True)
    played.add(Every(HOUR), "thrice", max_runs=3)
    played.add(Cron("0 8 * * *"), "greeting", payload=FixedMessage("Good morning!"))
    found = played.run()
    assert figures(found) == {
        # 5 + 5 + 5 + 5 working days, Monday and Tuesday.
        "standup": (22, 0, 22),
        # A run each 10 + 25 minutes, the first one ends after 35: 43,200 / 35 is 1234 and a bit.
        "poll": (1234, 0, 1234),
        "tea": (1, 0, 1),
        "paused": (0, 0, 0),
        "thrice": (3, 0, 3),
        "greeting": (30, 0, 0),
    }
    assert (found.since, found.until, found.cut) == (SINCE, SINCE + 30 * DAY, False)
    assert len(found.events) == 22 + 1234 + 1 + 3 + 30
    assert [one.usd for one in found.jobs] == [Decimal("2.20"), Decimal("1.234"), *[None] * 4]
    assert [one.worked_s for one in found.jobs] == [22 * 60, 1234 * 1500, 60, 0, 180, 0]


def test_a_clock_change_moves_what_follows_the_clock_on_the_wall(tmp_path: Path) -> None:
    """SPEC CRON-1: nine in Berlin is 08:00 UTC until 29 March, and 07:00 after that."""
    played = case(tmp_path)
    played.add(Cron("0 9 * * 1-5"))
    hours = [(event.due_at.hour, event.due_at < SINCE + 13 * DAY) for event in played.run().events]
    assert hours == [(8, True)] * 10 + [(7, False)] * 12


def test_three_days_of_jobs_whose_runs_take_their_time(tmp_path: Path) -> None:
    """SPEC CRON-10, LANE-7."""
    played = case(tmp_path)
    played.add(Cron("0 7 * * *"), "unknown")
    played.assumed.clear()
    played.add(Every(10 * MINUTE), "poll", 25 * MINUTE, policy={"anchor": "grid"})
    played.add(Cron("0 7 * * *"), "long", 2 * HOUR)
    played.add(Cron("0 7 * * *"), "backup", 5 * MINUTE, payload=Program(("backup", "--all")))
    found = played.run(3)
    assert figures(found) == {
        "unknown": (3, 0, 3),
        # Due at :10, busy at :20 and :30, due again at :40. The first one ends after 35 minutes,
        # one more each 30: (4320 - 35) / 30 is 142 and a bit.
        "poll": (143, 286, 143),
        "long": (3, 0, 3),
        "backup": (3, 0, 0),
    }
    # What is not known of a run is assumed; what takes too long is cut after half an hour.
    assert [one.worked_s for one in found.jobs] == [3 * 20, 143 * 1500, 3 * 1800, 900]
    assert [one.usd for one in found.jobs] == [None] * 4
    ends = {event.status for event in found.events if event.job == "id-2"}
    assert ends == {OccurrenceStatus.TIMED_OUT}


@pytest.mark.parametrize(("text", "runs", "waited_s"), [
    ("[lanes]\ncron = 1\n", [24, 24, 23], [0, 600, 1200]),
    (WIDE, [24, 24, 24], [0, 0, 0]),
    # SPEC AGENT-1.
    (f"{WIDE}[agents.main]\nmax_concurrent = 1\n", [24, 24, 23], [0, 600, 1200]),
], ids=["a lane of one", "a wide lane", "an agent that does one thing at a time"])  # fmt: skip
def test_jobs_wait_for_each_other_where_there_is_no_room(
    tmp_path: Path, text: str, runs: list[int], waited_s: list[float]
) -> None:
    played = case(tmp_path, text)
    played.add_many(3)
    found = played.run(1).jobs
    assert [one.runs for one in found] == runs
    assert [one.waited_s for one in found] == waited_s


def test_a_busy_agent_lets_jobs_be_skipped_if_they_say_so(tmp_path: Path) -> None:
    played = case(tmp_path)
    played.add_many(2, policy={"on_busy": "skip", "max_per_agent": 1})
    found = played.run(1)
    skips = [(one.runs, dict(one.skipped)) for one in found.jobs]
    assert skips == [(24, {}), (0, {Why.AT_CAPACITY: 24})]
    skipped = [event for event in found.events if event.status is OccurrenceStatus.SKIPPED]
    assert {(event.job, event.started_at) for event in skipped} == {("id-1", None)}


def test_messages_need_no_room(tmp_path: Path) -> None:
    """SPEC CRON-4: they are sent on time, although a lane of one and its queue are full."""
    played = case(tmp_path, "[lanes]\ncron = 1\n")
    played.add_many(4)
    played.add(Cron("45 * * * *"), "greeting", payload=FixedMessage("Hello!"))
    found = played.run(1)
    assert [one.runs for one in found.jobs] == [24, 24, 23, 23, 24]
    assert found.jobs[-1].waited_s == 0


def test_a_run_that_takes_too_long_is_repeated_if_its_job_says_so(tmp_path: Path) -> None:
    """SPEC CRON-7, CRON-8: two retries each, and after two such days it is disabled."""
    played = case(tmp_path)
    policy = {"run_timeout": 60, "retry_on": "any", "retries": 2, "auto_disable_after": 2}
    played.add(Cron("0 7 * * *"), takes=HOUR, policy=policy)
    found = played.run(5)
    assert {event.status for event in found.events} == {OccurrenceStatus.TIMED_OUT}
    assert [(one.runs, one.worked_s) for one in found.jobs] == [(2, 2 * 3 * 60)]


def test_missed_jobs_start_one_after_the_other(tmp_path: Path) -> None:
    """SPEC CRON-6: a second apart."""
    played = case(tmp_path)
    for number in range(3):
        played.add(Cron("0 7 * * *"), f"job-{number}")
        played.overdue(by=HOUR)
    assert [one.waited_s for one in played.run(1).jobs] == [3600, 3601, 3602]


@pytest.mark.parametrize(("changes", "runs"), [
    ({"zone": "Mars/Base"}, 1),  # its next time cannot be found
    ({"policy": {"on_busy": "dance"}}, 0),
])  # fmt: skip
def test_a_job_that_cannot_be_read_does_not_stop_the_others(
    tmp_path: Path, changes: dict[str, Any], runs: int
) -> None:
    played = case(tmp_path)
    played.add(Cron("0 7 * * *"), "odd")
    played.add(Cron("0 7 * * *"), "even")
    played.jobs[0] = replace(played.jobs[0], spec=replace(played.jobs[0].spec, **changes))
    assert [one.runs for one in played.run(3).jobs] == [runs, 3]


def test_jobs_of_one_conversation_run_one_after_the_other(tmp_path: Path) -> None:
    """SPEC CRON-14; nothing is sent to the chat."""
    played = case(tmp_path)
    played.add_many(2, target=Target("console", "default", "5"), policy={"session": "main"})
    assert [(one.runs, one.waited_s) for one in played.run(1).jobs] == [(24, 0), (24, 600)]


@pytest.mark.parametrize(("misfire", "runs", "skipped", "waited_s"), [
    ("once", 31, {}, 42 * 3600),
    ("skip", 30, {Why.MISSED: 1}, 0),
])  # fmt: skip
def test_what_is_overdue_runs_once_at_the_beginning_or_is_left_out(
    tmp_path: Path, misfire: str, runs: int, skipped: dict[Why, int], waited_s: float
) -> None:
    """SPEC CRON-6; the firing of the day between is coalesced."""
    played = case(tmp_path)
    played.add(Cron("0 7 * * *"), policy={"misfire": misfire})
    played.overdue(by=2 * DAY - 6 * HOUR)
    found = played.one()
    assert (found.runs, dict(found.skipped), found.coalesced) == (runs, skipped, 1)
    assert found.waited_s == waited_s


def test_jobs_that_are_off_or_of_an_agent_that_is_gone_are_forecast(tmp_path: Path) -> None:
    for text in ("[scheduler]\nenabled = false\n", WIDE):
        played = case(tmp_path, text)
        played.add(Cron("0 7 * * *"))
        if text == WIDE:
            spec = replace(played.jobs[0].spec, agent=AgentName("gone"))
            played.jobs[0] = replace(played.jobs[0], spec=spec)
        assert played.one(3).runs == 3


def test_the_profile_of_the_settings_holds(tmp_path: Path) -> None:
    """SPEC CRON-17: the fixed grid of halo, not the ends of runs."""
    played = case(tmp_path, '[scheduler]\nprofile = "halo"\n')
    played.add(Every(HOUR), takes=20 * MINUTE)
    assert played.one(1).runs == 23


@pytest.mark.parametrize("state", [s for s in JobState if s is not JobState.ACTIVE])
def test_jobs_that_are_not_active_do_nothing(tmp_path: Path, state: JobState) -> None:
    played = case(tmp_path)
    assert played.run(30) == Forecast(SINCE, SINCE + 30 * DAY, (), ())
    played.add(Every(HOUR))
    played.jobs[0] = replace(played.jobs[0], state=state, next_run_at=None)
    assert played.one(1) == ForecastJob(played.jobs[0])


def test_it_ends_when_nobody_reads_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_RUNS", 10)
    played = case(tmp_path)
    played.add(Every(10 * MINUTE), takes=MINUTE)
    found = played.run(30)
    assert (len(found.events), found.cut) == (10, True)
    # Ten times ten minutes of waiting and one of work.
    assert found.until == SINCE + 110 * MINUTE


def test_the_hours_that_are_done_are_told(tmp_path: Path) -> None:
    played = case(tmp_path)
    played.add(HOURLY)
    hours: list[int] = []
    given = ForecastInput(played.jobs, played.assumed)
    forecast(forecast_rules(played.settings), given, since=SINCE, days=2, on_progress=hours.append)
    assert hours == list(range(49))


def test_it_is_the_same_each_time_and_leaves_the_jobs_as_they_are(tmp_path: Path) -> None:
    played = case(tmp_path, "[lanes]\ncron = 2\n")
    for number in range(5):
        played.add(Cron("*/30 * * * *"), f"job-{number}", (7 + number) * MINUTE, usd="0.05")
    played.add(HOURLY, "jittered", policy={"jitter": 0.1, "on_busy": "skip"})
    before = list(played.jobs)
    first = played.run(2)
    assert len(first.events) > 400
    assert played.run(2) == first
    assert first.jobs[0].job is before[0]
    assert played.jobs == before


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    for days in (-1, 0, 3661):
        with pytest.raises(ValueError, match="days"):
            case(tmp_path).run(days)
    played = case(tmp_path)
    played.add(HOURLY, takes=timedelta())
    # Runs that take no time end at once.
    assert (played.one(1).runs, played.one(1).worked_s) == (24, 0)
    for seconds in (-1, math.nan, math.inf):
        played.assumed[JobId("id-0")] = Assumed(seconds)
        with pytest.raises(ValueError, match="take"):
            played.run(1)


def test_the_guide_names_the_limit_of_a_forecast() -> None:
    text = (ROOT / "docs" / "guide" / "jobs-reference.md").read_text("utf-8")
    assert re.findall(r"stops after ([0-9,]+) runs", text) == [f"{module.MOST_RUNS:,}"]
