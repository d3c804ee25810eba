"""Heartbeat runs in a forecast, against numbers that were worked out by hand (SPEC OPS-6).

It is Monday, 16 March 2026, 00:00 UTC; 30 days later it is Wednesday, 15 April.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from goclaw_py.app.gateway_config import forecast_rules, job_rules
from goclaw_py.config import Settings, load
from goclaw_py.core.ids import MAIN_AGENT, AgentName, HeartbeatRunId, JobId, NodeId
from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.core.run_events import Usage
from goclaw_py.operations.jobs.models import JobDraft, Requester
from goclaw_py.schedule import forecast as module
from goclaw_py.schedule.forecast import forecast
from goclaw_py.schedule.forecast_models import (
    Assumed,
    Forecast,
    ForecastHeartbeats,
    ForecastInput,
    KnownHeartbeat,
)
from goclaw_py.schedule.heartbeat.checklist.checklist import Checklist, parse
from goclaw_py.schedule.heartbeat.models import Heartbeat, HeartbeatRunStatus, Skip
from goclaw_py.schedule.jitter import heartbeat_offset
from goclaw_py.schedule.jobs.creation import made
from goclaw_py.schedule.jobs.models import Job, Prompt
from goclaw_py.schedule.jobs.schedule import Cron

SINCE = datetime(2026, 3, 16, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
HALF_HOUR = 30 * MINUTE
EXAMPLE = Path(__file__).parents[3] / "HEARTBEAT.md.example"
ONE_ITEM = "# Checklist\n\n- Look at the calendar.\n"


@dataclass(slots=True)
class Case:
    """The heartbeats of all agents of the settings; those in ``known`` as they are there."""

    settings: Settings
    known: dict[AgentName, KnownHeartbeat] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    checklists: dict[AgentName, Checklist | Skip] = field(default_factory=dict)

    def write(self, text: str, agent: AgentName = MAIN_AGENT) -> None:
        """Give an agent a checklist."""
        self.checklists[agent] = parse(text)

    def know(self, known: KnownHeartbeat) -> None:
        """How a heartbeat stands."""
        self.known[known.agent] = known

    def run(self, days: int = 30) -> Forecast:
        """Forecast."""
        agents = map(AgentName, self.settings.agents)
        known = [
            replace(
                self.known.get(one, KnownHeartbeat(Heartbeat(one, None))),
                checklist=self.checklists.get(one, Skip.NO_FILE),
            )
            for one in agents
        ]
        taken: Mapping[JobId, Assumed] = {}
        given = ForecastInput(self.jobs, taken, known)
        return forecast(forecast_rules(self.settings), given, since=SINCE, days=days)

    def one(self, days: int = 30) -> ForecastHeartbeats:
        """Forecast the only agent."""
        (found,) = self.run(days).heartbeats
        return found


def case(folder: Path, text: str = "", checklist: str | None = ONE_ITEM) -> Case:
    (folder / "goclaw.toml").write_text(text, "utf-8")
    found = Case(load(env={"GOCLAW_HOME": str(folder), "TZ": "UTC"}))
    if checklist is not None:
        found.write(checklist)
    return found


def hearts(agent: str = MAIN_AGENT, **facts: object) -> KnownHeartbeat:
    """One that has been enabled 10 minutes ago, at the beginning of its grid."""
    anchor = SINCE - 10 * MINUTE
    heart = Heartbeat(AgentName(agent), HALF_HOUR, anchor, next_at=anchor + HALF_HOUR)
    return KnownHeartbeat(replace(heart, **facts))  # type: ignore[arg-type]


def asking(usd: str | None = None, tokens: int = 0, seconds: float = 20.0) -> KnownHeartbeat:
    """Such a one, of whose heartbeat runs this is known."""
    usage = Usage(1, tokens, cost_usd=None if usd is None else Decimal(usd))
    return replace(hearts(), seconds=seconds, usage=usage)


def test_a_fresh_install_calls_no_model_in_thirty_days(tmp_path: Path) -> None:
    """SPEC HB-3: the settings as they are without a file, and the shipped checklist."""
    found = case(tmp_path, checklist=EXAMPLE.read_text("utf-8")).one()
    skipped: Counter[StrEnum] = Counter({Skip.EMPTY: 1440})
    assert found == ForecastHeartbeats(MAIN_AGENT, heartbeat_runs=1440, skipped=skipped)


QUIET = '[heartbeat]\nactive_hours = { start = "08:00", end = "22:00", timezone = "UTC" }\n'


@pytest.mark.parametrize(("text", "checklist", "calls", "skipped"), [
    ("", ONE_ITEM, 1440, {}),
    ("", None, 0, {Skip.NO_FILE: 1440}),
    # Of 48 heartbeat runs a day 28 lie between 08:00 and 22:00.
    (QUIET, ONE_ITEM, 30 * 28, {Skip.QUIET_HOURS: 30 * 20}),
    # 30 days from a Monday on have 22 working days.
    ("", "- weekdays 09:00: Plan the day.\n", 22, {Skip.NOTHING_DUE: 1418}),
])  # fmt: skip
def test_a_model_is_asked_where_there_is_something_to_do(
    tmp_path: Path, text: str, checklist: str | None, calls: int, skipped: dict[Skip, int]
) -> None:
    """SPEC HB-2, HB-3."""
    found = case(tmp_path, text, checklist).one()
    assert (found.heartbeat_runs, found.model_calls) == (1440, calls)
    assert dict(found.skipped) == skipped
    assert (found.worked_s, found.usd, found.waited_s) == (calls * 20, None, 0)


def test_heartbeat_runs_come_on_their_grid(tmp_path: Path) -> None:
    """SPEC HB-1: the first one after the offset of the agent, then each half hour."""
    rows = case(tmp_path).run(1).heartbeat_runs
    first = SINCE + heartbeat_offset(MAIN_AGENT, HALF_HOUR)
    assert [row.due_at for row in rows] == [first + k * HALF_HOUR for k in range(48)]
    assert {row.finished_at - row.due_at for row in rows} == {timedelta(seconds=20)}


def test_a_heartbeat_run_that_has_not_ended_does_not_count(tmp_path: Path) -> None:
    """The last of 1440 begins 47.6 s after 23:59 and takes 20 s."""
    found = case(tmp_path, '[heartbeat]\ninterval = "1m"\n').one(1)
    assert (found.heartbeat_runs, found.model_calls) == (1439, 1439)


def test_heartbeat_runs_do_not_overtake_each_other(tmp_path: Path) -> None:
    """SPEC HB-1: what comes due each second while one works for 59.5 s is one heartbeat run."""
    played = case(tmp_path, '[heartbeat]\ninterval = "1s"\n')
    played.know(KnownHeartbeat(Heartbeat(MAIN_AGENT, None), seconds=59.5))
    rows = played.run(1).heartbeat_runs
    # From 00:00:00.624 on: 86,399.376 / 59.5 is 1452 and a bit.
    assert len(rows) == 1452
    assert all(after.started_at == one.finished_at for one, after in pairwise(rows))


def test_agents_have_heartbeat_runs_of_their_own(tmp_path: Path) -> None:
    played = case(tmp_path, '[agents.main]\n[agents.ann.heartbeat]\ninterval = "2h"\n')
    found = {one.agent: (one.heartbeat_runs, one.model_calls) for one in played.run(1).heartbeats}
    assert found == {"main": (48, 48), "ann": (12, 0)}


def test_in_a_lane_of_one_heartbeat_runs_wait_for_each_other(tmp_path: Path) -> None:
    """SPEC HB-5."""
    played = case(tmp_path, "[lanes]\ncron = 1\n[agents.main]\n[agents.ann]\n")
    played.write(ONE_ITEM, AgentName("ann"))
    for agent in ("main", "ann"):
        played.know(replace(hearts(agent), seconds=60.0))
    waits: dict[datetime, list[timedelta]] = {}
    for row in played.run(1).heartbeat_runs:
        assert row.started_at is not None
        waits.setdefault(row.due_at, []).append(row.started_at - row.due_at)
    # Which of the two is first is nobody's promise: their files are read at the same time.
    assert {tuple(sorted(both)) for both in waits.values()} == {(timedelta(), MINUTE)}


@pytest.mark.parametrize(("text", "facts"), [
    ("[heartbeat]\nenabled = false\n", {}),
    ('[heartbeat]\ninterval = "0"\n', {}),
    ("", {"switched": False, "next_at": None}),
])  # fmt: skip
def test_a_heartbeat_that_is_off_does_nothing(
    tmp_path: Path, text: str, facts: dict[str, Any]
) -> None:
    played = case(tmp_path, text)
    played.know(hearts(**facts))
    assert played.one(2) == ForecastHeartbeats(MAIN_AGENT, is_on=False)


LATE = SINCE - 2 * DAY - 10 * MINUTE
TOLD = replace(hearts(), events=("The build is red.", "Still."))


@pytest.mark.parametrize(("known", "checklist", "calls", "skipped", "due"), [
    (hearts(), ONE_ITEM, 48, {}, SINCE + 20 * MINUTE),
    (hearts(muted_until=SINCE + 6 * HOUR), ONE_ITEM, 36, {Skip.MUTED: 12}, SINCE + 20 * MINUTE),
    # SPEC HB-1: due two days ago, then by the grid that began 10 minutes before the hour.
    (hearts(next_at=LATE), ONE_ITEM, 49, {}, LATE),
    # One that is in hand now hinders none.
    (hearts(heartbeat_run=HeartbeatRunId("now"), node=NodeId("gateway")), ONE_ITEM, 48, {},
     SINCE + 20 * MINUTE),
    # SPEC HB-13: one call for the events that wait, although there is no checklist.
    (TOLD, None, 1, {Skip.NO_FILE: 47}, SINCE + 20 * MINUTE),
    # SPEC HB-11: a wake that waits comes besides.
    (hearts(wake_at=SINCE, wake_kind=HeartbeatRunKind.EVENT), ONE_ITEM, 49, {}, SINCE),
])  # fmt: skip
def test_a_heartbeat_goes_on_as_it_stands(
    tmp_path: Path,
    known: KnownHeartbeat,
    checklist: str | None,
    calls: int,
    skipped: dict[Skip, int],
    due: datetime,
) -> None:
    played = case(tmp_path, checklist=checklist)
    played.know(known)
    found = played.run(1)
    (one,) = found.heartbeats
    assert (one.model_calls, dict(one.skipped)) == (calls, skipped)
    assert len(found.heartbeat_runs) == calls + sum(skipped.values())
    first, *grid = [row.due_at for row in found.heartbeat_runs]
    assert first == due
    assert grid[0] == (due if due > SINCE else SINCE - 10 * MINUTE) + HALF_HOUR
    assert {after - before for before, after in pairwise(grid)} == {HALF_HOUR}


def test_jobs_wake_the_heartbeat_of_their_agent(tmp_path: Path) -> None:
    """SPEC CRON-20: a run at half past each hour, and a run after it beside those at 20 and 50."""
    played = case(tmp_path, "[lanes]\ncron = 10\n")
    played.know(hearts())
    draft = JobDraft(Cron("30 * * * *"), Prompt("news?"), slug="news", wake_heartbeat=True)
    rules = job_rules(played.settings)
    played.jobs.append(made(rules, draft, Requester(None), "UTC", job_id=JobId("j"), now=SINCE))
    found = played.run(1)
    assert (found.jobs[0].runs, found.heartbeats[0].model_calls) == (24, 48 + 24)


def test_heartbeats_that_are_not_named_or_not_there_do_nothing(tmp_path: Path) -> None:
    settings = case(tmp_path, "[agents.main]\n[agents.ann]\n").settings
    given = ForecastInput([], {}, [hearts("gone")])
    found = forecast(forecast_rules(settings), given, since=SINCE, days=1)
    assert (found.heartbeats, found.heartbeat_runs) == ((), ())


@pytest.mark.parametrize(("known", "days", "calls", "usd"), [
    # 1 USD is ten heartbeat runs of 10 cents on each day, in UTC.
    (asking("0.10"), 3, 30, Decimal("3.00")),
    # 70 cents are spent, so three heartbeat runs are left, and ten on the next day.
    (replace(asking("0.10"), today=Usage(7, cost_usd=Decimal("0.70"))), 2, 13, Decimal("1.30")),
    # Where no price is known tokens count: 200,000 are eight heartbeat runs of 25,000.
    (asking(None, tokens=25_000), 1, 8, None),
])  # fmt: skip
def test_a_budget_of_the_day_ends_what_heartbeat_runs_cost(
    tmp_path: Path, known: KnownHeartbeat, days: int, calls: int, usd: Decimal | None
) -> None:
    """SPEC HB-12."""
    played = case(tmp_path)
    played.know(known)
    found = played.one(days)
    assert (found.model_calls, found.usd) == (calls, usd)
    assert dict(found.skipped) == {Skip.BUDGET: days * 48 - calls}


def test_heartbeat_runs_that_take_longer_than_they_may_fail(tmp_path: Path) -> None:
    """SPEC LANE-7: ten minutes of work are cut after five."""
    played = case(tmp_path, '[runs]\ntimeout = "5m"\n[heartbeat]\ninterval = "6h"\n')
    played.know(replace(asking(seconds=600), heartbeat=Heartbeat(MAIN_AGENT, None)))
    found = played.run(1)
    assert {row.status for row in found.heartbeat_runs} == {HeartbeatRunStatus.FAILED}
    (one,) = found.heartbeats
    assert (len(found.heartbeat_runs), one.failed, one.worked_s) == (4, 4, 4 * 300)


def test_it_ends_after_so_many_heartbeat_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_RUNS", 14)
    played = case(tmp_path)
    played.know(hearts(muted_until=SINCE + 2 * HOUR))
    found = played.run()
    assert (found.cut, found.heartbeats[0].model_calls) == (True, 10)
    assert found.heartbeats[0].skipped == {Skip.MUTED: 4}


def test_each_of_many_agents_heartbeat_runs_as_if_it_were_alone(tmp_path: Path) -> None:
    """Each has its own offset."""
    names = "\n".join(f"[agents.a{number}]" for number in range(100))
    settings = f'[heartbeat]\ninterval = "2h"\n{names}\n'
    found = case(tmp_path, settings, checklist=None).run(1)
    counts = {(one.heartbeat_runs, one.skipped[Skip.NO_FILE]) for one in found.heartbeats}
    assert counts == {(12, 12)}
    first = {row.agent: row.due_at for row in reversed(found.heartbeat_runs)}
    for agent, due_at in first.items():
        assert due_at == SINCE + heartbeat_offset(agent, 2 * HOUR)
    assert len(first) == len(found.heartbeats)


def test_it_is_the_same_each_time(tmp_path: Path) -> None:
    played = case(tmp_path, "[lanes]\ncron = 1\n[agents.main]\n[agents.ann]\n")
    played.write(ONE_ITEM, AgentName("ann"))
    first = played.run(2)
    assert len(first.heartbeat_runs) == 192
    assert played.run(2) == first


def test_a_checklist_that_cannot_be_read_is_a_reason(tmp_path: Path) -> None:
    played = case(tmp_path, checklist=None)
    played.checklists[MAIN_AGENT] = Skip.UNREADABLE
    assert dict(played.one(1).skipped) == {Skip.UNREADABLE: 48}


@pytest.mark.parametrize("seconds", [-1, math.nan, math.inf])
def test_heartbeat_runs_that_take_no_real_time_are_refused(tmp_path: Path, seconds: float) -> None:
    played = case(tmp_path)
    played.know(asking(seconds=seconds))
    with pytest.raises(ValueError, match="take"):
        played.run(1)
