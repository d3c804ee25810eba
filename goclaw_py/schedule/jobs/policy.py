"""The policies of jobs around their runs, and the five profiles (SPEC CRON-17).

A profile copies the behaviour of a comparable scheduler; ``docs/guide/profiles.md`` compares them.
The settings choose one and may change single keys; each job may change them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from difflib import get_close_matches
from enum import StrEnum
from typing import Final

from goclaw_py.core.budget import Budget
from goclaw_py.core.errors import BadInterval, BadJob
from goclaw_py.core.time import durations

MIN_INTERVAL_S: Final = 1.0
"""The lower limit for all settings and jobs (SPEC CRON-15)."""
MODEL_MIN_INTERVAL_S: Final = 60.0
MODEL_AUTO_DISABLE: Final = 5
"""For jobs of models, unless the profile is stricter (SPEC CRON-8, CRON-15)."""
_AUTO_DISABLE: Final = 10
"""For jobs of operators. Texts of errors are not compared: many contain the id of a request."""


class Anchor(StrEnum):
    """The start of the interval of an ``every`` job (SPEC CRON-3)."""

    COMPLETION = "completion"
    GRID = "grid"
    START = "start"


class FirstRun(StrEnum):
    """The first run of an ``every`` job."""

    AFTER_INTERVAL = "after_interval"
    IMMEDIATE = "immediate"


class OnShort(StrEnum):
    """How a schedule that is more frequent than allowed is handled (SPEC CRON-15)."""

    REJECT = "reject"
    CLAMP = "clamp"


class RetryOn(StrEnum):
    """The failures that are retried (SPEC CRON-7)."""

    TRANSIENT = "transient"
    ANY = "any"


class Misfire(StrEnum):
    """How an occurrence is handled that no node claimed in time (SPEC CRON-6)."""

    ONCE = "once"
    SKIP = "skip"


class Busy(StrEnum):
    """What a due job does while its session or agent is busy (SPEC CRON-10)."""

    QUEUE = "queue"
    SKIP = "skip"
    DELAY = "delay"


class SessionKind(StrEnum):
    """The session that a job runs in (SPEC CRON-14). ``key``: the job names it."""

    JOB = "job"
    FRESH = "fresh"
    MAIN = "main"
    KEY = "key"


class History(StrEnum):
    """Whether the log is kept when the job is deleted (SPEC CRON-9)."""

    KEEP = "keep"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class JobPolicy:
    """The policy of a job. Times are in seconds; 0 or None turns an option off.

    Args:
        min_interval: The shortest time between two firings.
        backoff: The delay of the next run after the 1st, 2nd … failure in a row; the last value
            applies to all further ones. It never makes a run earlier.
        retry_after_effects: Whether a retry may follow an attempt that called tools with side
            effects; otherwise the failure is reported (SPEC AGENT-9).
        error_retry: After a failure the next run is at the next multiple of this, if that is
            earlier than the regular run.
        auto_disable_after: The number of failures in a row that disables a job.
        busy_delay: The delay of ``Busy.DELAY``.
        jitter: The part of the interval, 0 to 0.1, that is added to each time except those of
            ``at``.
        stagger: Whether equal schedules are spread over that part of their interval.
        max_per_agent: The number of concurrent jobs of an agent.
        tools_in_runs: Whether scheduled runs may schedule jobs.
    """

    min_interval: float = 1.0
    on_short: OnShort = OnShort.REJECT
    anchor: Anchor = Anchor.COMPLETION
    first_run: FirstRun = FirstRun.AFTER_INTERVAL
    retries: int = 3
    retry_on: RetryOn = RetryOn.TRANSIENT
    retry_after_effects: bool = False
    error_retry: float = 0.0
    backoff: tuple[float, ...] = ()
    auto_disable_after: int = 0
    misfire: Misfire = Misfire.ONCE
    misfire_grace: float = 60.0
    on_busy: Busy = Busy.QUEUE
    busy_delay: float = 3600.0
    session: SessionKind = SessionKind.JOB
    delete_after_run: bool = True
    history_keep: int = 200
    history_on_delete: History = History.KEEP
    run_timeout: float = 1800.0
    turns: int | None = 10
    usd: Decimal | None = Decimal("0.50")
    jitter: float = 0.0
    stagger: bool = False
    max_per_agent: int | None = None
    tools_in_runs: bool = False

    @property
    def budget(self) -> Budget:
        """The budget of one scheduled run (SPEC AGENT-5)."""
        return Budget(turns=self.turns, usd=self.usd, seconds=self.run_timeout or None)


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile: its default policy and its other rules.

    Args:
        zone: The default time zone of jobs; "" is that of the machine.
        cron_fields: The allowed numbers of fields in a cron expression.
        default_prompt: The prompt of jobs without one, "" if they need one.
        lane: The size of the lane ``cron``.
        shutdown_wait_s: How long runs may continue at a shutdown.
    """

    name: str
    policy: JobPolicy
    enabled: bool = True
    zone: str = "UTC"
    cron_fields: tuple[int, ...] = (5, 6)
    default_prompt: str = ""
    lane: int = 1
    shutdown_wait_s: float = 30.0


