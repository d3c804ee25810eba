"""The error texts of *caco* (SPEC CRON-19)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from goclaw_py.core.errors import BadCron, BadJob, BadSchedule, JobError, NeverFires, TooFrequent

PROMPT_REQUIRED: Final = "prompt is required"
SCHEDULE_REQUIRED: Final = "schedule with type and expression/intervalMinutes is required"
INVALID_CRON: Final = "Invalid cron expression"

_SHOWN: Final = 80
_SAID: Final[Mapping[str, str]] = {
    "string_type": "must be a text",
    "string_unicode": "must be a text that UTF-8 can hold: without half of a surrogate pair",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "extra_forbidden": "unknown key",
}
"""Error texts by pydantic's error types."""


def not_found(slug: str) -> str:
    """Return the text for a schedule that does not exist."""
    shown = slug if len(slug) <= _SHOWN else f"{slug[:_SHOWN]}…"
    return f"Schedule not found: {shown}"


def error_text(error: JobError) -> tuple[str, str | None]:
    """Return the text for a job error, and details if there are any."""
    match error:
        case BadJob(key="prompt", allowed="is required" | "must not be empty"):
            return PROMPT_REQUIRED, None
        case BadCron() | NeverFires():
            return INVALID_CRON, str(error)
        case TooFrequent(cron=True):
            gap, least = _length(error.gap_s), least_interval(error.minimum_s)
            return f"Cron expression runs every {gap}. {least}", None
        case TooFrequent():
            return least_interval(error.minimum_s), None
        case BadSchedule():
            return f"schedule: {error}", None
        case _:
            return str(error), None


def words(errors: Iterable[Mapping[str, Any]]) -> str:
    """Return the text for an invalid body, from pydantic's errors."""
    for detail in errors:
        where = [str(part) for part in detail["loc"][1:]]
        if detail["type"] == "json_invalid":
            where = []
        match where:
            case ["schedule"]:
                return SCHEDULE_REQUIRED
            case ["schedule", _, *_] if detail["type"] == "missing":
                return SCHEDULE_REQUIRED
            case ["schedule", _, "expression"]:
                is_text = detail["type"] in ("string_too_long", "string_unicode")
                return INVALID_CRON if is_text else SCHEDULE_REQUIRED
            case ["schedule", kind, key] if _is_of_another_type(detail, key):
                return f"schedule.{key}: is not for type {kind}"
            case ["schedule", _, "intervalMinutes", *_]:
                # One sentence for whole numbers and for others, each of which it is not.
                return "schedule.intervalMinutes: must be a number"
            case ["schedule", _, *rest]:
                # The kind of the schedule stands in the place, though not in the body.
                return f"{'.'.join(['schedule', *rest[:1]])}: {_detail_text(detail)}"
            case _:
                return f"{'.'.join(where) or 'body'}: {_detail_text(detail)}"
    return "the body cannot be read"


def _is_of_another_type(detail: Mapping[str, Any], key: str) -> bool:
    return detail["type"] == "extra_forbidden" and key in ("intervalMinutes", "everyMs", "at")


def _detail_text(detail: Mapping[str, Any]) -> str:
    return _SAID.get(detail["type"], str(detail["msg"]))


def least_interval(least_s: float) -> str:
    """Return the text for a schedule that is too frequent."""
    hours, rest = divmod(least_s, 3600)
    extra = "" if rest or not hours else f" ({_count(int(hours), 'hour')})"
    return f"Minimum interval is {_length(least_s)}{extra}"


def _length(seconds: float) -> str:
    """Return a duration in minutes if they are whole, otherwise in seconds."""
    if seconds >= 60 and not seconds % 60:
        return _count(int(seconds // 60), "minute")
    return _count(seconds, "second")


def _count(number: float, unit: str) -> str:
    return f"{number:.10g} {unit}{'s' if number != 1 else ''}"
