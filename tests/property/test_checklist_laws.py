"""Laws of checklists: whatever the file is, edits change one thing, and times are kept (HB-3)."""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta

from hypothesis import assume, given
from hypothesis import strategies as st

from goclaw_py.core.errors import BadChecklist
from goclaw_py.core.text import well_formed
from goclaw_py.core.time.zones import zone as zone_named
from goclaw_py.schedule.cron.expression import parse as cron
from goclaw_py.schedule.heartbeat.checklist.checklist import (
    ITEM_CHARS,
    Checklist,
    parse,
    with_done,
    with_item,
)
from goclaw_py.schedule.heartbeat.checklist.lines import HIDDEN, escaped, read_lines, unescaped

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)

pieces = st.sampled_from(
    [
        "- ", "* ", "1. ", "-", "[ ] ", "[x] ", "[] ", "# ", "## ", "> ", ">", "  ", "    ", "\t",
        "\n", "\n", "\n", "\n\n", "\r\n", "\r", "<!--", "-->", "<!-->", "--\\>", "\\<!--", "\\",
        "```", "~~~", "````", "`", "---", "===", "every 2h: ", "daily 09:00: ", "mondays 9:00:",
        "every 0h:", "a", "b c", "a:", "é", "看", "\u200b", "\ufeff", "\u2028", "\ud800",
    ]
)  # fmt: skip
lines = st.lists(pieces, max_size=12).map("".join) | st.text(max_size=40)
bullets = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "  ", "    ", "> ", "\t"]),
    st.sampled_from(["- ", "- [ ] ", "- [x] ", "12) ", "* [] ", "- every 2h: ", "- a:\n  - "]),
    st.sampled_from(["a", "b <!-- c", "--> d", "```e", "<!-- f --> g", "weekdays 8:00: h", "i:"]),
    st.sampled_from(["\n", "\n\n", "\r\n"]),
)
files = st.lists(pieces | bullets, max_size=30).map("".join) | st.text(max_size=60)
lists = st.lists(bullets | bullets | pieces, min_size=1, max_size=15).map(
    lambda each: "- first\n" + "".join(each)
)
instants = st.datetimes(datetime(2015, 1, 1), datetime(2036, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


def texts(checklist: Checklist) -> list[str]:
    return [item.text for item in checklist.items]


@given(files)
def test_every_text_is_a_checklist_and_what_it_carries_is_empty_exactly_if_it_is(file: str) -> None:
    checklist = parse(file)
    assert checklist.text == file
    assert [item.number for item in checklist.items] == [*range(1, len(checklist.items) + 1)]
    assert all(item.text and bool(item.every) == bool(item.key) for item in checklist.items)
    if checklist.is_empty:
        assert checklist.items == ()
        assert checklist.due({}, now=NOW, zone="UTC").text == ""
    elif not any(item.key for item in checklist.items):
        # Without intervals all of it is due, always.
        assert checklist.due({}, now=NOW, zone="UTC").text != ""


@given(files)
def test_lines_are_those_of_the_file_and_know_where_they_come_from(file: str) -> None:
    whole = re.split(r"\r\n|\r|\n", file)
    assert [line.start for line in read_lines(file)] == sorted(
        {line.start for line in read_lines(file)}
    )
    assert len(read_lines(file)) == len(whole) - (whole[-1] == "")
    for line in read_lines(file):
        for at, character in enumerate(line.text):
            assert character in (file[line.start + at], HIDDEN)


@given(files, lines)
def test_an_item_that_is_written_is_read_as_one_with_the_same_text(file: str, item: str) -> None:
    before = parse(file)
    try:
        changed = with_item(file, item)
    except BadChecklist:
        assume(condition=False)
        raise
    after = parse(changed)
    assert changed.startswith(file)
    assert after.items[:-1] == before.items
    written = after.items[-1].text
    assert " ".join(written.split()) == written
    assert len(written) <= ITEM_CHARS
    assert _seen(written) == _seen(item)
    assert not after.is_empty


def _seen(text: str) -> str:
    """Without blanks and control characters."""
    return "".join(
        character
        for character in well_formed(text)
        if not character.isspace() and unicodedata.category(character) != "Cc"
    )


@given(files, st.text(st.characters(categories=("L", "N", "P", "S", "Zs")), max_size=40))
def test_whatever_says_something_can_be_written(file: str, item: str) -> None:
    assume(any(character.isalnum() for character in item))
    plain = " ".join(item.split())
    with suppress(BadChecklist):
        assert texts(parse(with_item(file, plain)))[-1] == plain
        return
    # An interval and nothing else, or the number of an empty item.
    assert plain.endswith((":", ".", ")"))


@given(lists, st.data())
def test_ticking_off_takes_an_item_and_changes_one_line(file: str, data: st.DataObject) -> None:
    before = parse(file)
    assume(before.items)
    number = data.draw(st.integers(1, len(before.items)))
    changed = with_done(file, number)
    left = texts(parse(changed))
    # What is left stands in its old order, and none of it is new.
    rest = iter(texts(before)[: number - 1] + texts(before)[number:])
    assert all(any(each == text for each in rest) for text in left)
    old, new = (re.split(r"\r\n|\r|\n", each) for each in (file, changed))
    assert len(old) == len(new)
    assert sum(was != now for was, now in zip(old, new, strict=True)) == 1


@given(st.lists(pieces, max_size=12).map("".join))
def test_what_is_escaped_is_read_as_it_was(text: str) -> None:
    assert unescaped(escaped(text)) == text


@given(files, st.dictionaries(st.integers(0, 5), st.integers(0, 10_000)))
def test_a_comment_is_never_carried(file: str, ago: dict[int, int]) -> None:
    file = f"- look\n\n<!-- the\nsecret\n-->\n\n{file}"
    checklist = parse(file)
    keys = [item.key for item in checklist.items if item.key]
    done = {
        keys[index]: NOW - timedelta(minutes=minutes)
        for index, minutes in ago.items()
        if index < len(keys)
    }
    assert "secret" not in checklist.due(done, now=NOW, zone="UTC").text


DAYS = {"daily": "*", "weekdays": "1-5", "weekends": "0,6", "mondays": "1", "tue, sunday": "2,0"}


@given(
    st.sampled_from(sorted(DAYS)),
    st.times(),
    instants,
    st.timedeltas(timedelta(minutes=1), timedelta(days=9)),
    st.sampled_from(
        ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/St_Johns"]
    ),
)
def test_a_time_is_due_exactly_when_a_job_with_it_would_have_run(
    days: str, at: time, noted: datetime, later: timedelta, zone: str
) -> None:
    """The calendar of jobs is another program: SPEC CRON-1 on gaps and on repeated times."""
    hour, minute = at.hour, at.minute
    checklist = parse(f"- {days} {hour}:{minute:02}: look")
    key = checklist.items[0].key
    noted = noted.replace(microsecond=0)
    following = cron(f"{minute} {hour} * * {DAYS[days]}").next_after(zone_named(zone), noted)
    assert following is not None
    for now in (noted + later, following, following - timedelta(seconds=1)):
        due = checklist.due({key: noted}, now=max(now, noted), zone=zone)
        assert bool(due.text) is (max(now, noted) >= following)


@given(st.integers(1, 200), st.lists(st.integers(0, 90), min_size=1, max_size=60))
def test_an_interval_is_kept_on_any_grid_of_heartbeat_runs(minutes: int, gaps: list[int]) -> None:
    """Never earlier than its tolerance allows, and never later than the first run after it."""
    checklist = parse(f"- every {minutes} minutes: look")
    length = timedelta(minutes=minutes)
    slack = min(length / 10, timedelta(minutes=5))
    done: dict[str, datetime] = {}
    now = NOW
    for gap in gaps:
        now += timedelta(minutes=gap)
        due = checklist.due(done, now=now, zone="UTC")
        last = next(iter(done.values()), None)
        if last is not None:
            assert bool(due.text) is (now - last >= length - slack)
        assert bool(due.text) is bool(due.keys)
        done |= dict.fromkeys(due.keys, now)
    assert done
