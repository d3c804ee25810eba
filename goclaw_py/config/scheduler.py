"""``[scheduler]``: how jobs behave (SPEC CRON-4, CRON-15, CRON-17).

A key that is not set is as the profile has it. Each job may have values of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from goclaw_py.common.timezones import zone
from goclaw_py.config.section import Section
from goclaw_py.config.types import (
    Duration,
    Durations,
    Flag,
    Matching,
    Number,
    Whole,
    allowed,
)
from goclaw_py.jobs.policy import (
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
from goclaw_py.model.errors import UnknownZone

_YEAR_S: Final = 366 * 86_400.0


def _known_zone(name: str) -> str:
    try:
        zone(name)
    except UnknownZone as error:
        raise allowed(f"must be the name of a zone such as Europe/Berlin: {error}") from error
    return name


def _not_too_long(on_busy: str) -> str:
    if _delay_s(on_busy) > _YEAR_S:
        raise allowed(f"must delay by at most {_YEAR_S:.0f} seconds")
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

    profile: Annotated[str, Matching("|".join(PROFILES), f"one of {', '.join(PROFILES)}")] = Field(
        default=DEFAULT_PROFILE.name,
        description="how jobs behave where nothing else is set: goclaw (default), caco, oxydra, "
        "halo or herdctl; docs/guide/profiles.md has them side by side",
    )
    enabled: Annotated[bool | None, Flag()] = Field(
        default=None, description="false: no job runs, though jobs can be edited"
    )
    timezone: Zone | None = Field(
        default=None, description="the zone of jobs and owners that have none, such as UTC"
    )
    max_jobs: Annotated[int, Whole(1, 100_000)] = Field(
        default=50, description="jobs that an owner may have; operators make as many as they want"
    )
    default_prompt: Annotated[str | None, Matching(r"(?s).*", "text")] = Field(
        default=None, description='what a job says that has no prompt; "": it needs one'
    )

    min_interval_s: Annotated[float | None, Duration(1, _YEAR_S)] = Field(
        default=None, alias="min_interval", description="the least time between two runs of a job"
    )
    on_short: OnShort | None = Field(
        default=None,
        description="a schedule that is more frequent is refused: reject; or slowed down: clamp",
    )
    anchor: Anchor | None = Field(
        default=None,
        description="from where an interval counts: completion (of the last run), grid or start",
    )
    first_run: FirstRun | None = Field(
        default=None, description="of a job with an interval: after_interval or immediate"
    )
    retries: Annotated[int | None, Whole(0, 10)] = Field(
        default=None, description="attempts that may follow a failed one at once; 0: none"
    )
    retry_on: RetryOn | None = Field(
        default=None, description="after which failures: transient or any"
    )
    error_retry_s: Annotated[float | None, Duration(0, _YEAR_S)] = Field(
        default=None,
        alias="error_retry",
        description="after a failure the next run is at the next multiple of this; 0s: as planned",
    )
    backoff_s: Annotated[tuple[float, ...] | None, Durations(32, Duration(1, _YEAR_S))] = Field(
        default=None,
        alias="backoff",
        description="how long the next run waits after the 1st, 2nd … failure; []: not at all",
    )
    auto_disable_after: Annotated[int | None, Whole(0, 1000)] = Field(
        default=None, description="failures in a row that switch a job off; 0: none do"
    )
    misfire: Misfire | None = Field(
        default=None, description="a run that was missed is made up for once, or not: skip"
    )
    misfire_grace_s: Annotated[float | None, Duration(1, _YEAR_S)] = Field(
        default=None, alias="misfire_grace", description="how late a run may be: later is missed"
    )
    on_busy: OnBusy | None = Field(
        default=None,
        description="if its conversation or agent is busy a job waits: queue; or leaves this run "
        "out: skip; or tries again later: delay:<seconds>",
    )
    busy_delay_s: Annotated[float | None, Duration(1, _YEAR_S)] = Field(
        default=None, alias="busy_delay", description='how much later, with on_busy = "delay"'
    )
    session: Literal["job", "fresh", "main"] | None = Field(
        default=None,
        description="the conversation of a job: its own, a fresh one for each run, or main, the "
        "chat's",
    )
    retry_after_effects: Annotated[bool | None, Flag()] = Field(
        default=None,
        description="an attempt may be repeated that had called tools that change something",
    )
    delete_after_run: Annotated[bool | None, Flag()] = Field(
        default=None, description="a job that runs once is deleted when it went well"
    )
    history_keep: Annotated[int | None, Whole(1, 10_000)] = Field(
        default=None, description="runs of a job that the log keeps"
    )
    history_on_delete: History | None = Field(
        default=None, description="the log of a job that is deleted: keep or delete"
    )
    run_timeout_s: Annotated[float | None, Duration(1, _YEAR_S)] = Field(
        default=None, alias="run_timeout", description="how long a run may take"
    )
    turns: Annotated[int | None, Whole(0, 10_000)] = Field(
        default=None, description="model requests of a run; 0: no limit"
    )
    usd: Annotated[float | None, Number(0, 100_000)] = Field(
        default=None, description="US dollars that a run may cost; 0: no limit"
    )
    jitter: Annotated[float | None, Number(0, 10)] = Field(
        default=None, description="percent of the interval by which a run may be later, at most 10"
    )
    stagger: Annotated[bool | None, Flag()] = Field(
        default=None, description="true: jobs with equal schedules do not run all at once"
    )
    max_per_agent: Annotated[int | None, Whole(0, 10_000)] = Field(
        default=None, description="jobs of one agent that run at once; 0: no limit"
    )
    tools_in_runs: Annotated[bool | None, Flag()] = Field(
        default=None, description="true: a run of a job may make jobs"
    )

    @model_validator(mode="after")
    def _names_one_delay(self) -> Self:
        if self.on_busy and _delay_s(self.on_busy) and self.busy_delay_s is not None:
            raise allowed('must have one delay: on_busy = "delay", or no busy_delay')
        return self

    def overrides(self) -> dict[str, object]:
        """What is set of a ``JobPolicy``, in its units."""
        given = {field.name: getattr(self, field.name) for field in fields(JobPolicy)}
        given = {key: value for key, value in given.items() if value is not None}
        # The file has no word for nothing.
        for key in ("turns", "usd", "max_per_agent"):
            if given.get(key) == 0:
                given[key] = None
        if self.jitter is not None:
            given["jitter"] = self.jitter / 100
        if self.on_busy is not None:
            given["on_busy"] = Busy(self.on_busy.partition(":")[0])
            if delay_s := _delay_s(self.on_busy):
                given["busy_delay_s"] = delay_s
        return given


def chosen_profile(section: object) -> Profile:
    """The profile that the section chooses, before anything of it is checked."""
    if isinstance(section, SchedulerSettings):
        return PROFILES[section.profile]
    name = section.get("profile") if isinstance(section, Mapping) else None
    # A name that does not exist is told where it is checked.
    return PROFILES.get(name, DEFAULT_PROFILE) if isinstance(name, str) else DEFAULT_PROFILE
