"""Schedules in plain words."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import product

import pytest

from goclaw_py.jobs.cron.describe import in_words
from goclaw_py.jobs.cron.expression import parse
from goclaw_py.jobs.schedule import At, Cron, Every, Schedule, describe
from tests.property.naive_cron import NaiveCron

BERLIN = "Europe/Berlin"
JANUARY = date(2028, 1, 1)
DAY = timedelta(days=1)


@pytest.mark.parametrize(("expression", "words"), [
    ("0 9 * * 1-5", "at 09:00 on Monday to Friday"),
    ("0 9 * * *", "at 09:00 every day"),
    ("@daily", "at 00:00 every day"),
    ("0 9,18 * * *", "at 09:00 and 18:00 every day"),
    ("30 0 9 * * *", "at 09:00:30 every day"),
    ("0 9 * * 0,6", "at 09:00 on Saturday and Sunday"),
    ("0 9 * * 5-7", "at 09:00 on Friday to Sunday"),
    ("0 9 * * 5#3", "at 09:00 on the third Friday of every month"),
    ("0 9 * 1,2 5L", "at 09:00 on the last Friday of January and February"),
    ("0 9 * * 1,5L", "at 09:00 on every Monday and the last Friday of every month"),
    ("0 9 1 * *", "at 09:00 on day 1 of every month"),
    ("0 9 1,15 * *", "at 09:00 on days 1 and 15 of every month"),
    ("0 9 L * *", "at 09:00 on the last day of every month"),
    ("0 9 1,L * *", "at 09:00 on day 1 and the last day of every month"),
    ("@yearly", "at 00:00 on day 1 of January"),
    ("0 9 * 6-8 *", "at 09:00 every day in June, July and August"),
    ("0 9 * 1 1", "at 09:00 on Monday in January"),
    ("* * * * *", "every minute"),
    ("* * * * * *", "every second"),
    ("*/10 * * * * *", "every 10 seconds"),
    ("*/10 * * * *", "every 10 minutes"),
    ("0,30 * * * *", "every 30 minutes"),
    ("*/10 * * * 1", "every 10 minutes on Monday"),
    ("*/10 9-17 * * 1-5", "every 10 minutes from 09:00 to 17:50 on Monday to Friday"),
    ("@hourly", "every hour"),
    ("0 9-17 * * *", "every hour from 09:00 to 17:00"),
    ("30 * * * *", "at minute 30 of every hour"),
    ("0 9 1-31 * 1", "at 09:00 every day"),
    ("0 9 1 * 0-6", "at 09:00 every day"),
    ("*/7 * * * *", "cron */7 * * * *"),
    ("*/7 * * * * *", "cron */7 * * * * *"),
    ("* 9 * * * *", "cron * 9 * * * *"),
    ("*/10 0 9 * * *", "cron */10 0 9 * * *"),
    ("15 */2 * * *", "cron 15 */2 * * *"),
    ("30  * * * * *", "cron 30 * * * * *"),
    ("5 4 1-7 * 1", "cron 5 4 1-7 * 1"),
    ("5 4 */2 * 1", "cron 5 4 */2 * 1"),
])  # fmt: skip
def test_common_shapes_have_words_and_others_their_expression(expression: str, words: str) -> None:
    assert describe(Cron(expression), BERLIN) == f"{words} (Europe/Berlin)"


@pytest.mark.parametrize(("schedule", "words"), [
    (At(datetime(2026, 2, 25, 2, 30, tzinfo=UTC)),
     "once at 2026-02-25 08:00:00 IST (Asia/Kolkata)"),
    (Every(timedelta(minutes=1)), "every minute"),
    (Every(timedelta(minutes=90)), "every 90 minutes"),
    (Every(timedelta(hours=24)), "every day"),
    (Every(timedelta(milliseconds=1500)), "every 1500 milliseconds"),
])  # fmt: skip
def test_other_schedules_have_words_always(schedule: Schedule, words: str) -> None:
    assert describe(schedule, "Asia/Kolkata") == words


MINUTES = ["0", "*", "0-59", "0,30", "*/7"]
HOURS = ["9", "*", "0-23", "9-17"]
DAYS = ["*", "1", "1-31", "L", "*/2", "1,L"]
MONTHS = ["*", "6-8", "1-12"]
WEEKDAYS = ["*", "0-6", "1-5", "5#3", "1,5L", "*/2", "7"]


def test_expressions_with_the_same_words_fire_at_the_same_times() -> None:
    """Words may be missing, but they are never wrong."""
    meant: dict[str, object] = {}
    for days in map(" ".join, product(DAYS, MONTHS, WEEKDAYS)):
        naive = NaiveCron(f"0 0 {days}")
        year = [JANUARY + number * DAY for number in range(366)]
        in_year = [day for day in year if day.month in naive.sets[3] and naive.on_day(day)]
        for times in map(" ".join, product(MINUTES, HOURS)):
            cron = parse(f"{times} {days}")
            words = in_words(cron)
            if not words.startswith("cron"):
                fires = (cron.fields.minute.numbers, cron.fields.hour.numbers, in_year)
                assert meant.setdefault(words, fires) == fires, words
    assert len(meant) > 150