_MANY: Final = 1000

PROFILES: Final[Mapping[str, Profile]] = {
    profile.name: profile
    for profile in (
        Profile("goclaw", JobPolicy(auto_disable_after=_AUTO_DISABLE)),
        Profile(
            "caco",
            JobPolicy(
                min_interval=3600.0,
                anchor=Anchor.START,
                retries=0,
                error_retry=1800.0,
                on_busy=Busy.DELAY,
                busy_delay=3600.0,
                turns=None,
                usd=None,
            ),
            cron_fields=(5,),
            shutdown_wait_s=0.0,
        ),
        Profile(
            "oxydra",
            JobPolicy(
                min_interval=60.0,
                retries=0,
                auto_disable_after=5,
                delete_after_run=False,
                history_keep=20,
                history_on_delete=History.DELETE,
                tools_in_runs=True,
            ),
            enabled=False,
            zone="Asia/Kolkata",
            cron_fields=(5,),
            lane=2,
            shutdown_wait_s=0.0,
        ),
        Profile(
            "halo",
            JobPolicy(
                min_interval=10.0,
                on_short=OnShort.CLAMP,
                anchor=Anchor.GRID,
                retries=0,
                backoff=(30.0, 60.0, 300.0, 900.0, 3600.0),
                auto_disable_after=5,
                on_busy=Busy.SKIP,
                delete_after_run=False,
                history_on_delete=History.DELETE,
                run_timeout=7200.0,
                turns=None,
                usd=None,
            ),
            zone="",
            lane=_MANY,
            shutdown_wait_s=0.0,
        ),
        Profile(
            "herdctl",
            JobPolicy(
                first_run=FirstRun.IMMEDIATE,
                retries=0,
                # The document skips, and asks again each second: what is due waits.
                on_busy=Busy.QUEUE,
                jitter=0.0,
                max_per_agent=1,
                turns=None,
                usd=None,
            ),
            default_prompt="Execute scheduled task",
            lane=_MANY,
        ),
    )
}
"""The profiles by name. Values that a source does not define are those of ``goclaw``."""

DEFAULT_PROFILE: Final = PROFILES["goclaw"]

_KEYS: Final = frozenset(field.name for field in fields(JobPolicy))

DURATIONS: Final = frozenset(
    {"min_interval", "error_retry", "backoff", "misfire_grace", "busy_delay", "run_timeout"}
)
"""Keys whose values are in seconds, or texts such as ``10m`` until they are normalized."""

FORMER_KEYS: Final[Mapping[str, str]] = {f"{key}_s": key for key in DURATIONS}
"""Keys before 0.1.0, with those of today. Requests may use them until 1.0."""

Overrides = Mapping[str, str | int | float | bool | tuple[float, ...] | None]
"""The policy keys that a job sets itself; durations in seconds."""


def normalized(overrides: Mapping[str, object]) -> dict[str, object]:
    """Return overrides with the keys of today, and with durations in seconds.

    Values that are no durations stay as they are: ``policy_with`` refuses them.
    """
    named = {FORMER_KEYS.get(key, key): value for key, value in overrides.items()}
    return {key: _seconds(one) if key in DURATIONS else one for key, one in named.items()}


def _seconds(value: object) -> object:
    if isinstance(value, list | tuple):
        return tuple(map(_seconds, value))
    if isinstance(value, str):
        with suppress(BadInterval):
            return durations.read(value.strip()).total_seconds()
        with suppress(ValueError):
            return float(value)
    return value


