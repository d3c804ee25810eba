"""Cron expressions in plain words, as far as they have a common form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from goclaw_py.schedule.cron.expression import CronExpression
from goclaw_py.schedule.cron.parser import LAST, Values

_WEEKDAYS: Final = (
    "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday",
)  # fmt: skip
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_NTH: Final = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", LAST: "last"}
_MOST_TIMES: Final = 6


def in_words(cron: CronExpression) -> str:
    """Return words such as ``at 09:00 on Monday to Friday``, else ``cron 5 4 */2 * 1``.

    The words are complete: two expressions with the same words fire at the same times, except for
    clock changes.
    """
    times, days = _times(cron), _days(cron)
    if times is None or days is None:
        return f"cron {' '.join(cron.expression.split())}"
    # "every 10 minutes every day" is one "every" too many.
    return times if days == "every day" and "every" in times else f"{times} {days}"


def _times(cron: CronExpression) -> str | None:
    second, minute, hour = cron.fields.second, cron.fields.minute, cron.fields.hour
    if len(second.numbers) > 1:
        every = _every(second, 60, "second")
        return every if len(minute.numbers) == 60 and len(hour.numbers) == 24 else None
    seconds = "" if second.numbers == {0} else f":{min(second.numbers):02}"
    if len(minute.numbers) * len(hour.numbers) <= _MOST_TIMES:
        each = [
            f"{h:02}:{m:02}{seconds}" for h in sorted(hour.numbers) for m in sorted(minute.numbers)
        ]
        return f"at {_listed(each)}"
    if seconds or not _in_a_row(hour.numbers):
        return None
    if len(minute.numbers) == 1:
        every = f"at minute {min(minute.numbers)} of every hour"
        every = "every hour" if minute.numbers == {0} else every
    else:
        every = _every(minute, 60, "minute") or ""
    if not every or len(hour.numbers) == 24:
        return every or None
    return (
        f"{every} from {min(hour.numbers):02}:{min(minute.numbers):02} "
        f"to {max(hour.numbers):02}:{max(minute.numbers):02}"
    )


def _every(values: Values, count: int, unit: str) -> str | None:
    """Return ``every 10 minutes`` if the distance is always the same, else None."""
    numbers = sorted(values.numbers)
    step, rest = divmod(count, len(numbers))
    if rest or numbers != list(range(0, count, step)):
        return None
    return f"every {unit}" if step == 1 else f"every {step} {unit}s"


def _days(cron: CronExpression) -> str | None:
    fields = cron.fields
    of_month, of_week = _of_month(fields.day), _of_week(fields.weekday)
    if not fields.day.star and not fields.weekday.star:
        # One of them is enough (R3); all days are more than any others.
        if of_month and of_week:
            return _either(of_month, of_week, cron)
        of_month = of_week = ""
    if of_month and of_week:
        return None
    if not of_month and len(fields.month.numbers) == 12:
        if not of_week:
            return "every day"
        return f"{of_week} of every month" if fields.weekday.nth else of_week
    months = "every month"
    if len(fields.month.numbers) < 12:
        months = _listed(_MONTHS[number - 1] for number in sorted(fields.month.numbers))
    if of_month:
        return f"{of_month} of {months}"
    if of_week:
        return f"{of_week} of {months}" if fields.weekday.nth else f"{of_week} in {months}"
    return f"every day in {months}"


def _either(of_month: str, of_week: str, cron: CronExpression) -> str:
    """Return words for days that match by their date or by their weekday, which many misread."""
    if len(cron.fields.month.numbers) == 12:
        on_week = f"{of_week} of every month" if cron.fields.weekday.nth else of_week
        return f"{of_month} of every month, and also {on_week}"
    months = _listed(_MONTHS[number - 1] for number in sorted(cron.fields.month.numbers))
    return f"{of_month}, and also {of_week}, of {months}"


def _of_month(days: Values) -> str:
    """Return words such as ``on day 1``; "" for all days."""
    if len(days.numbers) == 31:
        return ""
    if days.last:
        last = "the last day"
        return f"on {_numbered(days)} and {last}" if days.numbers else f"on {last}"
    return f"on {_numbered(days)}"


def _numbered(days: Values) -> str:
    noun = "day" if len(days.numbers) == 1 else "days"
    return f"{noun} {_listed(map(str, sorted(days.numbers)))}"


def _of_week(days: Values) -> str:
    """Return words such as ``on Monday to Friday`` or ``on the third Friday``; "" for all days."""
    if len(days.numbers) == 7:
        return ""
    # A week is read from Monday on.
    numbers = sorted(days.numbers, key=lambda number: (number - 1) % 7)
    names = [_WEEKDAYS[number] for number in numbers]
    if len(numbers) > 2 and _in_a_row([(number - 1) % 7 for number in numbers]):
        names = [f"{names[0]} to {names[-1]}"]
    if days.nth and names:
        names = [f"every {name}" for name in names]
    nth = sorted(days.nth, key=lambda each: (each[1] % 6, each[0]))
    names += [f"the {_NTH[number]} {_WEEKDAYS[weekday]}" for weekday, number in nth]
    return f"on {_listed(names)}"


def _in_a_row(numbers: Iterable[int]) -> bool:
    ordered = sorted(numbers)
    return ordered[-1] - ordered[0] == len(ordered) - 1


def _listed(texts: Iterable[str]) -> str:
    *others, last = texts
    return f"{', '.join(others)} and {last}" if others else last
