"""Schedules with the offline agent, through the tools of models (SPEC AGENT-6).

It reads no clock: it gets the present time and zone from a search of schedules.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from goclaw_py.agents.offline.turn import OfflineTurn, phrase
from goclaw_py.core.errors import BadCron, BadSchedule, ToolFailed
from goclaw_py.core.text import truncate
from goclaw_py.core.time.datetimes import parse_moment
from goclaw_py.core.time.texts import friendly
from goclaw_py.schedule.cron.parser import read

_NAME_CHARS = 60
_MOST_DIGITS = 9

_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), timedelta(seconds=1)),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), timedelta(minutes=1)),
    **dict.fromkeys(("h", "hour", "hours"), timedelta(hours=1)),
    **dict.fromkeys(("d", "day", "days"), timedelta(days=1)),
}
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_SPAN = rf"(?:[0-9]{{1,{_MOST_DIGITS}}}|an?)\s*(?:{_UNIT})\b"
_REGULAR = rf"(?:[0-9]{{1,{_MOST_DIGITS}}}\s*)?(?:{_UNIT})"
_PARTS = re.compile(r"(\S+)\s*(.*)", re.DOTALL)
_FIELD = re.compile(r"(?=.*[0-9*])(?=.*[*,/#-])[0-9a-z*,/#-]+", re.IGNORECASE | re.ASCII)
"""Matches a field of a cron expression, not a word."""
_SPAN_PARTS = re.compile(r"(?:([0-9]*)|an?\s+)\s*([a-z]+)", re.IGNORECASE)
_HOUR = re.compile(r"((?:tomorrow\s+)?[0-9]{1,2})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Here:
    """The present time, and its zone. ``now`` is local."""

    now: datetime
    zone: str


async def _here(turn: OfflineTurn) -> _Here:
    seen = await _search(turn, limit=1)
    return _Here(datetime.fromisoformat(seen["now"]), seen["timezone"])


async def _search(turn: OfflineTurn, **arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await turn.use("schedule_search", **arguments))
    return found


def _span(text: str) -> timedelta:
    """Parse a duration such as ``10 minutes``, ``an hour`` or ``hour``."""
    match = _SPAN_PARTS.fullmatch(text)
    assert match is not None, "the pattern of the phrase lets nothing else through"
    return int(match[1] or "1") * _UNITS[match[2].lower()]


async def _remind_in(turn: OfflineTurn) -> str:
    here = await _here(turn)
    span = _span(turn.said)
    if not span:
        raise ToolFailed("that is now; say for example `remind me in 10 minutes to stretch`")
    try:
        moment = here.now + span
    except OverflowError:
        raise ToolFailed("that is too far ahead") from None
    return await _remind(turn, moment, here)


async def _remind_at(turn: OfflineTurn) -> str:
    here = await _here(turn)
    when = " ".join(word for word in turn.said.split() if word.lower() != "at")
    if _HOUR.fullmatch(when):
        when += ":00"
    try:
        moment = parse_moment(when, now=here.now, zone=here.zone)
    except BadSchedule as error:
        raise ToolFailed(str(error)) from error
    return await _remind(turn, moment, here)


async def _remind(turn: OfflineTurn, moment: datetime, here: _Here) -> str:
    made = await _create(
        turn,
        name=_title(turn.rest),
        # What is stored is a phrase that this agent, or any other one, answers with the reminder.
        goal=f"echo Reminder: {turn.rest}",
        cadence_type="once",
        cadence_value=moment.astimezone(UTC).isoformat(),
    )
    when = friendly(moment, here.zone, here.now)
    return turn.reply(f"I will remind you {when}. {_how_to_end(made)}")


async def _every(turn: OfflineTurn) -> str:
    seconds = _span(turn.said) // timedelta(seconds=1)
    if not seconds:
        raise ToolFailed("that is no interval; say for example `every 10 minutes stretch`")
    return await _again_and_again(turn, "interval", str(seconds), turn.rest)


async def _cron(turn: OfflineTurn) -> str:
    expression, text = _expression(turn)
    return await _again_and_again(turn, "cron", expression, text)


def _expression(turn: OfflineTurn) -> tuple[str, str]:
    """Split a cron expression with five or six fields from the text after it.

    Raises ``ToolFailed`` if a word may be the sixth field or the text.
    """
    if turn.said.startswith("@"):
        return turn.said, turn.rest
    first, text = _PARTS.fullmatch(turn.rest).groups()  # type: ignore[union-attr]  # fits any text
    six = f"{turn.said} {first}"
    is_field, has_six = _FIELD.fullmatch(first) is not None, _are_fields(six)
    if is_field and has_six and text:
        return six, text
    if is_field or (has_six and text):
        raise ToolFailed(
            f"{truncate(first, _NAME_CHARS)} may be a sixth field or the beginning of the text; "
            "in front of such a text say `echo`"
        )
    return turn.said, turn.rest


def _are_fields(expression: str) -> bool:
    try:
        read(expression, (6,))
    except BadCron:
        return False
    return True


async def _again_and_again(turn: OfflineTurn, kind: str, value: str, text: str) -> str:
    # A text that is no phrase would be answered with an introduction, each time.
    goal = text if turn.understands(text) else f"echo {text}"
    here = await _here(turn)
    made = await _create(turn, name=_title(text), goal=goal, cadence_type=kind, cadence_value=value)
    return turn.reply(f"I will do `{_shown(goal)}`, next {_due(made, here)}. {_how_to_end(made)}")


async def _create(turn: OfflineTurn, **arguments: object) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(await turn.use("schedule_create", **arguments))
    return made


def _title(text: str) -> str:
    return truncate(" ".join(text.split()), _NAME_CHARS)


def _how_to_end(made: dict[str, Any]) -> str:
    return f"To end that, say `delete job {made['slug']}`."


async def _list(turn: OfflineTurn) -> str:
    seen = await _search(turn, limit=50)
    here = _Here(datetime.fromisoformat(seen["now"]), seen["timezone"])
    lines = [_line(each, here) for each in seen["schedules"]]
    if not lines:
        return turn.reply("This chat has no jobs.")
    if seen["remaining"]:
        lines.append(f"… and {seen['remaining']} more")
    return turn.reply("\n".join(lines))


def _due(job: dict[str, Any], here: _Here) -> str:
    return friendly(datetime.fromisoformat(job["next_run_at"]), here.zone, here.now)


def _line(each: dict[str, Any], here: _Here) -> str:
    state = each["status"]
    if each["next_run_at"]:
        state = f"next {_due(each, here)}"
    return f"- `{each['slug']}`: {_shown(each['goal'])}; {state}"


def _shown(goal: str) -> str:
    """Return what people call the phrase of a job."""
    return goal.removeprefix("echo ").removeprefix("Reminder: ")


async def _delete(turn: OfflineTurn) -> str:
    job = json.loads(await turn.use("schedule_delete", schedule_id=turn.said))
    return turn.reply(f"`{job['slug']}` is deleted.")


async def _pause(turn: OfflineTurn) -> str:
    arguments = {"schedule_id": turn.said, "status": "paused"}
    job = json.loads(await turn.use("schedule_edit", **arguments))
    return turn.reply(f"`{job['slug']}` is paused.")


async def _resume(turn: OfflineTurn) -> str:
    arguments = {"schedule_id": turn.said, "status": "active"}
    job = json.loads(await turn.use("schedule_edit", **arguments))
    here = await _here(turn)
    return turn.reply(f"`{job['slug']}` runs again, next {_due(job, here)}.")


_WHEN = r"at\s+\S+|tomorrow\s+(?:at\s+)?\S+"
_FIELDS = r"@[a-z]+|(?:\S+\s+){4}\S+"

SCHEDULING = (
    phrase(
        "remind me in N minutes to TEXT",
        "reminds you; also hours, days, seconds",
        rf"remind\s+me\s+in\s+({_SPAN})\s+(?:to\s+)?(.+)",
        _remind_in,
        "schedule_create",
    ),
    phrase(
        "remind me at 18:00 to TEXT",
        "the same; also `tomorrow 9:00`",
        rf"remind\s+me\s+({_WHEN})\s+(?:to\s+)?(.+)",
        _remind_at,
        "schedule_create",
    ),
    phrase(
        "every N minutes PHRASE",
        "repeats it; any other text is sent as it is",
        rf"every\s+({_REGULAR})\s+(.+)",
        _every,
        "schedule_create",
    ),
    phrase(
        "cron 0 9 * * 1-5 PHRASE",
        "the same, by a cron expression",
        rf"cron\s+({_FIELDS})\s+(.+)",
        _cron,
        "schedule_create",
    ),
    phrase(
        "jobs",
        "lists the jobs and reminders of this chat",
        r"(jobs|schedules)",
        _list,
        "schedule_search",
    ),
    phrase(
        "delete job NAME",
        "deletes it",
        r"delete\s+(?:job|schedule)\s+(.+)",
        _delete,
        "schedule_delete",
    ),
    phrase(
        "pause job NAME", "pauses it", r"pause\s+(?:job|schedule)\s+(.+)", _pause, "schedule_edit"
    ),
    phrase(
        "resume job NAME",
        "resumes it",
        r"resume\s+(?:job|schedule)\s+(.+)",
        _resume,
        "schedule_edit",
    ),
)
"""Phrases in the order in which they are tried."""
