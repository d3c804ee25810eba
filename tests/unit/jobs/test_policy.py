"""The policies of jobs: the five profiles, and keys that settings and jobs change.

SPEC AGENT-5, CRON-8, CRON-9, CRON-15, CRON-17.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from decimal import Decimal

import pytest

from goclaw_py.jobs.policy import (
    DEFAULT_PROFILE,
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
    policy_with,
)
from goclaw_py.model.errors import BadJob

PLAIN = JobPolicy()
YEAR_S = 366 * 86_400

CHANGES: Mapping[str, tuple[object, object]] = {
    "min_interval_s": (90, 90.0),
    "on_short": ("clamp", OnShort.CLAMP),
    "anchor": ("grid", Anchor.GRID),
    "first_run": ("immediate", FirstRun.IMMEDIATE),
    "retries": (0, 0),
    "retry_on": (RetryOn.ANY, RetryOn.ANY),
    "error_retry_s": ("1800", 1800.0),
    "backoff_s": ([30, "60", 300.5], (30.0, 60.0, 300.5)),
    "auto_disable_after": (5, 5),
    "misfire": ("skip", Misfire.SKIP),
    "misfire_grace_s": (0, 0.0),
    "on_busy": ("delay", Busy.DELAY),
    "busy_delay_s": (60, 60.0),
    "session": ("key", SessionKind.KEY),
    "delete_after_run": (False, False),
    "history_keep": (20, 20),
    "history_on_delete": ("delete", History.DELETE),
    "run_timeout_s": (7200, 7200.0),
    "turns": (None, None),
    "usd": ("0.1", Decimal("0.1")),
    "jitter": (0.1, 0.1),
    "stagger": (True, True),
    "max_per_agent": (1, 1),
    "retry_after_effects": (True, True),
    "tools_in_runs": (True, True),
}


# ---------------------------------------------------------------------- keys


def test_every_key_of_a_policy_is_tried_here() -> None:
    assert set(CHANGES) == {field.name for field in fields(JobPolicy)}


@pytest.mark.parametrize("key", CHANGES)
def test_any_key_can_be_changed_alone(key: str) -> None:
    given, read = CHANGES[key]
    changed = policy_with(PLAIN, {key: given})
    assert getattr(changed, key) == read
    assert type(getattr(changed, key)) is type(read)
    assert replace(changed, **{key: getattr(PLAIN, key)}) == PLAIN
    assert changed != PLAIN


def test_no_changes_leave_the_policy_as_it_is() -> None:
    assert policy_with(PLAIN, {}) == PLAIN


def test_a_key_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(
        BadJob, match="no such key; there are anchor, auto_disable_after"
    ) as refusal:
        policy_with(PLAIN, {"min_interval": 60})
    assert refusal.value.key == "min_interval"


@pytest.mark.parametrize(("key", "value", "allowed"), [
    ("on_short", "shrink", "must be one of reject, clamp"),
    ("anchor", None, "must be one of completion, grid, start"),
    ("session", "JOB", "must be one of job, fresh, main, key"),
    ("misfire", ["once"], "must be one of once, skip"),
    ("stagger", "yes", "must be true or false"),
    ("tools_in_runs", 1, "must be true or false"),
    ("delete_after_run", None, "must be true or false"),
    ("retries", 11, "must be a whole number from 0 to 10"),
    ("retries", -1, "must be a whole number from 0 to 10"),
    ("retries", 1.0, "must be a whole number from 0 to 10"),
    ("retries", True, "must be a whole number from 0 to 10"),
    ("retries", None, "must be a whole number from 0 to 10"),
    ("turns", 0, "must be a whole number from 1 to 10000"),
    ("max_per_agent", "1", "must be a whole number from 1 to 10000"),
    ("history_keep", 0, "must be a whole number from 1 to 10000"),
    ("backoff_s", 30, "must be a list of at most 32 times in seconds"),
    ("backoff_s", "30", "must be a list of at most 32 times in seconds"),
    ("backoff_s", [1] * 33, "must be a list of at most 32 times in seconds"),
    ("backoff_s", [30, -1], f"must be a number from 0 to {YEAR_S:g}"),
    ("backoff_s", [None], f"must be a number from 0 to {YEAR_S:g}"),
    ("run_timeout_s", YEAR_S + 1, f"must be a number from 0 to {YEAR_S:g}"),
    ("run_timeout_s", 10**400, f"must be a number from 0 to {YEAR_S:g}"),
    ("run_timeout_s", "1e400", f"must be a number from 0 to {YEAR_S:g}"),
    ("run_timeout_s", "nan", f"must be a number from 0 to {YEAR_S:g}"),
    ("run_timeout_s", "30m", f"must be a number from 0 to {YEAR_S:g}"),
    ("run_timeout_s", False, f"must be a number from 0 to {YEAR_S:g}"),
    ("min_interval_s", None, f"must be a number from 0 to {YEAR_S:g}"),
    ("jitter", 0.11, "must be a number from 0 to 0.1"),
    ("usd", -0.01, "must be a number from 0 to 1e+06"),
    ("usd", Decimal("NaN"), "must be a number from 0 to 1e+06"),
    ("usd", Decimal("sNaN"), "must be a number from 0 to 1e+06"),
    ("usd", [1], "must be a number from 0 to 1e+06"),
    ("busy_delay_s", 0, f"must be a number from 1 to {YEAR_S:g}"),
    ("busy_delay_s", 0.5, f"must be a number from 1 to {YEAR_S:g}"),
    ("error_retry_s", 1e-9, f"must be a number from 1 to {YEAR_S:g}"),
])  # fmt: skip
def test_a_bad_value_is_refused_with_its_key(key: str, value: object, allowed: str) -> None:
    with pytest.raises(BadJob) as refusal:
        policy_with(PLAIN, {key: value})
    assert (refusal.value.key, refusal.value.allowed) == (key, allowed)


@pytest.mark.parametrize("key", ["turns", "usd", "max_per_agent"])
def test_a_limit_can_be_taken_away(key: str) -> None:
    limited = replace(PLAIN, turns=1, usd=Decimal(1), max_per_agent=1)
    assert getattr(policy_with(limited, {key: None}), key) is None


def test_the_retry_after_an_error_can_be_switched_off() -> None:
    assert policy_with(PROFILES["caco"].policy, {"error_retry_s": 0}).error_retry_s == 0


# ---------------------------------------------------------------------- budgets


def test_a_scheduled_run_has_ten_turns_and_half_a_dollar() -> None:
    budget = PLAIN.budget
    assert (budget.turns, budget.usd, budget.seconds) == (10, Decimal("0.50"), 1800.0)
    assert budget.tokens is None


def test_a_run_without_a_time_limit_has_no_seconds_to_use_up() -> None:
    assert policy_with(PLAIN, {"run_timeout_s": 0}).budget.seconds is None


# ---------------------------------------------------------------------- jobs made by models


def test_a_model_may_not_ask_for_more_than_one_run_a_minute() -> None:
    assert for_model(PLAIN).min_interval_s == MODEL_MIN_INTERVAL_S == 60
    assert for_model(PROFILES["caco"].policy).min_interval_s == 3600


def test_what_a_model_made_is_switched_off_after_five_failures() -> None:
    assert for_model(PLAIN).auto_disable_after == MODEL_AUTO_DISABLE == 5
    assert for_model(replace(PLAIN, auto_disable_after=3)).auto_disable_after == 3


def test_what_a_model_made_is_kept_after_its_run() -> None:
    assert PLAIN.delete_after_run
    assert not for_model(PLAIN).delete_after_run


# ---------------------------------------------------------------------- profiles


def test_there_are_five_profiles_and_goclaw_is_the_default() -> None:
    assert list(PROFILES) == ["goclaw", "caco", "oxydra", "halo", "herdctl"]
    assert DEFAULT_PROFILE is PROFILES["goclaw"]
    assert all(name == profile.name for name, profile in PROFILES.items())


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_has_only_values_that_a_job_could_have(name: str) -> None:
    policy = PROFILES[name].policy
    values = {field.name: getattr(policy, field.name) for field in fields(policy)}
    assert policy_with(PLAIN, values) == policy


def test_only_oxydra_is_switched_off_until_somebody_switches_it_on() -> None:
    assert [name for name, profile in PROFILES.items() if not profile.enabled] == ["oxydra"]


def test_halo_would_reach_its_hour_of_backoff_only_if_it_switched_off_later() -> None:
    """Its document contradicts itself; both settings can be changed on their own."""
    policy = PROFILES["halo"].policy
    assert policy.backoff_s[-1] == 3600
    assert len(policy.backoff_s) == policy.auto_disable_after
