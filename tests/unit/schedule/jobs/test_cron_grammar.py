"""What a cron expression may be, what is said of one that is not, and schedules in plain words."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import product

import pytest

from goclaw_py.core.errors import BadCron
from goclaw_py.schedule.cron.describe import in_words
from goclaw_py.schedule.cron.expression import parse
from goclaw_py.schedule.cron.parser import LAST, read
from goclaw_py.schedule.jobs.schedule import At, Cron, Every, Schedule, describe
from tests.property.naive_cron import NaiveCron


@pytest.mark.parametrize(("text", "minutes"), [
    ("5", {5}), ("05", {5}), ("5-5", {5}), ("5-5/3", {5}), ("5-8", {5, 6, 7, 8}),
    ("10-20/5", {10, 15, 20}), ("*/25", {0, 25, 50}), ("*/99", {0}),
    ("*/99999999999999999999", {0}), ("7-7", {7}), ("1,2,1,40-41", {1, 2, 40, 41}),
    ("*,5", set(range(60))),
])  # fmt: skip
def test_a_field_takes_values_ranges_steps_and_lists(text: str, minutes: set[int]) -> None:
    """Rule R2."""
    assert read(f"{text} * * * *").minute.numbers == minutes


@pytest.mark.parametrize(("text", "weekdays"), [
    ("0", {0}), ("7", {0}), ("5-7", {5, 6, 0}), ("0-7", set(range(7))), ("*/7", {0}),
    ("*/5", {0, 5}), ("1-7/2", {1, 3, 5, 0}), ("mon-FRI", {1, 2, 3, 4, 5}), ("sun,Tue", {0, 2}),
    ("mon-fri/2", {1, 3, 5}), ("mon-sun", set(range(7))), ("fri-SUN", {5, 6, 0}),
    ("1-sun/2", {1, 3, 5, 0}), ("sun-sun", {0}),
])  # fmt: skip
def test_sunday_is_0_and_7_and_weekdays_have_names(text: str, weekdays: set[int]) -> None:
    """Rules R1 and R2."""
    assert read(f"0 9 * * {text}").weekday.numbers == weekdays


def test_months_have_names_and_last_days_and_numbered_weekdays_are_terms_like_any_other() -> None:
    """Rules R1 and R10."""
    assert read("0 9 1 JAN-mar,Dec *").month.numbers == {1, 2, 3, 12}
    fields = read("0 9 1,L,15-16 * 1,5#3,friL,0L,7#1")
    assert fields.day.last
    assert fields.day.numbers == {1, 15, 16}
    assert fields.weekday.numbers == {1}
    assert fields.weekday.nth == {(5, 3), (5, LAST), (0, LAST), (0, 1)}


def test_six_fields_begin_with_the_second_and_seven_names_stand_for_five() -> None:
    """Rules R1 and R6; whoever wants five fields only may still use the names."""
    fields = read("30 5 9 * * *")
    assert fields.second.numbers == {30}
    assert fields.minute.numbers == {5}
    assert fields.hour.numbers == {9}
    assert read("0 5 9 * * *") == read("5 9 * * *")
    assert read(" 0\t9  * * *\n") == read("0 9 * * *")
    for alias, same in {
        "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *",
        "@weekly": "0 0 * * 0", "@daily": "0 0 * * *", "@Midnight": "0 0 * * *",
        "@hourly": "0 * * * *",
    }.items():  # fmt: skip
        assert read(alias, (6,)) == read(same)


@pytest.mark.parametrize(("expression", "wildcard"), [
    ("0 9 * * *", False), ("* 9 * * *", True), ("0 */2 * * *", True),
    ("0-59 0-23/2 * * *", False), ("@hourly", True), ("@daily", False),
    ("*/30 0 9 * * *", True), ("0,30 0 9 * * *", False),
])  # fmt: skip
def test_a_star_in_front_of_a_time_makes_a_wildcard(expression: str, wildcard: bool) -> None:
    """Rules R5 and R6."""
    assert parse(expression).wildcard is wildcard


@pytest.mark.parametrize(("reason", "hint", "expressions"), [
    ("it is empty", "write minute, hour", ["", " \n"]),
    ("more than 256 characters", "", ["* " * 129]),
    ("it has 4 fields", "or 6 fields with the second first", ["0 9 * *"]),
    ("it has 7 fields", "years cannot be given", ["0 0 9 1 1 * 2030"]),
    ("it has 8 fields", "write minute", ["1 2 3 4 5 6 7 8"]),
    ("it has 1 field", "write @daily", ["daily"]),
    ("it has 2 fields", "schedule of the kind every", ["every 5m"]),
    ("it has 1 field", "schedule of the kind every", ["10m"]),
    ("no such name", "schedule of the kind every", ["@every 5m"]),
    ("no such name", "there are @yearly", ["@reboot"]),
    ("day of week", "write * instead of ?", ["0 9 * * ?"]),
    ("minute", "write 5-59/15", ["5/15 * * * *"]),
    ("day of week", "write mon-6/2", ["0 9 * * mon/2"]),
    ("runs backward", "write 22-23,0-2", ["0 22-2 * * *"]),
    ("runs backward", "write 23,0", ["0 23-0 * * *"]),
    ("runs backward", "split it at 0", ["0 22-2/2 * * *"]),
    ("runs backward", "write 5-7", ["0 9 * * fri-0"]),
    ("runs backward", "write 6,0-1", ["0 9 * * sat-mon", "0 9 * * 6-1"]),
    ("runs backward", "write 11-12,1-2", ["0 9 * nov-feb *"]),
    ("no number", "random and hashed", ["R * * * *"]),
    ("neither", "random and hashed", ["R(0-9) * * * *", "H/5 * * * *"]),
    ("no number", "nearest workday", ["0 9 LW * *", "0 9 15W * *"]),
    ("no number", "L is the last one", ["0 9 L-3 * *"]),
    ("neither", "L is the last one", ["0 9 L/2 * *"]),
    ("no number", "5L is the last Friday", ["0 9 5L * *", "0 9 * * L"]),
    ("neither", "1 to 5 may follow", ["0 9 * * 5#6"]),
    ("neither", "only in the day of week", ["0 9 5#3 * *"]),
    ("8 is not from 0 to 7", "", ["0 9 * * 8#1", "0 9 * * 8"]),
    ("no number", "", ["0 9 * * abc#1", "0 9 * * xyzL", "0x1 * * * *"]),
    ("no number and none of sun", "write mon", ["0 9 * * monday"]),
    ("no number and none of jan", "write jan", ["0 9 * january *"]),
    ("no number", "write fri", ["0 9 * * 1-friday"]),
    ("60 is not from 0 to 59", "", ["60 * * * *"]),
    ("24 is not from 0 to 23", "midnight is 0", ["0 24 * * *"]),
    ("25 is not from 0 to 23", "", ["0 25 * * *"]),
    ("0 is not from 1 to 31", "", ["0 9 0 * *"]),
    ("32 is not from 1 to 31", "", ["0 9 32 * *"]),
    ("13 is not from 1 to 12", "", ["0 9 * 13 *"]),
    ("is not from 0 to 59", "", ["9" * 200 + " * * * *"]),
    ("neither", "", [
        "-1 * * * *", "1.5 * * * *", "*-5 * * * *", "5-* * * * *", "1-2-3 * * * *", "*/ * * * *",
        "*/-5 * * * *", "** * * * *",
    ]),
    ("the step of '*/0' is 0", "", ["*/0 * * * *"]),
    ("nothing stands between two commas", "", ["1,,2 * * * *", "1, * * * *"]),
    ("has the character", "plain ASCII", [
        "\u0661 * * * *", "0\u00a09 * * *", "0\n9 * * *", "0 9 * * *\0",
    ]),
    ("it has 3 fields", "write minute", ["; DROP TABLE"]),
    ("it has the quote", "leave the quotes out", [
        '"0 9 * * *"', "'@daily'", "`0 9 * * *`", "\u201c0 9 * * *\u201d", '0 9 * * *"',
    ]),
    ("'cron' is no part of it", "leave it and the parentheses out", ["cron(0 9 * * ? *)"]),
    ("'rate' is no part of it", "schedule of the kind every", ["rate(5 minutes)"]),
    ("the comment '# Daily'", "leave it out", ["0 9 * * * # Daily", "@daily # Daily"]),
    ("'MON' stands behind @weekly", "write only @weekly", ["@weekly MON"]),
    ("it has several lines", "one job for each", ["0 9 * * *\n0 10 * * *"]),
    ("blank beside the comma", "leave the blank out", ["0 9 * * MON, WED", "0 , 30 9 * * *"]),
    ("has the character", "write - instead", ["0 9 * * 1\u20135", "0 9 * * 1\u20145"]),
    ("has the character", "write * instead", ["0 9 \u2217 \u2217 \u2217"]),
    ("the zone 'Europe/Berlin' stands", "give the zone", ["0 9 * * * Europe/Berlin"]),
    ("the zone 'UTC' stands behind it", "give the zone", ["0 9 * * * UTC", "0 0 9 * * * UTC"]),
    ("'root' is no part of a time", "give only the time", ["0 9 * * * root /bin/x"]),
    ("'/bin/x' is no part of a time", "give only the time", ["0 9 * * * /bin/x -v"]),
    ("2027 is not from 0 to 7", "years cannot be given", ["0 9 * * * 2027"]),
    ("it has 7 fields", "years cannot be given", ["0 9 * * * * *", "0 0 9 * * ? 2026-2030"]),
    ("it has 3 fields", "schedule of the kind every", ["every 5 minutes"]),
    ("hour: '9am' is no number", "write 9", ["0 9am * * *"]),
    ("hour: '12pm' is no number", "write 12", ["0 12PM * * *"]),
    ("no number and none of sun", "write tue", ["0 0 9 * * TUES", "0 0 9 * * tuesday"]),
])  # fmt: skip
def test_a_wrong_expression_is_refused(reason: str, hint: str, expressions: list[str]) -> None:
    """Rule R2, SPEC CRON-2."""
    for expression in expressions:
        with pytest.raises(BadCron) as refused:
            parse(expression)
        assert reason in refused.value.reason
        assert hint in refused.value.hint
        assert bool(hint) == bool(refused.value.hint)
        assert refused.value.reason in str(refused.value)
        assert len(str(refused.value)) < 400


def test_where_seconds_are_not_allowed_the_hint_says_so() -> None:
    """SPEC CRON-17: some profiles know five fields only."""
    with pytest.raises(BadCron, match="seconds cannot be given here"):
        parse("0 0 9 * * *", (5,))
    with pytest.raises(BadCron) as refused:
        parse("0 9 * *", (5,))
    assert "6 fields" not in refused.value.hint


def test_an_expression_is_parsed_once() -> None:
    assert parse("17 4 * * *") is parse("17 4 * * *")


BERLIN = "Europe/Berlin"
JANUARY = date(2028, 1, 1)
DAY = timedelta(days=1)


@pytest.mark.parametrize(("expression", "words"), [
    ("0 9 * * 1-5", "at 09:00 on Monday to Friday"),
    ("0 9 * * *", "at 09:00 every day"), ("@daily", "at 00:00 every day"),
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
    ("* * * * *", "every minute"), ("* * * * * *", "every second"),
    ("*/10 * * * * *", "every 10 seconds"), ("*/10 * * * *", "every 10 minutes"),
    ("0,30 * * * *", "every 30 minutes"),
    ("*/10 * * * 1", "every 10 minutes on Monday"),
    ("*/10 9-17 * * 1-5", "every 10 minutes from 09:00 to 17:50 on Monday to Friday"),
    ("@hourly", "every hour"),
    ("0 9-17 * * *", "every hour from 09:00 to 17:00"),
    ("30 * * * *", "at minute 30 of every hour"), ("0 9 1-31 * 1", "at 09:00 every day"),
    ("0 9 1 * 0-6", "at 09:00 every day"), ("*/7 * * * *", "cron */7 * * * *"),
    ("*/7 * * * * *", "cron */7 * * * * *"), ("* 9 * * * *", "cron * 9 * * * *"),
    ("*/10 0 9 * * *", "cron */10 0 9 * * *"), ("15 */2 * * *", "cron 15 */2 * * *"),
    ("30  * * * * *", "cron 30 * * * * *"), ("5 4 */7 * 1", "cron 5 4 */7 * 1"),
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


def test_a_zone_that_is_its_own_abbreviation_is_named_once() -> None:
    at = At(datetime(2026, 2, 25, 2, 30, tzinfo=UTC))
    assert describe(at, "UTC") == "once at 2026-02-25 02:30:00 UTC"


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


@pytest.mark.parametrize(("expression", "reason", "hint"), [
    ("CRON_TZ=Europe/Berlin 0 9 * * *", "it begins with CRON_TZ=Europe/Berlin", "--tz"),
    ("TZ=UTC 0 9 * * *", "it begins with TZ=UTC", "--tz"),
    ("0 9 * * * # daily", "it has the comment '# daily'", "leave it out"),
    ("0 9 * * 1#2 # second", "it has the comment '# second'", "leave it out"),
    ("@daily # at night", "it has the comment '# at night'", "leave it out"),
    ("0 9 * * 1, 3", "there is a blank beside the comma of '1, 3'", "leave the blank out"),
    ("0 9 1 , 2 * *", "there is a blank beside the comma of '1 , 2'", "leave the blank out"),
    ("0 0 9 * * mon, wed", "there is a blank beside the comma of 'mon, wed'", "leave the blank"),
])  # fmt: skip
def test_what_people_write_beside_the_fields_is_named(
    expression: str, reason: str, hint: str
) -> None:
    with pytest.raises(BadCron) as caught:
        parse(expression)
    assert reason in str(caught.value)
    assert hint in str(caught.value)


@pytest.mark.parametrize(("expression", "words"), [
    ("0 9 1-3 * MON", "at 09:00 on days 1, 2 and 3 of every month, and also on Monday"),
    ("0 9 1 * 5#3",
     "at 09:00 on day 1 of every month, and also on the third Friday of every month"),
    ("0 9 1 1 MON", "at 09:00 on day 1, and also on Monday, of January"),
    ("0 9 L * MON-FRI", "at 09:00 on the last day of every month, and also on Monday to Friday"),
])  # fmt: skip
def test_days_of_which_one_is_enough_are_said_in_words(expression: str, words: str) -> None:
    """R3: most people read it as "both"."""
    assert in_words(parse(expression)) == words
