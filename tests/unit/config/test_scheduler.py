"""``[scheduler]``: profiles, and what is set beside them.

SPEC CRON-4, CRON-15, CRON-17, CRON-10.
"""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal
from pathlib import Path

import pytest

from goclaw_py.config import Settings, job_profile
from goclaw_py.config.scheduler import SchedulerSettings
from goclaw_py.core.time.machine_zone import machine_zone
from goclaw_py.schedule.jobs.policy import (
    PROFILES,
    Anchor,
    Busy,
    FirstRun,
    History,
    JobPolicy,
    Misfire,
    OnShort,
    RetryOn,
    SessionKind,
)
from tests.unit.config.loading import refused, settings


def policy(folder: Path, text: str = "", **env: str) -> JobPolicy:
    return job_profile(settings(folder, f"[scheduler]\n{text}\n", **env)).policy


def test_without_anything_jobs_are_as_in_the_profile_goclaw(tmp_path: Path) -> None:
    got = settings(tmp_path)
    assert job_profile(got) == job_profile(Settings()) == PROFILES["goclaw"]
    assert got.scheduler.max_jobs == 50


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_taken_over_as_a_whole(tmp_path: Path, name: str) -> None:
    got = settings(tmp_path, f"[scheduler]\nprofile = '{name}'\ntimezone = 'Asia/Tokyo'\n")
    profile = job_profile(got)
    known = PROFILES[name]
    assert (profile.name, profile.policy, profile.zone) == (name, known.policy, "Asia/Tokyo")
    assert (profile.enabled, profile.cron_fields) == (known.enabled, known.cron_fields)
    assert profile.default_prompt == known.default_prompt
    assert (profile.lane, got.lanes["cron"].size) == (known.lane, known.lane)
    assert (profile.shutdown_wait_s, got.shutdown.wait_s) == (known.shutdown_wait_s,) * 2


def test_the_variable_of_the_profile_wins_over_the_file(tmp_path: Path) -> None:
    got = settings(tmp_path, "[scheduler]\nprofile = 'halo'\n", GOCLAW_SCHEDULER__PROFILE="oxydra")
    assert (got.scheduler.profile, got.lanes["cron"].size, got.shutdown.wait_s) == ("oxydra", 2, 0)
    assert job_profile(got).policy == PROFILES["oxydra"].policy
    in_code = Settings(scheduler=SchedulerSettings(profile="herdctl"))
    assert in_code.lanes["cron"].size == PROFILES["herdctl"].lane
    assert job_profile(in_code).policy == PROFILES["herdctl"].policy


def test_what_is_set_of_lane_and_shutdown_wins_over_the_profile(tmp_path: Path) -> None:
    text = "[scheduler]\nprofile = 'halo'\n[lanes]\ncron = 3\n[shutdown]\nwait = '7s'\n"
    got = settings(tmp_path, text)
    assert (got.lanes["cron"].size, got.shutdown.wait_s) == (3, 7)
    assert (job_profile(got).lane, job_profile(got).shutdown_wait_s) == (3, 7)
    by_variable = settings(tmp_path, text, GOCLAW_LANE_CRON="4", GOCLAW_SHUTDOWN__WAIT="8s")
    assert (by_variable.lanes["cron"].size, by_variable.shutdown.wait_s) == (4, 8)


def test_the_scheduler_is_switched_on_and_off_in_any_profile(tmp_path: Path) -> None:
    for name in ("goclaw", "oxydra"):
        for enabled in (True, False):
            text = f"[scheduler]\nprofile = '{name}'\nenabled = {str(enabled).lower()}\n"
            assert job_profile(settings(tmp_path, text)).enabled is enabled


def test_the_default_prompt_can_be_set_and_taken_away(tmp_path: Path) -> None:
    set_ = settings(tmp_path, "[scheduler]\ndefault_prompt = ' Look around. '\n")
    assert job_profile(set_).default_prompt == "Look around."
    none = settings(tmp_path, "[scheduler]\nprofile = 'herdctl'\ndefault_prompt = ''\n")
    assert job_profile(none).default_prompt == ""


