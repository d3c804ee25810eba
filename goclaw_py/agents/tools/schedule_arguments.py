"""The arguments of the schedule tools: schemas, and parsing of cadences (SPEC AGENT-6).

The descriptions are those of the scheduler from which these tools are taken, with the configured
numbers instead of its own. Limits are checked when jobs are created.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import Field, create_model

from goclaw_py.agents.tools.arguments import NOT_BLANK, Arguments
from goclaw_py.core.errors import ToolFailed
from goclaw_py.core.text import truncate
from goclaw_py.core.time.datetimes import strict_moment
from goclaw_py.schedule.jobs.policy import Profile, min_interval_for_model_s
from goclaw_py.schedule.jobs.schedule import MAX_INTERVAL, At, Cron, Every, Schedule

MOST_RESULTS: Final = 50
FEW_RESULTS: Final = 20
MAX_OFFSET: Final = 1_000_000_000

_SHOWN_CHARS: Final = 60
_SECONDS: Final = re.compile(r"[0-9]+")

CadenceType = Literal["cron", "once", "interval"]
Notification = Literal["always", "conditional", "never"]


@dataclass(frozen=True, slots=True)
class Figures:
    """The values of settings that appear in the descriptions.

    Args:
        zone: The default time zone of cron schedules, "" for that of the machine.
        minimum_s: The minimum number of seconds between two runs of a model's schedule.
    """

    zone: str = "UTC"
    minimum_s: float = 60.0

    @classmethod
    def of(cls, profile: Profile) -> Figures:
        """Return the values of a profile."""
        return cls(profile.zone, min_interval_for_model_s(profile.policy))


class Creation(Arguments):
    """Arguments of ``schedule_create``."""

    name: str | None = Field(
        default=None, description="Optional human-readable label for the schedule"
    )
    goal: Annotated[str, NOT_BLANK] = Field(
        description="Complete, self-contained instruction to execute. Write as if briefing an "
        "agent with no prior context — it runs independently without conversational history."
    )
    cadence_type: CadenceType
    cadence_value: str = Field(
        description="The cadence specification. For cron: '0 8 * * *' (5-field). For once: "
        "'2026-03-01T09:00:00Z' (ISO 8601). For interval: '3600' (seconds)."
    )
    timezone: str | None
    notification: Notification | None = Field(
        default=None,
        description="When to notify. 'always': send every result. 'conditional': only if result "
        "warrants attention. 'never': store silently. Default: 'always'.",
    )


def creation(figures: Figures) -> type[Creation]:
    """Return ``Creation`` with these values in its descriptions."""
    zone = figures.zone or "the zone of this machine"
    example = figures.zone or "Europe/Berlin"
    kind: Any = Field(
        description="Type of schedule: 'cron' (5-field expression), 'once' (ISO 8601 timestamp), "
        f"or 'interval' (seconds between runs, minimum {figures.minimum_s:g})"
    )
    where: Any = Field(
        default=None,
        description=f"IANA timezone for cron schedules (e.g. '{example}', 'US/Eastern'). Ignored "
        f"for 'once' and 'interval'. Default: {zone}.",
    )
    return create_model(
        "Creation",
        __base__=Creation,
        cadence_type=(CadenceType, kind),
        timezone=(str | None, where),
    )


class Search(Arguments):
    """Arguments of ``schedule_search``. A limit above the maximum means the maximum."""

    name: str | None = Field(
        default=None, description="Filter by name (partial, case-insensitive match)"
    )
    status: Literal["active", "paused", "completed", "disabled"] | None = Field(
        default=None, description="Filter by status"
    )
    cadence_type: CadenceType | None = Field(default=None, description="Filter by cadence type")
    notification: Notification | None = Field(
        default=None, description="Filter by notification policy"
    )
    created_after: str | None = Field(
        default=None, description="Only schedules created after this time (ISO 8601 with offset)"
    )
    created_before: str | None = Field(
        default=None, description="Only schedules created before this time (ISO 8601 with offset)"
    )
    next_run_before: str | None = Field(
        default=None,
        description="Only schedules that run next before this time (ISO 8601 with offset)",
    )
    limit: int | None = Field(
        default=None,
        description=f"Max results to return (default {FEW_RESULTS}, max {MOST_RESULTS})",
    )
    offset: int | None = Field(
        default=None,
        description="Pagination offset (default 0). Use to fetch subsequent pages.",
    )


class Edit(Arguments):
    """Arguments of ``schedule_edit``. Fields that are missing or null stay unchanged."""

    schedule_id: str = Field(description="ID of the schedule to edit")
    name: str | None = Field(default=None, description="New name (set to empty string to clear)")
    goal: Annotated[str, NOT_BLANK] | None = Field(
        default=None,
        description="New goal/prompt. Write as a complete, self-contained instruction.",
    )
    cadence_type: CadenceType | None = Field(
        default=None, description="New cadence type (must also provide cadence_value)"
    )
    cadence_value: str | None = Field(
        default=None, description="New cadence value (required if cadence_type is provided)"
    )
    timezone: str | None = Field(default=None, description="New timezone for cron schedules")
    notification: Notification | None = Field(default=None, description="New notification policy")
    status: Literal["active", "paused"] | None = Field(
        default=None, description="Set to 'paused' to pause, 'active' to resume"
    )


class Deletion(Arguments):
    """Arguments of ``schedule_delete``."""

    schedule_id: str = Field(description="ID of the schedule to delete permanently")


def bad_cadence(reason: str) -> ToolFailed:
    """Return the error for an invalid cadence."""
    return ToolFailed(f"invalid schedule cadence: {reason}")


def read_cadence(kind: CadenceType, value: str, *, now: datetime, figures: Figures) -> Schedule:
    """Parse a cadence; ``now`` is the local time of the user.

    Does not check whether such a job can run, or is allowed. Raises ``ToolFailed`` or
    ``BadSchedule``.
    """
    text = " ".join(value.split())
    match kind:
        case "cron":
            return Cron(text)
        case "once":
            return At(strict_moment(text, now=now, zone=str(now.tzinfo)))
        case "interval":
            return Every(_interval(text, figures))


def _interval(text: str, figures: Figures) -> timedelta:
    if not _SECONDS.fullmatch(text):
        shown = truncate(text, _SHOWN_CHARS)
        raise bad_cadence(f"interval {shown!r} must be a whole number of seconds, such as 3600")
    digits = text.lstrip("0") or "0"
    most = int(MAX_INTERVAL.total_seconds())
    # int() rejects thousands of digits.
    if len(digits) > len(str(most)) or int(digits) > most:
        raise bad_cadence(f"interval {truncate(digits, _SHOWN_CHARS)}s is above maximum {most}s")
    if digits == "0":
        raise bad_cadence(f"interval 0s is below minimum {figures.minimum_s:g}s")
    return timedelta(seconds=int(digits))
