"""HEARTBEAT.md: the checklist of an agent (SPEC HB-3).

An item may say how often it is looked at: ``- every 2h: …``, ``- weekdays 09:00: …``.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from goclaw_py.common.text import well_formed
from goclaw_py.common.timezones import zone as zone_named
from goclaw_py.heartbeat.checklist.intervals import DailyTimes
from goclaw_py.heartbeat.checklist.lines import escaped, read_lines
from goclaw_py.heartbeat.checklist.parser import (
    NOBODY,
    ChecklistEntry,
    Row,
    RowKind,
    Tree,
    read_tree,
    says_nothing,
)
from goclaw_py.model.errors import BadChecklist

ITEM_CHARS: Final = 500
"""How long an item may be that is written into a list."""


@dataclass(frozen=True, slots=True)
class Item:
    """An item of the list that is not ticked off.

    Args:
        number: Its place among them, from 1, as people are shown it.
        text: What it says, without bullet and box, with its interval.
        every: That interval in the words of the file, "" if it is looked at with every run.
        key: Names an item with an interval where it is noted that it was looked at; else "".
    """

    number: int
    text: str
    every: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class DueItems:
    """The items of a list that are due in a heartbeat run.

    Args:
        text: The list without comments and without what is not due; "" if nothing is.
        keys: Of the items with an interval that it carries, and of those that are seen for the
            first time and wait for their hour: all are noted with the heartbeat run.
    """

    text: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checklist:
    """A list that was read; made by ``parse`` only. ``text`` is the whole file."""

    text: str
    items: tuple[Item, ...] = ()
    _tree: Tree = field(default=Tree(), compare=False, repr=False)

    @property
    def version(self) -> str:
        """Names what the file says: another text has another one."""
        return hashlib.sha256(self.text.encode(errors="surrogatepass")).hexdigest()[:32]

    @property
    def is_empty(self) -> bool:
        """Whether nothing in it has a meaning (SPEC HB-3); what is ticked off has none."""
        return self._tree.is_empty

    def due(self, done: Mapping[str, datetime], *, now: datetime, zone: str) -> DueItems:
        """What a heartbeat run at ``now`` carries. ``done``: when keys were noted last.

        What is inside of an item that is not due is not due either. An item with a time of the day
        that was never noted waits for its next time, unless that was a moment ago
        (``checklist_times.FRESH``). Raises ``UnknownZone``.
        """
        here = zone_named(zone)
        keys: dict[str, None] = {}
        # Whether what is inside of each entry may be due.
        is_open: list[bool] = []
        for entry in self._tree.entries:
            passes = entry.parent == NOBODY or is_open[entry.parent]
            if entry.interval is not None:
                last = done.get(entry.key)
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
    """Read a list. Every text is one."""
    tree = read_tree(text)
    entries = [entry for entry in tree.entries if entry.is_item]
    items = [
        Item(number, entry.text, entry.words, entry.key) for number, entry in enumerate(entries, 1)
    ]
    return Checklist(text, tuple(items), tree)


def as_item(text: str) -> str:
    """What an item says that is made of a text. Raises ``BadChecklist`` if none can be."""
    return parse(with_item("", text)).items[-1].text


def open_item(checklist: Checklist, says: str) -> Item | None:
    """The first open item that says exactly this."""
    return next((item for item in checklist.items if item.text == says), None)


def with_item(text: str, item: str) -> str:
    """The file with one more item at its end, open and of one line. Raises ``BadChecklist``.

    Whatever it says is text: it begins no comment, and ends none.
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
    """The file with an item ticked off, and with it all that is inside of it.

    One with an interval is not looked at again either. Raises ``BadChecklist`` if there is no such
    number.
    """
    entries = [entry for entry in read_tree(text).entries if entry.is_item]
    if not 1 <= number <= len(entries):
        there = f"there are 1 to {len(entries)}" if entries else "the list has none"
        raise BadChecklist(f"there is no item {number}: {there}")
    tick = entries[number - 1].tick
    return text[: tick.start] + tick.box + text[tick.end :]


def _with_content(rows: Iterable[Row], tree: Tree) -> list[Row]:
    """Without headings that have nothing below them, and leads that have nothing in them."""
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
    """The rows as lines, with one blank line where there are several; "" if none says anything."""
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
    """The file with one more line, ended as its lines are."""
    if not text.strip("\ufeff"):
        return f"{text}{line}\n"
    newline = "\r\n" if "\r\n" in text else "\r" if "\r" in text and "\n" not in text else "\n"
    if text.endswith(("\n", "\r")):
        return f"{text}{line}{newline}"
    return f"{text}{newline}{line}"


# ---------------------------------------------------------------------------- all items


@dataclass(frozen=True, slots=True)
class CheckboxItem:
    """An item as it stands in the file.

    Args:
        place: Which of all bullets it is, from 0; ``without`` takes it.
        number: Its number among the open ones, from 1, as ``Item`` has it; None if it is done.
        depth: In how many others it is.
        every: Its interval in the words of the file, "" if it has none or is done.
    """

    place: int
    text: str
    number: int | None
    depth: int = 0
    every: str = ""

    @property
    def is_done(self) -> bool:
        """Whether it is ticked off, or is in one that is."""
        return self.number is None


def marks(text: str) -> tuple[CheckboxItem, ...]:
    """The items that say something, in the order of the file."""
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
    """The file without an item and all that is in it.

    Raises ``BadChecklist`` if there is no such item, and if its lines cannot be taken out without
    changing what others say, as where a comment begins in one of them.
    """
    tree = read_tree(text)
    if not 0 <= place < len(tree.entries):
        raise BadChecklist("there is no such item")
    gone = _family(tree, place)
    starts = [*(line.start for line in read_lines(text)), len(text)]
    first, behind = _lines_of(tree, gone)
    left = text[: starts[first]] + text[starts[behind] :]
    kept = [_said(entry) for number, entry in enumerate(tree.entries) if number not in gone]
    if [_said(entry) for entry in read_tree(left).entries] != kept:
        raise BadChecklist("this item cannot be taken out alone; change the text of the file")
    return left


def _said(entry: ChecklistEntry) -> tuple[str, bool]:
    return entry.text, entry.is_done


def _family(tree: Tree, place: int) -> set[int]:
    """An entry with all that are in it: these follow it."""
    family = {place}
    for number, entry in enumerate(tree.entries):
        if entry.parent in family:
            family.add(number)
    return family


def _lines_of(tree: Tree, family: set[int]) -> tuple[int, int]:
    """The first line of what these entries own, and the one behind the last."""
    line, owned = 0, []
    for row in tree.rows:
        # A heading with a line below it is one row.
        following = line + (2 if row.kind is RowKind.HEADING and "\n" in row.text else 1)
        if row.owner in family:
            owned += [line, following]
        line = following
    return owned[0], owned[-1]