EVERY_KEY = """
min_interval = "90s"
on_short = "clamp"
anchor = "grid"
first_run = "immediate"
retries = 0
retry_on = "any"
retry_after_effects = true
error_retry = "30m"
backoff = ["30s", "1m", "1h"]
auto_disable_after = 7
misfire = "skip"
misfire_grace = "5m"
on_busy = "delay"
busy_delay = "2h"
session = "fresh"
delete_after_run = false
history_keep = 20
history_on_delete = "delete"
run_timeout = "1d"
turns = 3
usd = 0.05
jitter = 2.5
stagger = true
max_per_agent = 2
tools_in_runs = true
"""
EXPECTED = JobPolicy(
    min_interval=90,
    on_short=OnShort.CLAMP,
    anchor=Anchor.GRID,
    first_run=FirstRun.IMMEDIATE,
    retries=0,
    retry_on=RetryOn.ANY,
    retry_after_effects=True,
    error_retry=1800,
    backoff=(30, 60, 3600),
    auto_disable_after=7,
    misfire=Misfire.SKIP,
    misfire_grace=300,
    on_busy=Busy.DELAY,
    busy_delay=7200,
    session=SessionKind.FRESH,
    delete_after_run=False,
    history_keep=20,
    history_on_delete=History.DELETE,
    run_timeout=86_400,
    turns=3,
    usd=Decimal("0.05"),
    jitter=0.025,
    stagger=True,
    max_per_agent=2,
    tools_in_runs=True,
)


@pytest.mark.parametrize("name", PROFILES)
def test_every_key_wins_over_the_profile(tmp_path: Path, name: str) -> None:
    """SPEC CRON-17: all of them differ from the defaults, so that none can be missing."""
    default = JobPolicy()
    assert all(getattr(EXPECTED, f.name) != getattr(default, f.name) for f in fields(JobPolicy))
    assert policy(tmp_path, f"profile = '{name}'\n{EVERY_KEY}") == EXPECTED


def test_every_key_can_come_from_the_environment(tmp_path: Path) -> None:
    env = {}
    for line in EVERY_KEY.strip().splitlines():
        key, _, value = line.partition(" = ")
        env[f"GOCLAW_SCHEDULER__{key.upper()}"] = value.strip('[]"').replace('"', "")
    assert policy(tmp_path, **env) == EXPECTED


def test_nought_is_no_limit_and_nothing_no_backoff(tmp_path: Path) -> None:
    for key in ("turns", "usd", "max_per_agent"):
        assert getattr(policy(tmp_path, f"profile = 'herdctl'\n{key} = 0"), key) is None
        variable = {f"GOCLAW_SCHEDULER__{key.upper()}": "0"}
        assert getattr(policy(tmp_path, **variable), key) is None
    assert policy(tmp_path, "profile = 'halo'\nbackoff = []").backoff == ()
    assert policy(tmp_path, "profile = 'halo'", GOCLAW_SCHEDULER__BACKOFF="").backoff == ()


@pytest.mark.parametrize(("text", "expected"), [
    ("queue", (Busy.QUEUE, 3600.0)),
    ("skip", (Busy.SKIP, 3600.0)),
    ("delay", (Busy.DELAY, 3600.0)),
    ("delay:90", (Busy.DELAY, 90.0)),
])  # fmt: skip
def test_a_busy_job_does_as_set(tmp_path: Path, text: str, expected: tuple[Busy, float]) -> None:
    got = policy(tmp_path, f"on_busy = '{text}'")
    assert (got.on_busy, got.busy_delay) == expected
    by_variable = policy(tmp_path, GOCLAW_SCHEDULER__ON_BUSY=text)
    assert (by_variable.on_busy, by_variable.busy_delay) == expected


WAYS = "must be a whole number with s, m, h or d"


ZONE = "must be an IANA time zone such as Europe/Berlin"
BUSY = "must be queue, skip, or delay:<seconds> such as delay:3600"
SHOWN = {
    "must be one of goclaw, caco, oxydra, halo, herdctl": ["profile = 'cron'", "profile = 1"],
    "must be true or false": ["enabled = 'no'"],
    ZONE: ["timezone = 'Berlin'", "timezone = '../etc/passwd'", "timezone = ''"],
    "must be text": ["timezone = 1", "default_prompt = 1"],
    "must be a whole number, at least 1 and at most 100000": ["max_jobs = 0"],
    f'{WAYS}, such as "90s" or "30m", at least 1s, at most 366d': [
        "min_interval = 60", "min_interval = '0s'", "min_interval = '367d'",
        "min_interval = '1.5h'", "run_timeout = '0s'",
    ],
    WAYS: ["backoff = [30]"],
    "unknown key (did you mean min_interval?); known here: ": ["min_interval_s = 60"],
    "unknown key (did you mean timezone?); known here: ": ["zone = 'UTC'"],
    "must be 'reject' or 'clamp'": ["on_short = 'stretch'"],
    "must be 'completion', 'grid' or 'start'": ["anchor = 'end'"],
    "must be a whole number, at least 0 and at most 10": ["retries = 11"],
    "must be a list of at most 32 durations such as": ["backoff = '30s'"],
    BUSY: ["on_busy = 'wait'", "on_busy = 'delay:0'", "on_busy = 'delay:1h'"],
    "must be 'job', 'fresh' or 'main'": ["session = 'key'"],
    "must be a number from 0 to 100000": ["usd = -1", "usd = nan"],
    "must be a number from 0 to 10": ["jitter = 10.1"],
    "must be a whole number, at least 0": ["max_per_agent = -1"],
    "must be 'keep' or 'delete'": ["history_on_delete = 'drop'"],
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), [
    *((line, f"scheduler.{line}: {said}") for said, lines in SHOWN.items() for line in lines),
    ("retries = true", "retries = True: must be a whole number"),
    (f"backoff = {['1s'] * 33}", "must be a list of at most 32 durations"),
    ("on_busy = 'delay:99999999'", "the delay must be at most 31622400 seconds"),
    ("on_busy = 'delay:60'\nbusy_delay = '1m'",
     ('scheduler = (a table): the delay is set twice: write on_busy = "delay", or remove '
      "busy_delay")),
    ("retrys = 3", "did you mean retries?"),
])  # fmt: skip
def test_a_wrong_value_is_told(tmp_path: Path, text: str, expected: str) -> None:
    said = refused(tmp_path, f"[scheduler]\n{text}\n")
    assert expected in said
    assert said.startswith(f"{tmp_path / 'goclaw.toml'}:2: scheduler")


