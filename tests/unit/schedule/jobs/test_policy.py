"""The policies of jobs: the five profiles, and keys that settings and jobs change.

SPEC AGENT-5, CRON-8, CRON-9, CRON-15, CRON-17.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from decimal import Decimal

import pytest

from goclaw_py.core.budget import Budget
from goclaw_py.core.errors import BadJob
from goclaw_py.schedule.jobs.policy import (
    DEFAULT_PROFILE,
    DURATIONS,
    FORMER_KEYS,
    MODEL_AUTO_DISABLE,
    MODEL_MIN_INTERVAL_S,
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
    for_model,
    normalized,
    policy_with,
)

PLAIN = JobPolicy()
YEAR_S = 366 * 86_400

CHANGES: Mapping[str, tuple[object, object]] = {
    "min_interval": (90, 90.0),
    "on_short": ("clamp", OnShort.CLAMP),
    "anchor": ("grid", Anchor.GRID),
    "first_run": ("immediate", FirstRun.IMMEDIATE),
    "retries": (0, 0),
    "retry_on": (RetryOn.ANY, RetryOn.ANY),
    "error_retry": ("1800", 1800.0),
    "backoff": ([30, "60", 300.5], (30.0, 60.0, 300.5)),
    "auto_disable_after": (5, 5),
    "misfire": ("skip", Misfire.SKIP),
    "misfire_grace": (0, 0.0),
    "on_busy": ("delay", Busy.DELAY),
    "busy_delay": (60, 60.0),
    "session": ("key", SessionKind.KEY),
    "delete_after_run": (False, False),
    "history_keep": (20, 20),
    "history_on_delete": ("delete", History.DELETE),
    "run_timeout": (7200, 7200.0),
    "turns": (None, None),
    "usd": ("0.1", Decimal("0.1")),
    "jitter": (0.1, 0.1),
    "stagger": (True, True),
    "max_per_agent": (1, 1),
    "retry_after_effects": (True, True),
    "tools_in_runs": (True, True),
}


def test_every_key_of_a_policy_can_be_changed_alone() -> None:
    assert set(CHANGES) == {field.name for field in fields(JobPolicy)}
    assert policy_with(PLAIN, {}) == PLAIN
    for key, (given, read) in CHANGES.items():
        changed = policy_with(PLAIN, {key: given})
        assert (getattr(changed, key), type(getattr(changed, key))) == (read, type(read))
        assert replace(changed, **{key: getattr(PLAIN, key)}) == PLAIN != changed


def test_a_key_that_does_not_exist_is_named_with_those_that_do() -> None:
    known = "no such key; there are anchor, auto_disable_after"
    with pytest.raises(BadJob, match=known) as refusal:
        policy_with(PLAIN, {"interval_s": 60})
    assert refusal.value.key == "interval_s"


def test_former_keys_and_texts_of_durations_are_normalized() -> None:
    given: dict[str, object] = {"run_timeout_s": 60, "backoff_s": ["30s", "1m", 300], "turns": None}
    assert normalized(given) == {"run_timeout": 60, "backoff": (30, 60, 300), "turns": None}
    assert normalized({"min_interval": "90", "usd": "10"}) == {"min_interval": 90, "usd": "10"}
    assert policy_with(PLAIN, {"run_timeout_s": "10m"}).run_timeout == 600
    assert {key.removesuffix("_s") for key in FORMER_KEYS} == DURATIONS


SECONDS = f'must be a time such as "10m", or seconds, from 0 to {YEAR_S:.0f}'
FROM_1_S = f'must be a time such as "10m", or seconds, from 1 to {YEAR_S:.0f}'
RETRIES = "must be a whole number from 0 to 10"
COUNT = "must be a whole number from 1 to 10000"
TIMES = 'must be a list of at most 32 times, such as "5m", or in seconds'
USD = "must be a number from 0 to 1e+06"


@pytest.mark.parametrize(("key", "allowed", "values"), [
    ("on_short", "must be one of reject, clamp", ["shrink"]),
    ("anchor", "must be one of completion, grid, start", [None]),
    ("session", "must be one of job, fresh, main, key", ["JOB"]),
    ("misfire", "must be one of once, skip", [["once"]]),
    ("stagger", "must be true or false", ["yes"]),
    ("tools_in_runs", "must be true or false", [1]),
    ("delete_after_run", "must be true or false", [None]),
    ("retries", RETRIES, [11, -1, 1.0, True, None]),
    ("turns", COUNT, [0]), ("max_per_agent", COUNT, ["1"]), ("history_keep", COUNT, [0]),
    ("backoff", TIMES, [30, "30", [1] * 33]), ("backoff", SECONDS, [[30, -1], [None]]),
    ("run_timeout", SECONDS, [YEAR_S + 1, 10**400, "1e400", "nan", "30 m", False]),
    ("min_interval", SECONDS, [None]),
    ("jitter", "must be a number from 0 to 0.1", [0.11]),
    ("usd", USD, [-0.01, Decimal("NaN"), Decimal("sNaN"), [1]]),
    ("busy_delay", FROM_1_S, [0, 0.5]), ("error_retry", FROM_1_S, [1e-9]),
])  # fmt: skip
def test_a_bad_value_is_refused_with_its_key(key: str, allowed: str, values: list[object]) -> None:
    for value in values:
        with pytest.raises(BadJob) as refusal:
            policy_with(PLAIN, {key: value})
        assert (refusal.value.key, refusal.value.allowed) == (key, allowed), value


def test_limits_and_the_retry_after_an_error_can_be_taken_away() -> None:
    for key in ("turns", "usd", "max_per_agent"):
        limited = replace(PLAIN, turns=1, usd=Decimal(1), max_per_agent=1)
        assert getattr(policy_with(limited, {key: None}), key) is None
    assert policy_with(PROFILES["caco"].policy, {"error_retry": 0}).error_retry == 0


def test_a_scheduled_run_has_ten_turns_half_a_dollar_and_half_an_hour_if_it_is_limited() -> None:
    assert PLAIN.budget == Budget(turns=10, tokens=None, usd=Decimal("0.50"), seconds=1800.0)
    assert policy_with(PLAIN, {"run_timeout": 0}).budget.seconds is None


def test_what_a_model_made_runs_each_minute_at_most_and_is_kept_and_soon_switched_off() -> None:
    made = for_model(PLAIN)
    assert made.min_interval == MODEL_MIN_INTERVAL_S == 60
    assert for_model(PROFILES["caco"].policy).min_interval == 3600
    assert made.auto_disable_after == MODEL_AUTO_DISABLE == 5
    for given, most in ((3, 3), (10, 5), (0, 5)):
        assert for_model(replace(PLAIN, auto_disable_after=given)).auto_disable_after == most
    assert (PLAIN.delete_after_run, made.delete_after_run) == (True, False)


def test_there_are_five_profiles_and_goclaw_is_the_default() -> None:
    assert list(PROFILES) == ["goclaw", "caco", "oxydra", "halo", "herdctl"]
    assert DEFAULT_PROFILE is PROFILES["goclaw"]
    assert [name for name, profile in PROFILES.items() if not profile.enabled] == ["oxydra"]
    for name, profile in PROFILES.items():
        assert profile.name == name
        # A profile has only values that a job could have.
        values = {field.name: getattr(profile.policy, field.name) for field in fields(JobPolicy)}
        assert policy_with(PLAIN, values) == profile.policy


def test_halo_would_reach_its_hour_of_backoff_only_if_it_switched_off_later() -> None:
    """Its document contradicts itself; both settings can be changed on their own."""
    policy = PROFILES["halo"].policy
    assert policy.backoff[-1] == 3600
    assert len(policy.backoff) == policy.auto_disable_after
