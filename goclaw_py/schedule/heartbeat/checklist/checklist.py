"""HEARTBEAT.md: the checklist of an agent (SPEC HB-3).

An item may begin with its interval: ``- every 2h: …``, ``- weekdays 09:00: …``.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from goclaw_py.core.errors import BadChecklist
from goclaw_py.core.text import well_formed
from goclaw_py.core.time.zones import zone as zone_named
from goclaw_py.schedule.heartbeat.checklist.intervals import DailyTimes, is_like_interval
from goclaw_py.schedule.heartbeat.checklist.lines import escaped, read_lines, says_nothing
from goclaw_py.schedule.heartbeat.checklist.parser import (
    NOBODY,
    ChecklistEntry,
    Row,
    RowKind,
    Tree,
    read_tree,
)

ITEM_CHARS: Final = 500
"""The longest item that can be added."""

_AHEAD: Final = timedelta(days=1)
"""A check that lies further ahead was noted while the clock was wrong: the item counts as new, and
does not wait until that time."""


@dataclass(frozen=True, slots=True)
class Item:
    """An item that is not checked off.

    Args:
        number: Its number among these, from 1, as people see it.
        text: Its text with its interval, without bullet and box.
        every: The interval as written in the file, "" if it is included in every run.
        key: The key of an item with an interval, under which its checks are stored; otherwise "".
    """

    number: int
    text: str
    every: str = ""
    key: str = ""

    @property
    def is_misread(self) -> bool:
        """Whether it begins with what looks like an interval, but is none."""
        return not self.every and is_like_interval(self.text)


@dataclass(frozen=True, slots=True)
class DueItems:
    """The items that are due in a heartbeat run.

    Args:
        text: The list without comments and without items that are not due; "" if nothing is.
        keys: Keys of the included items with intervals, and of new items that wait for their time
            of day; all are stored with the heartbeat run.
    """

    text: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checklist:
    """A parsed checklist; create it with ``parse``. ``text`` is the whole file."""

    text: str
    items: tuple[Item, ...] = ()
    _tree: Tree = field(default=Tree(), compare=False, repr=False)

    @property
    def version(self) -> str:
        """A hash of the file, which differs for every other text."""
        return hashlib.sha256(self.text.encode(errors="surrogatepass")).hexdigest()[:32]

    @property
    def is_empty(self) -> bool:
        """Whether it has no content (SPEC HB-3); items that are checked off do not count."""
        return self._tree.is_empty

    def due(self, done: Mapping[str, datetime], *, now: datetime, zone: str) -> DueItems:
        """Return what a heartbeat run at ``now`` includes. ``done``: when keys were last stored.

        Items inside of an item that is not due are not due either. A new item with a time of day
        waits for its next time, unless that was a moment ago (``intervals.FRESH``). Raises
        ``UnknownZone``.
        """
        here = zone_named(zone)
        keys: dict[str, None] = {}
        # Whether what is inside of each entry may be due.
        is_open: list[bool] = []
        for entry in self._tree.entries:
            passes = entry.parent == NOBODY or is_open[entry.parent]
            if entry.interval is not None:
                last = done.get(entry.key)
                if last is not None and last - now >= _AHEAD:
                    last = None
                if last is None and isinstance(entry.interval, DailyTimes):
                    keys[entry.key] = None
                passes = passes and entry.interval.is_due(last, now=now, zone=here)
                if passes:
                    keys[entry.key] = None
            is_open.append(passes)
        carried = (
            row
            for row in self._tree.rows
            if row.owner == NOBODY
            or (is_open[row.owner] and not self._tree.entries[row.owner].is_done)
        )
        return DueItems(_text(_with_content(carried, self._tree)), tuple(keys))


def parse(text: str) -> Checklist:
    """Parse a list. Every text is one."""
    tree = read_tree(text)
    entries = [entry for entry in tree.entries if entry.is_item]
    items = [
        Item(number, entry.text, entry.words, entry.key) for number, entry in enumerate(entries, 1)
    ]
    return Checklist(text, tuple(items), tree)


def as_item(text: str) -> str:
    """Return the text of a new item. Raises ``BadChecklist`` if it cannot be one."""
    return parse(with_item("", text)).items[-1].text


def open_item(checklist: Checklist, says: str) -> Item | None:
    """Return the first open item with exactly this text."""
    return next((item for item in checklist.items if item.text == says), None)


def with_item(text: str, item: str) -> str:
    """Return the file with an open item of one line appended. Raises ``BadChecklist``.

    The text is escaped, so that it does not begin or end a comment.
    """
    line = _one_line(item)
    if says_nothing(line):
        raise BadChecklist("an item says what is to be looked after; this one says nothing")
    if len(line) > ITEM_CHARS:
        raise BadChecklist(f"an item has at most {ITEM_CHARS} characters, this one {len(line)}")
    before = parse(text).items
    for written in dict.fromkeys((line, escaped(line))):
        changed = _with_line(text, f"- [ ] {written}")
        after = parse(changed).items
        if after[:-1] == before and len(after) > len(before) and after[-1].text == line:
            return changed
    # Such as an interval and nothing else.
    raise BadChecklist(f"an item says what is to be looked after; {line[:40]!r} does not")


def with_done(text: str, number: int) -> str:
    """Return the file with an item, and everything inside of it, checked off.

    An item with an interval is not checked again either. Raises ``BadChecklist`` if there is no
    such number.
    """
    entries = [entry for entry in read_tree(text).entries if entry.is_item]
    if not 1 <= number <= len(entries):
        there = f"there are 1 to {len(entries)}" if entries else "the list has none"
        raise BadChecklist(f"there is no item {number}: {there}")
    tick = entries[number - 1].tick
    return text[: tick.start] + tick.box + text[tick.end :]


def _with_content(rows: Iterable[Row], tree: Tree) -> list[Row]:
    """Remove headings and leads that have no content."""
    kept: list[Row] = []
    fed: set[int] = set()
    is_needed = [False] * 7
    for row in reversed(list(rows)):
        match row.kind:
            case RowKind.TEXT:
                is_needed = [True] * 7
                owner = row.owner
                while owner != NOBODY and owner not in fed:
                    fed.add(owner)
                    owner = tree.entries[owner].parent
            case RowKind.HEADING:
                needed = is_needed[row.level]
                is_needed[row.level :] = [False] * (7 - row.level)
                if not needed:
                    continue
            case RowKind.LEAD if row.owner not in fed:
                continue
            case _:
                pass
        kept.append(row)
    return kept[::-1]


def _text(rows: list[Row]) -> str:
    """Return rows as lines, with single blank lines; "" if none has content."""
    if not any(row.kind is RowKind.TEXT for row in rows):
        return ""
    lines: list[str] = []
    was_blank = True
    for row in rows:
        is_blank = row.kind is RowKind.BLANK
        if not (is_blank and was_blank):
            lines.append("" if is_blank else row.text)
        was_blank = is_blank
    return "\n".join(lines).strip("\ufeff\n").rstrip()


def _one_line(item: str) -> str:
    seen = (
        character
        for character in well_formed(item)
        if character.isspace() or unicodedata.category(character) != "Cc"
    )
    return " ".join("".join(seen).split())


def _with_line(text: str, line: str) -> str:
    """Return the file with a line appended, with the file's line ending."""
    if not text.strip("\ufeff"):
        return f"{text}{line}\n"
    newline = "\r\n" if "\r\n" in text else "\r" if "\r" in text and "\n" not in text else "\n"
    if text.endswith(("\n", "\r")):
        return f"{text}{line}{newline}"
    return f"{text}{newline}{line}"