@pytest.mark.parametrize(("key", "value", "expected"), [
    ("PROFILE", "", "must be one of goclaw, caco, oxydra, halo, herdctl"),
    ("MAX_JOBS", "many", "must be a whole number"),
    ("JITTER", "11", "must be a number from 0 to 10"),
    ("BACKOFF", "30s,soon", WAYS),
    ("TIMEZONE", "Mars/Olympus", "must be an IANA time zone"),
])  # fmt: skip
def test_a_wrong_variable_is_named(tmp_path: Path, key: str, value: str, expected: str) -> None:
    variable = f"GOCLAW_SCHEDULER__{key}"
    said = refused(tmp_path, **{variable: value})
    assert said.startswith(f"environment variable {variable}: scheduler.{key.lower()}")
    assert expected in said


def test_a_section_that_is_no_table_is_told_once(tmp_path: Path) -> None:
    lines = refused(tmp_path, "scheduler = 'halo'\nshutdown = 3\n").splitlines()
    assert ["must be a table" in line for line in lines] == [True, True]


def zone_of(folder: Path, *, tz: str = "", link: str = "", text: str = "") -> str:
    if link:
        (folder / "localtime").symlink_to(link)
    if text:
        (folder / "timezone").write_text(text, "utf-8")
    return machine_zone({"TZ": tz} if tz else {}, folder)


@pytest.mark.parametrize("tz", [
    "Europe/Berlin", ":Europe/Berlin", " Europe/Berlin\n", "/usr/share/zoneinfo/Europe/Berlin",
    ":/usr/share/zoneinfo/posix/Europe/Berlin",
])  # fmt: skip
def test_the_variable_tells_the_zone_of_the_machine(tmp_path: Path, tz: str) -> None:
    assert zone_of(tmp_path, tz=tz, link="/usr/share/zoneinfo/Asia/Tokyo") == "Europe/Berlin"


def test_else_the_link_tells_it_and_then_the_file(tmp_path: Path) -> None:
    link = "../usr/share/zoneinfo/US/Eastern"
    assert zone_of(tmp_path, link=link, text="Asia/Tokyo\n") == "US/Eastern"
    (tmp_path / "localtime").unlink()
    assert zone_of(tmp_path) == "Asia/Tokyo"


@pytest.mark.parametrize(
    "tz", ["CET-1CEST,M3.5.0,M10.5.0/3", "<+03>-3", "/no/such/file", "x" * 999]
)
def test_a_variable_without_the_name_of_a_zone_tells_nothing(tmp_path: Path, tz: str) -> None:
    assert zone_of(tmp_path, tz=tz, link="/var/db/timezone/zoneinfo/Asia/Tokyo") == "Asia/Tokyo"


def test_a_machine_that_says_nothing_is_in_utc(tmp_path: Path) -> None:
    assert zone_of(tmp_path, link="/etc/somewhere") == "UTC"
    (tmp_path / "timezone").write_bytes(b"\xff\xfe")
    assert machine_zone({}, tmp_path) == "UTC"
    assert machine_zone({}, tmp_path / "missing") == "UTC"


def test_jobs_of_the_profile_halo_are_in_the_zone_of_the_machine(tmp_path: Path) -> None:
    got = settings(tmp_path, "[scheduler]\nprofile = 'halo'\n")
    assert job_profile(got, {"TZ": "Asia/Kathmandu"}).zone == "Asia/Kathmandu"
    named = settings(tmp_path, "[scheduler]\nprofile = 'halo'\ntimezone = 'Asia/Tokyo'\n")
    assert job_profile(named, {"TZ": "Asia/Kathmandu"}).zone == "Asia/Tokyo"
