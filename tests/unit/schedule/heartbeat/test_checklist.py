"""HEARTBEAT.md: what has a meaning, what is due, and how it is edited (SPEC HB-3)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from goclaw_py.cli.system.init import heartbeat_example
from goclaw_py.core.errors import BadChecklist, UnknownZone
from goclaw_py.schedule.heartbeat.checklist.checklist import (
    ITEM_CHARS,
    DueItems,
    parse,
    with_done,
    with_item,
)
from goclaw_py.schedule.heartbeat.checklist.intervals import (
    FRESH,
    DailyTimes,
    FixedInterval,
    read_interval,
)

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)  # a Monday
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def texts(file: str) -> list[str]:
    return [item.text for item in parse(file).items]


def carried(file: str, now: datetime = NOON) -> str:
    """What a heartbeat run carries if nothing was ever noted."""
    return parse(file).due({}, now=now, zone="UTC").text


# ---------------------------------------------------------------------------- what has a meaning
@pytest.mark.parametrize("file", [
    "", " \n\t\n\r\n\u00a0\n\u3000", "\ufeff", "\ufeff# Checklist\n",
    "\u200b\n\u200c\u200d\n\u2060- \n", "# One\n## Two\n###### Six\n#\n  ## Indented\n# Closed #\n",
    "Title\n=====\n\nTitle\n---\n", "> Title\n> ---\n", "<!-- a -->", "<!-- a\n- [ ] b\n\n-->",
    "<!--\r\n- b\r\n-->\r\n", "<!-- ``` -->\n<!-- - a\n``` -->", "<!-- a --> <!-- b -->",
    "<!-- a <!-- b -->", "<!-->", "<!--->", "<!-- unclosed", "<!-- unclosed\n# Title",
    "-\n*\n+\n1.\n2)\n- \n", "- [ ]\n- [x]\n- [X] \n* []\n+ [ ] \n1. [ ]\n3) [x]",
    "- - [ ]\n- > \n- #\n- ---\n- [ ] \u200b\n- [ ] [x]",
    "---\n***\n___\n- - -\n* * *\n_ _ _\n-----------\n===\n",
    ">\n> \n>>\n> > >\n> # Title\n> - [ ]\n> <!-- a -->", "- <!-- a -->\n- [ ] <!-- b\n-->",
    "- [x] done\n- [X] done\n1. [x] done\n> - [x] done",
    "- [x] done\n  and more of it\n\n  and more\n  - its part\n    1. of it",
    "- [x] done\n\n  ```\n  code\n  ```", "- Today:\n  - [x] done\n- [ ]\n  - [x] done",
    "- every 2h:\n- [ ] daily 09:00:\n- daily 10:00: <!-- nothing -->",
    "- daily 09:00:\n  - [x] done", "```\n\n```\n~~~\n> \n~~~", "```\n<!-- a -->\n~~~~",
])  # fmt: skip
def test_a_file_in_which_nothing_is_to_be_done_is_empty(file: str) -> None:
    checklist = parse(file)
    assert checklist.is_empty
    assert checklist.items == ()
    assert checklist.due({}, now=NOON, zone="UTC") == DueItems("")


FRONT = "---\ntitle: A list\nread_when:\n  - Making a workspace\n- also: then\n\n# why\n---\n"
TEMPLATE = "```markdown\n# Leave this empty\n\n## Tasks\n<!-- - like\nthis -->\n- [ ]\n```\n"
TABLE = "| Task | Every |\n|:---|---:|\n|   |  |\n| [ ] | - |\n"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("file", [
    FRONT, f"\ufeff{FRONT}", FRONT.replace("# why\n---", "..."), FRONT.rstrip("\n"),
    TEMPLATE, TEMPLATE.replace("```markdown", "~~~ MD").replace("```", "~~~"),
    "```\n# Only headings\n##\n```", "- ```md\n  # Title\n  ```", "> ```md\n> # Title\n> ```",
    f"````markdown\n{FRONT}# Title\n{TABLE}````",
    TABLE, "| Task |\n| --- |\n", "Task | Every\n--- | ---", f"> {TABLE}".replace("\n|", "\n> |"),
    f"{FRONT}\n# HEARTBEAT.md template\n\n{TEMPLATE}\n## Tasks\n\n{TABLE}\n- [ ]\n<!-- a\n\n-->\n",
])  # fmt: skip
def test_a_template_that_nobody_has_filled_in_is_empty(file: str, end: str) -> None:
    """Front matter, an empty example in a fence, a table without a row, as other programs ship."""
    checklist = parse(file.replace("\n", end))
    assert (checklist.is_empty, checklist.items) == (True, ())


@pytest.mark.parametrize(("file", "text"), [
    # No front matter: it does not begin the file, has no key, is not closed, or contains prose.
    (f"# One\n{FRONT}", "  - Making a workspace"),
    ("---\n- look\n---", "- look"), ("---\n\nlook at\nmy mail\n---", "my mail"),
    ("---\ntitle: look", "title: look"), ("---\ntitle: a\nlook at it\n---", "look at it"),
    (f"{FRONT}look", "look"), (f"{FRONT}- look", "- look"),
    (TEMPLATE.replace("[ ]", "[ ] look"), "- [ ] look"),
    ("```sh\n# Title\nls\n```", "ls"), ("```\n<!-- code -->\n```", "<!-- code -->"),
    (f"{TABLE}| look | 2h |", "| look | 2h |"), (f"{TABLE}\nlook", "look"),
    ("| look |\n| mail |", "| look |"),
])  # fmt: skip
def test_a_template_that_says_something_is_carried(file: str, text: str) -> None:
    assert not parse(file).is_empty
    assert text in carried(file).split("\n")


def test_items_below_a_template_are_ticked_off_where_they_stand() -> None:
    file = f"{FRONT}{TABLE}\n- one\n- two\n"
    assert with_done(file, 2) == f"{FRONT}{TABLE}\n- one\n- [x] two\n"
    assert carried(with_item(file, "three")) == "- one\n- two\n- [ ] three"


@pytest.mark.parametrize(("file", "text"), [
    ("Look at my mail", "Look at my mail"),
    ("#hashtag", "#hashtag"),
    ("####### seven", "####### seven"),
    ("-no bullet", "-no bullet"), ("**bold**", "**bold**"), ("> look", "> look"),
    ("...", "..."), ("làm ơn xem thư", "làm ơn xem thư"), ("看日历", "看日历"), ("🔥", "🔥"),
    ("<!-- unclosed\nlook", "look"), ("look <!-- unclosed", "look"),
    ("<!-- a --> look", "look"), ("one\ntwo\n---", "one\ntwo"), ("one\n\n---", "one"),
    ("- one\n---", "- one"), ("> one\n---", "> one"), ("one\n-", "one"),
    ("```\n<!-- code -->\n```", "```\n<!-- code -->\n```"),
    ("~~~~ sh\n~~~\n<!--\n~~~~", "~~~~ sh\n~~~\n<!--\n~~~~"),
    ("see `<!--` and\nwork `-->`", "see `<!--` and\nwork `-->`"),
    (r"see \<!-- it", r"see \<!-- it"),
    ("- [x](https://example.com)", "- [x](https://example.com)"),
    ("[x] no bullet", "[x] no bullet"),
])  # fmt: skip
def test_whatever_says_something_is_carried_as_it_stands(file: str, text: str) -> None:
    assert not parse(file).is_empty
    assert carried(file).strip() == text


def test_what_an_example_explains_is_understood_and_costs_nothing_until_a_line_is_written() -> None:
    example = heartbeat_example()
    assert parse(example).is_empty
    for words in ("every 2h:", "weekdays", "monday, thursday 18:30:", "- [ ] "):
        assert words in example
    mine = with_item(example, "water the plants")
    assert carried(mine) == "# Checklist\n- [ ] water the plants"
    shown = [line[2:] for line in example.splitlines() if line.startswith("- ") and ": /" in line]
    intervals = [f"{each.strip().removesuffix(':')}:" for line in shown for each in line.split("/")]
    assert len(intervals) == 10
    assert [each for each in intervals if read_interval(each) is None] == []
    top = Path(__file__).parents[4] / "HEARTBEAT.md.example"
    assert example == top.read_text("utf-8")


@pytest.mark.parametrize(("file", "items", "text"), [
    ("- one <!-- a --> b\n<!-- - two\n- three --> - four\n- five <!-- c\n- six\n",
     ["one b", "four", "five", "six"], "- one  b\n\n - four\n- five\n- six"),
    ("- [x] one\n  more\n  - two\n  - [ ] open\n    - part\n- three", ["three"], "- three"),
    ("# A\n\n## B\n\n- [x] done\n\n## C\n\n### D\n- one\n\n# E\n\nF\n===\n## G",
     ["one"], "# A\n\n## C\n\n### D\n- one"),
], ids=["comments", "all that is in what is done", "headings with nothing below"])  # fmt: skip
def test_what_says_nothing_is_no_item_nor_carried(file: str, items: list[str], text: str) -> None:
    assert texts(file) == items
    assert carried(file) == text


@pytest.mark.parametrize(("file", "items"), [
    # A fence that is not closed makes no code of what follows.
    ("```\n- one\n<!-- - two -->\n- three", ["one", "three"]),
    ("````\n- one\n```\n- two\n~~~~\n", ["one", "two"]),
    ("```\n- one\n```\n- two", ["two"]),
    # An item goes on in its lines.
    ("- one\n  two\nthree\n\n  another paragraph\n-\n  below its bullet\n\nprose\nmore",
     ["one two three", "below its bullet"]),
    (("# Title\nprose\n\n- one\n* two\n+ [ ] three\n1. four\n2) [ ] five\n"
      "   - six\n\t- seven\n> - eight\n>   1. nine\n"),
     ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]),
])  # fmt: skip
def test_items_are_bullets_of_every_kind_at_any_depth(file: str, items: list[str]) -> None:
    found = parse(file).items
    assert [item.text for item in found] == items
    assert [item.number for item in found] == list(range(1, len(items) + 1))
    assert {(item.every, item.key) for item in found} == {("", "")}


def test_code_in_an_item_belongs_to_it() -> None:
    file = "- every 2h: run\n  ```sh\n  # <!-- no comment -->\n\n  ls\n  ```\n- two"
    key = parse(file).items[0].key
    assert carried(file) == file
    assert parse(file).due({key: NOON}, now=NOON, zone="UTC").text == "- two"


def test_code_that_begins_beside_a_bullet_stays_code_when_that_is_ticked_off() -> None:
    file = "- ```sh\n  - ls\n  ```\n- two"
    assert texts(file) == ["```sh", "two"]
    assert with_done(file, 1) == "- [x] ```sh\n  - ls\n  ```\n- two"
    assert texts(with_done(file, 1)) == ["two"]


def test_an_item_that_ends_with_a_colon_only_introduces_those_in_it() -> None:
    file = "- Mail:\n  - every 2h: new ones\n- Ask me this:\n"
    items = parse(file).items
    assert [item.text for item in items] == ["Mail:", "every 2h: new ones", "Ask me this:"]
    assert carried(file) == file.strip()
    done = {items[1].key: NOON}
    assert parse(file).due(done, now=NOON, zone="UTC").text == "- Ask me this:"


@pytest.mark.parametrize(("words", "length"), [
    ("every 2h", 2 * HOUR), ("Every 30 Minutes", 30 * MINUTE), ("EVERY 1 MINUTE", MINUTE),
    ("every 90 s", 90 * MINUTE / 60), ("every 1h30m", 90 * MINUTE),
    ("every 2 days and 6 hours", 54 * HOUR), ("every 2 weeks", 14 * DAY), ("every hour", HOUR),
    ("every day", DAY), ("hourly", HOUR), ("Daily", DAY), ("weekly", 7 * DAY),
])  # fmt: skip
def test_an_item_says_after_what_time_it_is_looked_at_again(words: str, length: timedelta) -> None:
    for bullet in ("-", "- [ ]", "3.", "* []"):
        (item,) = parse(f"{bullet} {words}: look at mail").items
        assert (item.text, item.every) == (f"{words}: look at mail", words)
        assert item.key
    read = read_interval(f"{words}:look")
    assert read is not None
    assert (read.interval, read.rest) == (FixedInterval(length), "look")


@pytest.mark.parametrize(("words", "days", "times"), [
    ("daily 09:00", "0123456", ["09:00"]), ("Daily at 9:05", "0123456", ["09:05"]),
    ("every day 00:00", "0123456", ["00:00"]), ("weekdays 09:00", "01234", ["09:00"]),
    ("every weekday at 9:00", "01234", ["09:00"]), ("WEEKENDS 10:00", "56", ["10:00"]),
    ("mondays 9:00", "0", ["09:00"]), ("on sunday 23:59", "6", ["23:59"]),
    ("monday, thursday 18:30", "03", ["18:30"]), ("mon,wed and fri 18:30", "024", ["18:30"]),
    ("weekends & Tuesdays 8:00", "156", ["08:00"]),
    ("daily 9:00, 18:30 and 12:00", "0123456", ["18:30", "12:00", "09:00"]),
])  # fmt: skip
def test_an_item_says_at_what_time_it_is_looked_at(words: str, days: str, times: list[str]) -> None:
    (item,) = parse(f"- [ ] {words}: look at mail").items
    assert (item.text, item.every) == (f"{words}: look at mail", words)
    read = read_interval(item.text)
    assert read is not None
    assert isinstance(read.interval, DailyTimes)
    assert read.interval.days == set(map(int, days))
    assert [f"{each:%H:%M}" for each in read.interval.times] == times


@pytest.mark.parametrize("words", [
    "every 0h", "every -1h", "every 2", "every 2 fortnights", "every h 2", "every two hours",
    "every", "every 99999 days", "every 999999999 weeks", f"every {'9' * 5000}h", "every 1.5h",
    "every \u0661h", "every 2\u017f", "hourly 09:00", "daily 9", "daily 9am", "daily 24:00",
    "daily 09:60", "daily 9:0", "daily 09:00:30", "weekdays 25:00", "weekdays", "monday",
    "mondays 9:00, 25:00", "9:00", "9:00 daily", "monday and mail 9:00", "every monday every 2h",
    "Remember 9:00", "note", "",
])  # fmt: skip
def test_what_is_no_interval_is_text_and_due_with_every_heartbeat_run(words: str) -> None:
    file = f"- {words}: look"
    (item,) = parse(file).items
    assert (item.text, item.every, item.key) == (f"{words}: look", "", "")
    assert parse(file).due({}, now=NOON, zone="UTC") == DueItems(file)
    # Nor is what lacks its colon.
    assert read_interval("every 2h look at mail") is read_interval("daily 09:00 look: now") is None


def test_a_key_stays_while_the_words_do_and_goes_with_them() -> None:
    def key(text: str) -> str:
        return parse(text).items[0].key

    same = key("- every 2h: look at mail")
    assert len(same) == 16
    assert key("3. [ ]  Every  2h: look\n   at Mail <!-- mine -->") == same
    assert key("- every 3h: look at mail") != same
    assert key("- every 2h: look at mails") != same
    assert key("- daily: caf\u00e9") == key("- daily: cafe\u0301")


@pytest.mark.parametrize(("words", "ago", "is_due"), [
    ("every 2h", 2 * HOUR, True), ("every 2h", 2 * HOUR - 5 * MINUTE, True),
    ("every 2h", 2 * HOUR - 6 * MINUTE, False), ("every 30 minutes", 27 * MINUTE, True),
    ("every 30 minutes", 26 * MINUTE, False), ("every 10s", timedelta(seconds=9), True),
    ("every 10s", timedelta(seconds=8), False), ("daily", 23 * HOUR + 55 * MINUTE, True),
    ("daily", 23 * HOUR, False), ("weekly", timedelta(), False), ("weekly", 400 * DAY, True),
    ("hourly", -10 * MINUTE, False), ("hourly", -2 * DAY, True),
    ("weekly", -5 * DAY, True), ("weekly", -HOUR, False), ("daily", -23 * HOUR, False),
])  # fmt: skip
def test_an_item_is_due_when_its_interval_is_over(words: str, ago: timedelta, is_due: bool) -> None:
    """Runs come on a grid: one that came a second later must not be missed. A clock that was two
    days ahead must not silence an item for so long."""
    file = f"- {words}: look"
    (item,) = parse(file).items
    due = parse(file).due({item.key: NOON - ago}, now=NOON, zone="UTC")
    assert due == (DueItems(file, (item.key,)) if is_due else DueItems(""))
    assert parse(file).due({}, now=NOON, zone="UTC") == DueItems(file, (item.key,))


@pytest.mark.parametrize(("words", "noted", "is_due"), [
    ("daily 12:00", NOON - timedelta(seconds=1), True),
    ("daily 12:00", NOON, False),
    ("daily 12:01", NOON - DAY + 2 * MINUTE, False),
    ("daily 12:01", NOON - DAY, True), ("daily 11:00", NOON - 2 * HOUR, True),
    ("daily 11:00", NOON - HOUR / 2, False), ("daily 6:00, 11:00", NOON - 2 * HOUR, True),
    ("daily 6:00, 13:00", NOON - 2 * HOUR, False), ("mondays 12:00", NOON - 6 * DAY, True),
    ("tuesdays 12:00", NOON - 6 * DAY, False), ("tuesdays 12:00", NOON - 7 * DAY, True),
    ("weekends 12:00", NOON - DAY - HOUR, True), ("weekends 12:00", NOON - DAY + HOUR, False),
    ("weekdays 13:00", NOON - 2 * DAY, False), ("daily 11:00", NOON + HOUR, False),
    ("daily 12:00", NOON + 3 * DAY, True), ("mondays 12:00", NOON + 20 * DAY, True),
    ("daily 12:00", NOON + HOUR, False),
])  # fmt: skip
def test_an_item_with_a_time_is_due_once_then(words: str, noted: datetime, is_due: bool) -> None:
    file = f"- {words}: look"
    (item,) = parse(file).items
    due = parse(file).due({item.key: noted}, now=NOON, zone="UTC")
    assert due == (DueItems(file, (item.key,)) if is_due else DueItems(""))


def test_an_item_with_a_time_that_is_new_is_noted_and_waits_for_it() -> None:
    checklist = parse("- daily 11:00: look")
    key = checklist.items[0].key
    assert checklist.due({}, now=NOON, zone="UTC") == DueItems("", (key,))
    noted = {key: NOON}
    assert not checklist.due(noted, now=NOON + 23 * HOUR - MINUTE, zone="UTC").text
    assert checklist.due(noted, now=NOON + 23 * HOUR, zone="UTC").text


def test_an_item_that_was_checked_far_ahead_is_noted_again() -> None:
    """SPEC HB-1: the clock was wrong then; the item must not wait until that time."""
    checklist = parse("- daily 11:00: look")
    noted = {checklist.items[0].key: NOON + 30 * DAY}
    assert checklist.due(noted, now=NOON, zone="UTC") == DueItems("", tuple(noted))


def test_a_time_that_a_new_item_has_just_missed_counts() -> None:
    """It was written before that time, and after the last heartbeat run."""
    checklist = parse("- daily 12:00: look")
    for late, is_due in ((timedelta(), True), (FRESH - MINUTE, True), (FRESH, False)):
        due = checklist.due({}, now=NOON + late, zone="UTC")
        assert bool(due.text) is is_due
        assert due.keys == (checklist.items[0].key,)


TOKYO, BERLIN, LA = "Asia/Tokyo", "Europe/Berlin", "America/Los_Angeles"
ST_JOHNS = "America/St_Johns"


@pytest.mark.parametrize(("words", "zone", "noted", "late", "due"), [
    ("weekdays 9:00", TOKYO, "2026-01-04T12:00", "2026-01-04T23:59", "2026-01-05T00:00"),
    ("weekdays 9:00", BERLIN, "2026-01-04T12:00", "2026-01-05T07:59", "2026-01-05T08:00"),
    ("weekdays 9:00", LA, "2026-01-04T12:00", "2026-01-05T16:59", "2026-01-05T17:00"),
    # 02:00 becomes 03:00 at 01:00 UTC: what is left out is the end of the gap.
    ("daily 02:30", BERLIN, "2026-03-28T23:00", "2026-03-29T00:59", "2026-03-29T01:00"),
    ("daily 02:30", BERLIN, "2026-03-29T01:00", "2026-03-30T00:00", "2026-03-30T01:00"),
    # 03:00 becomes 02:00 at 01:00 UTC: what comes twice counts once.
    ("daily 02:30", BERLIN, "2026-10-24T23:30", "2026-10-25T00:29", "2026-10-25T00:30"),
    ("daily 02:30", BERLIN, "2026-10-25T00:31", "2026-10-25T01:30", "2026-10-26T01:30"),
    ("daily 02:30", BERLIN, "2026-10-25T00:31", "2026-10-26T00:30", "2026-10-26T01:30"),
    # 00:01 becomes 23:01 of the day before, at 02:31 UTC.
    ("sundays 00:00", ST_JOHNS, "2010-11-07T01:30", "2010-11-07T02:29", "2010-11-07T02:40"),
])  # fmt: skip
def test_times_are_those_of_the_zone(
    words: str, zone: str, noted: str, late: str, due: str
) -> None:
    """The last instant at which it is not due, and one at which it is."""
    checklist = parse(f"- {words}: look")
    done = {checklist.items[0].key: datetime.fromisoformat(noted + "Z")}
    assert not checklist.due(done, now=datetime.fromisoformat(late + "Z"), zone=zone).text
    assert checklist.due(done, now=datetime.fromisoformat(due + "Z"), zone=zone).text
    with pytest.raises(UnknownZone):
        checklist.due({}, now=NOON, zone="Mars/Base")


def test_what_belongs_to_an_item_that_is_not_due_is_left_out_with_it() -> None:
    file = (
        "## Mail\n\n- every 2h: look\n  at it\nall\n\n  really\n  - part\n  - every 1h: part\n"
        "    # Title\n\n## News\n\n- [ ] read\n"
    )
    checklist = parse(file)
    look, part, every = checklist.items[:3]
    assert [one.text for one in (look, part, every)] == [
        "every 2h: look at it all", "part", "every 1h: part",
    ]  # fmt: skip
    due = checklist.due({look.key: NOON}, now=NOON, zone="UTC")
    assert due == DueItems("## News\n\n- [ ] read")
    assert checklist.due({every.key: NOON}, now=NOON, zone="UTC") == DueItems(
        "## Mail\n\n- every 2h: look\n  at it\nall\n\n  really\n  - part\n\n## News\n\n- [ ] read",
        (look.key,),
    )


def test_a_time_inside_of_an_item_that_is_not_due_is_noted_and_equal_items_once() -> None:
    checklist = parse("- every 2h: look\n  - daily 09:00: part")
    look, part = checklist.items
    due = checklist.due({look.key: NOON}, now=NOON, zone="UTC")
    assert due == DueItems("", (part.key,))
    assert len(parse("- every 2h: a\n- every 2h: a").due({}, now=NOON, zone="UTC").keys) == 1


def test_nothing_due_is_not_an_empty_list() -> None:
    """SPEC HB-9: ``skipped:nothing_due`` is another reason than ``skipped:empty``."""
    checklist = parse("# Title\n- daily 09:00:\n  - look")
    assert not checklist.is_empty
    assert checklist.due({}, now=NOON, zone="UTC") == DueItems("", (checklist.items[0].key,))


@pytest.mark.parametrize(("file", "changed"), [
    ("", "- [ ] b\n"), ("\ufeff", "\ufeff- [ ] b\n"), ("- a\n", "- a\n- [ ] b\n"),
    ("- a", "- a\n- [ ] b"),
    ("- a\r\n- c\r\n", "- a\r\n- c\r\n- [ ] b\r\n"),
    ("- a\r\n- c", "- a\r\n- c\r\n- [ ] b"), ("- a\r", "- a\r- [ ] b\r"),
    ("1. a\n   - c\n", "1. a\n   - c\n- [ ] b\n"), ("```\n", "```\n- [ ] b\n"),
    ("<!-- a\n", "<!-- a\n- [ ] b\n"), ("- every 2h:\n", "- every 2h:\n- [ ] b\n"),
    ("-\n", "-\n- [ ] b\n"), ("prose\n", "prose\n- [ ] b\n"),
])  # fmt: skip
def test_an_item_is_written_at_the_end_in_the_manner_of_the_file(file: str, changed: str) -> None:
    assert with_item(file, "b") == changed
    assert texts(changed)[-1] == "b"


@pytest.mark.parametrize(("item", "line"), [
    ("  buy\n\n milk \t", "- [ ] buy milk"),
    ("buy\r\nmilk\x00\x07 \x1b[31mnow\u2028ok\x85", "- [ ] buy milk [31mnow ok"),
    ("# Title", "- [ ] # Title"),
    ("- [x] a", "- [ ] - [x] a"), ("1. a", "- [ ] 1. a"), ("> a", "- [ ] > a"),
    ("[x] a", "- [ ] [x] a"), ("```a", "- [ ] ```a"), ("<!-- a", r"- [ ] \<!-- a"),
    ("a <!-- b --> c", r"- [ ] a \<!-- b --\> c"), ("see `<!--`", "- [ ] see `<!--`"),
    ("a --> b", "- [ ] a --> b"), (r"a \<!-- b", r"- [ ] a \\<!-- b"),
    ("every 2h: a", "- [ ] every 2h: a"),
    ("\ud83d\ude00 a\ud800", "- [ ] \U0001f600 a\ufffd"),
    ("👩‍👩‍👧 a", "- [ ] 👩‍👩‍👧 a"),
    ("x" * ITEM_CHARS, "- [ ] " + "x" * ITEM_CHARS),
])  # fmt: skip
def test_an_item_is_text_whatever_it_says(item: str, line: str) -> None:
    assert with_item("- a\n", item) == f"- a\n{line}\n"


def test_an_item_does_not_end_a_comment_that_was_never_closed() -> None:
    file = "<!-- slip\n- a\n"
    assert with_item(file, "b --> c") == "<!-- slip\n- a\n- [ ] b --\\> c\n"
    assert texts(with_item(file, "b --> c")) == ["a", "b --> c"]


@pytest.mark.parametrize(("why", "items"), [
    ("says nothing", ["", " \n\t", "\x00\x1b", "\u200b\ufeff", "- [ ]", "---", "##", "```"]),
    ("'every 2h:' does not", ["every 2h:"]),
    ("at most 500 characters, this one 501", ["x" * (ITEM_CHARS + 1)]),
])  # fmt: skip
def test_an_item_that_says_nothing_or_too_much_is_refused(why: str, items: list[str]) -> None:
    for item in items:
        with pytest.raises(BadChecklist, match=why):
            with_item("- a\n", item)


@pytest.mark.parametrize(("file", "number", "changed"), [
    ("- a\n- b\n", 2, "- a\n- [x] b\n"), ("- [ ] a\r\n- b", 1, "- [x] a\r\n- b"),
    ("* [] a", 1, "* [x] a"), ("1. a", 1, "1. [x] a"),
    ("  10)   [ ]   a", 1, "  10)   [x]   a"),
    ("- [x] a\n- [ ] b", 1, "- [x] a\n- [x] b"), ("> - a", 1, "> - [x] a"),
    ("-\ta", 1, "-\t[x] a"), ("-\n  a", 1, "- [x]\n  a"), ("- [ ]\n  a", 1, "- [x]\n  a"),
    ("<!-- - a -->\n- b", 1, "<!-- - a -->\n- [x] b"),
    ("<!-- a\n--> - b <!-- c -->", 1, "<!-- a\n--> - [x] b <!-- c -->"),
    ("- <!-- a --> b", 1, "- <!-- a --> [x] b"),
    ("-<!-- a --> b <!-- c\n- d -->", 1, "-<!-- a --> [x] b <!-- c\n- d -->"),
    ("```\n- a\n```\n- b", 1, "```\n- a\n```\n- [x] b"),
    ("- every 2h: a", 1, "- [x] every 2h: a"), ("\ufeff- a", 1, "\ufeff- [x] a"),
    ("- a\n  - b", 2, "- a\n  - [x] b"),
])  # fmt: skip
def test_an_item_is_ticked_off_by_its_number_and_nothing_else_changes(
    file: str, number: int, changed: str
) -> None:
    assert with_done(file, number) == changed
    assert len(parse(changed).items) == len(parse(file).items) - 1


@pytest.mark.parametrize(("file", "number", "why"), [
    ("", 1, "there is no item 1: the list has none"),
    ("- [x] a\nprose", 1, "there is no item 1: the list has none"),
    ("- a\n- b", 0, "there is no item 0: there are 1 to 2"),
    ("- a\n- b", 3, "there is no item 3: there are 1 to 2"),
    ("- a", -1, "there is no item -1"),
])  # fmt: skip
def test_a_number_that_no_item_has_is_refused(file: str, number: int, why: str) -> None:
    with pytest.raises(BadChecklist, match=why):
        with_done(file, number)