def policy_with(policy: JobPolicy, overrides: Mapping[str, object]) -> JobPolicy:
    """Return the policy with some keys changed. Raises ``BadJob`` with the key."""
    if not overrides:
        return policy
    changed: dict[str, object] = {}
    for key, value in normalized(overrides).items():
        if key not in _KEYS:
            near = get_close_matches(key, sorted(_KEYS), n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise BadJob(key, f"no such key; there are {', '.join(sorted(_KEYS))}{hint}")
        changed[key] = _read(key, value)
    return replace(policy, **changed)  # type: ignore[arg-type]  # each was read by its kind


def spaced_by(policy: JobPolicy, least_s: float) -> JobPolicy:
    """Return the policy with at least this time between two firings, and at least a second."""
    least_s = max(least_s, MIN_INTERVAL_S)
    return policy if policy.min_interval >= least_s else replace(policy, min_interval=least_s)


def min_interval_for_model_s(policy: JobPolicy) -> float:
    """Return the minimum number of seconds between two runs of a model's job (SPEC CRON-8)."""
    return max(policy.min_interval, MODEL_MIN_INTERVAL_S)


def for_model(policy: JobPolicy) -> JobPolicy:
    """Return the stricter policy for jobs of models (SPEC CRON-8, CRON-9, CRON-15)."""
    most = MODEL_AUTO_DISABLE
    return replace(
        policy,
        min_interval=min_interval_for_model_s(policy),
        auto_disable_after=min(policy.auto_disable_after or most, most),
        delete_after_run=False,
    )


_ENUMS: Final[Mapping[str, type[StrEnum]]] = {
    "on_short": OnShort,
    "anchor": Anchor,
    "first_run": FirstRun,
    "retry_on": RetryOn,
    "misfire": Misfire,
    "on_busy": Busy,
    "session": SessionKind,
    "history_on_delete": History,
}
_FLAGS: Final = frozenset({"delete_after_run", "retry_after_effects", "stagger", "tools_in_runs"})
_COUNTS: Final[Mapping[str, tuple[int, int]]] = {
    "retries": (0, 10),
    "auto_disable_after": (0, 1000),
    "history_keep": (1, 10_000),
    "turns": (1, 10_000),
    "max_per_agent": (1, 10_000),
}
_OPTIONAL: Final = frozenset({"turns", "usd", "max_per_agent"})
_YEAR_S: Final = 366 * 86_400.0
_MOST: Final[Mapping[str, float]] = {"jitter": 0.1, "usd": 1e6}
_NOT_AT_ONCE: Final = frozenset({"busy_delay", "error_retry"})
"""Values below a second would make a job due again and again without a pause."""


def _read(key: str, value: object) -> object:
    """Parse a policy value according to its key. Raises ``BadJob``."""
    if value is None and key in _OPTIONAL:
        return None
    if key in _ENUMS:
        return _member(key, value)
    if key in _FLAGS:
        if not isinstance(value, bool):
            raise BadJob(key, "must be true or false")
        return value
    if key in _COUNTS:
        low, high = _COUNTS[key]
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise BadJob(key, f"must be a whole number from {low} to {high}")
        return value
    if key == "backoff":
        if not isinstance(value, list | tuple) or len(value) > 32:
            raise BadJob(key, 'must be a list of at most 32 times, such as "5m", or in seconds')
        return tuple(_number(key, each, _YEAR_S) for each in value)
    if key == "usd":
        return Decimal(str(_amount(key, value)))
    return _amount(key, value)


def _member(key: str, value: object) -> StrEnum:
    try:
        return _ENUMS[key](str(value))
    except ValueError:
        names = ", ".join(member.value for member in _ENUMS[key])
        raise BadJob(key, f"must be one of {names}") from None


def _amount(key: str, value: object) -> float:
    most = _MOST.get(key, _YEAR_S)
    amount = _number(key, value, most)
    off = amount == 0 and key != "busy_delay"
    if key in _NOT_AT_ONCE and amount < 1 and not off:
        raise BadJob(key, _allowed(key, 1, most))
    return amount


def _number(key: str, value: object, most: float) -> float:
    if isinstance(value, str | Decimal):
        try:
            value = float(value)
        except ValueError:
            value = None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BadJob(key, _allowed(key, 0, most))
    # A NaN is not between two numbers either.
    if not 0 <= value <= most:
        raise BadJob(key, _allowed(key, 0, most))
    return float(value)


def _allowed(key: str, low: int, most: float) -> str:
    if key in DURATIONS:
        return f'must be a time such as "10m", or seconds, from {low} to {most:.0f}'
    return f"must be a number from {low} to {most:g}"
