"""``[scheduler]``: defaults of all jobs (SPEC CRON-4, CRON-15, CRON-17).

A key that is not set has the value of the profile. Each job can override them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, model_validator

from goclaw_py.config.types import (
    Duration,
    Durations,
    Flag,
    Matching,
    Number,
    Section,
    Whole,
    allowed,
)
from goclaw_py.core.errors import UnknownZone
from goclaw_py.core.time.zones import zone
from goclaw_py.schedule.jobs.policy import (
    DEFAULT_PROFILE,
    PROFILES,
    Anchor,
    Busy,
    FirstRun,
    History,
    JobPolicy,
    Misfire,
    OnShort,
    Profile,
    RetryOn,
)

_YEAR_S: Final = 366 * 86_400.0


def _known_zone(name: str) -> str:
    try:
        zone(name)
    except UnknownZone as error:
        raise allowed(f"must be an IANA time zone such as Europe/Berlin: {error}") from error
    return name


def _not_too_long(on_busy: str) -> str:
    if _delay_s(on_busy) > _YEAR_S:
        raise allowed(f"the delay must be at most {_YEAR_S:.0f} seconds")
    return on_busy


def _delay_s(on_busy: str) -> float:
    return float(on_busy.partition(":")[2] or 0)


Zone = Annotated[str, Matching(r"(?s).*", "text"), AfterValidator(_known_zone)]
OnBusy = Annotated[
    str,
    Matching(
        r"queue|skip|delay(:[1-9][0-9]{0,8})?",
        "queue, skip, or delay:<seconds> such as delay:3600",
    ),
    AfterValidator(_not_too_long),
]


class SchedulerSettings(Section):
    """``[scheduler]``. Times are in seconds once read."""

    profile: Annotated[str, Matching("|".join(PROFILES), f"one of {', '.join(PROFILES)}")] = (
        DEFAULT_PROFILE.name
    )
    """the set of defaults for jobs: goclaw (default), caco, oxydra, halo or herdctl; compared in
    docs/guide/profiles.md"""
    enabled: Annotated[bool | None, Flag()] = None
    """false: no job runs; jobs can still be created and edited"""
    timezone: Zone | None = None
    """the default time zone of jobs and owners, such as UTC"""
    max_jobs: Annotated[int, Whole(1, 100_000)] = 50
    """the maximum number of jobs of one owner; operators have no limit"""
    default_prompt: Annotated[str | None, Matching(r"(?s).*", "text")] = None
    """the prompt of jobs that have none; "": every job needs a prompt"""

    min_interval: Annotated[float | None, Duration(1, _YEAR_S)] = None
    """the minimum time between two runs of a job"""
    on_short: OnShort | None = None
    """what to do with a schedule that runs more often than min_interval: reject it, or clamp: run
    it less often"""
    anchor: Anchor | None = None
    """what intervals are counted from: completion (of the last run), grid or start"""
    first_run: FirstRun | None = None
    """when a job with an interval first runs: after_interval or immediate"""
    retries: Annotated[int | None, Whole(0, 10)] = None
    """the maximum number of immediate retries after a failure; 0: none"""
    retry_on: RetryOn | None = None
    """which failures are retried: transient or any"""
    error_retry: Annotated[float | None, Duration(0, _YEAR_S)] = None
    """after a failure, run again at the next multiple of this time, if that is earlier; 0s: off"""
    backoff: Annotated[tuple[float, ...] | None, Durations(32, Duration(1, _YEAR_S))] = None
    """the minimum delay of the next run after the 1st, 2nd … failure in a row; []: no delay"""
    auto_disable_after: Annotated[int | None, Whole(0, 1000)] = None
    """the number of failures in a row after which a job is disabled and its owner told; 0: never"""
    misfire: Misfire | None = None
    """what to do about missed runs. once: run the job once to catch up; skip: do not"""
    misfire_grace: Annotated[float | None, Duration(1, _YEAR_S)] = None
    """how late a run may start; a run that is later counts as missed"""
    on_busy: OnBusy | None = None
    """what a job does when its conversation or agent is busy. queue: wait; skip: skip this run;
    delay:<seconds>: try again after this time"""
    busy_delay: Annotated[float | None, Duration(1, _YEAR_S)] = None
    """the time to wait before trying again, with on_busy = "delay"
    """
    session: Literal["job", "fresh", "main"] | None = None
    """the conversation in which a job runs. job: one of its own; fresh: a new one for each run;
    main: the one of its chat"""
    retry_after_effects: Annotated[bool | None, Flag()] = None
    """true: also retry an attempt that called tools with side effects"""
    delete_after_run: Annotated[bool | None, Flag()] = None
    """true: delete a one-time job after a successful run"""
    history_keep: Annotated[int | None, Whole(1, 10_000)] = None
    """the number of runs to keep in the history of each job"""
    history_on_delete: History | None = None
    """what happens to the history of a deleted job: keep or delete"""
    run_timeout: Annotated[float | None, Duration(1, _YEAR_S)] = None
    """the time limit of a run"""
    turns: Annotated[int | None, Whole(0, 10_000)] = None
    """the maximum number of model requests of a run; 0: no limit"""
    usd: Annotated[float | None, Number(0, 100_000)] = None
    """the maximum cost of a run in US dollars; 0: no limit"""
    jitter: Annotated[float | None, Number(0, 10)] = None
    """the maximum random delay of a run, in percent of the interval; at most 10"""
    stagger: Annotated[bool | None, Flag()] = None
    """true: spread jobs with the same schedule so that they do not start at the same time"""
    max_per_agent: Annotated[int | None, Whole(0, 10_000)] = None
    """the maximum number of concurrent jobs of one agent; 0: no limit"""
    tools_in_runs: Annotated[bool | None, Flag()] = None
    """true: runs of jobs may create jobs"""

    @model_validator(mode="after")
    def _names_one_delay(self) -> Self:
        if self.on_busy and _delay_s(self.on_busy) and self.busy_delay is not None:
            raise allowed('the delay is set twice: write on_busy = "delay", or remove busy_delay')
        return self

    def overrides(self) -> dict[str, object]:
        """Return the values that are set, with the names and units of ``JobPolicy``."""
        given = {field.name: getattr(self, field.name) for field in fields(JobPolicy)}
        given = {key: value for key, value in given.items() if value is not None}
        # TOML has no null; 0 means no limit.
        for key in ("turns", "usd", "max_per_agent"):
            if given.get(key) == 0:
                given[key] = None
        if self.jitter is not None:
            given["jitter"] = self.jitter / 100
        if self.on_busy is not None:
            given["on_busy"] = Busy(self.on_busy.partition(":")[0])
            if delay_s := _delay_s(self.on_busy):
                given["busy_delay"] = delay_s
        return given


def chosen_profile(section: object) -> Profile:
    """Return the profile that the section selects, before the section is validated."""
    if isinstance(section, SchedulerSettings):
        return PROFILES[section.profile]
    name = section.get("profile") if isinstance(section, Mapping) else None
    # An unknown name is reported when the section is validated.
    return PROFILES.get(name, DEFAULT_PROFILE) if isinstance(name, str) else DEFAULT_PROFILE