# ---------------------------------------------------------------------------- all items


@dataclass(frozen=True, slots=True)
class CheckboxItem:
    """An item in the file.

    Args:
        place: Its position among all bullets, from 0, for ``without``.
        number: Its number among the open items, from 1, as in ``Item``; None if it is done.
        depth: The number of items around it.
        every: Its interval as written, "" if it has none or is done.
    """

    place: int
    text: str
    number: int | None
    depth: int = 0
    every: str = ""

    @property
    def is_done(self) -> bool:
        """Whether it is checked off, or is inside of an item that is."""
        return self.number is None


def marks(text: str) -> tuple[CheckboxItem, ...]:
    """Return the items with content, in the order of the file."""
    found: list[CheckboxItem] = []
    depths: list[int] = []
    open_before = 0
    for place, entry in enumerate(read_tree(text).entries):
        depths.append(0 if entry.parent == NOBODY else depths[entry.parent] + 1)
        open_before += entry.is_item
        if entry.is_item:
            found.append(CheckboxItem(place, entry.text, open_before, depths[place], entry.words))
        elif entry.is_done and not says_nothing(entry.text):
            found.append(CheckboxItem(place, entry.text, None, depths[place]))
    return tuple(found)


def without(text: str, place: int) -> str:
    """Return the file without an item and everything inside of it.

    Raises ``BadChecklist`` if there is no such item, or if removing its lines would change other
    items, for example because a comment begins in one of them.
    """
    tree = read_tree(text)
    if not 0 <= place < len(tree.entries):
        raise BadChecklist("there is no such item")
    gone = _family(tree, place)
    starts = [*(line.start for line in read_lines(text)), len(text)]
    first, behind = _lines_of(tree, gone)
    left = text[: starts[first]] + text[starts[behind] :]
    kept = [
        _text_and_state(entry) for number, entry in enumerate(tree.entries) if number not in gone
    ]
    if [_text_and_state(entry) for entry in read_tree(left).entries] != kept:
        raise BadChecklist("this item cannot be taken out alone; change the text of the file")
    return left


def _text_and_state(entry: ChecklistEntry) -> tuple[str, bool]:
    return entry.text, entry.is_done


def _family(tree: Tree, place: int) -> set[int]:
    """Return an entry and all entries inside of it, which follow it."""
    family = {place}
    for number, entry in enumerate(tree.entries):
        if entry.parent in family:
            family.add(number)
    return family


def _lines_of(tree: Tree, family: set[int]) -> tuple[int, int]:
    """Return the first line of these entries, and the line after their last."""
    line, owned = 0, []
    for row in tree.rows:
        # A heading with a line below it is one row.
        following = line + (2 if row.kind is RowKind.HEADING and "\n" in row.text else 1)
        if row.owner in family:
            owned += [line, following]
        line = following
    return owned[0], owned[-1]
