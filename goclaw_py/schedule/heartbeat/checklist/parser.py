"""Parses the lines of a checklist, and which of them belong together (SPEC HB-3).

Markdown, with four differences.

- Two columns of indentation put a line inside of an item, whatever its bullet.
- A heading with a line below it has one line; a paragraph above a rule is no heading.
- An item may begin with an interval.
- An item that ends with a colon, or is only an interval, introduces the items inside of it.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field, replace
from enum import Enum
from hashlib import sha256
from typing import Final

from goclaw_py.schedule.heartbeat.checklist.intervals import Interval, read_interval
from goclaw_py.schedule.heartbeat.checklist.lines import (
    HIDDEN,
    UNSEEN,
    LinePart,
    SourceLine,
    read_lines,
    says_nothing,
    unescaped,
)

NOBODY: Final = -1
"""The index of no entry."""

_INSIDE: Final = 2
"""The number of columns by which the content of an item is indented."""
_TAB: Final = 4
_PREFIX: Final = re.compile(rf"[\s>{UNSEEN}]*")
_BULLET: Final = re.compile(
    rf"(?P<mark>[-*+]|[0-9]{{1,9}}[.)])"
    rf"(?:{HIDDEN}*\s[\s{HIDDEN}]*(?P<box>\[[\sxX]?\](?![^\s{HIDDEN}]))?[\s{HIDDEN}]*|{HIDDEN}*$)"
)
_RULE: Final = re.compile(r"([-*_])\s*(?:\1\s*){2,}")
_UNDERLINE: Final = re.compile(r"(?:={2,}|-{2,})\s*")
_HEADING: Final = re.compile(r"(#{1,6})\s")


class RowKind(Enum):
    """The kind of a row."""

    BLANK = 0
    """Without content: a blank line, a rule, an empty bullet."""
    HEADING = 1
    LEAD = 2
    """An item that only introduces those inside of it."""
    TEXT = 3


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the result; a heading with the line below it is one row.

    Args:
        owner: The index of the entry that it belongs to.
        level: The level of a heading, from 1 to 6.
    """

    text: str
    kind: RowKind
    owner: int = NOBODY
    level: int = 0


@dataclass(frozen=True, slots=True)
class TickEdit:
    """How to check off an item: the new text for a part of the file."""

    start: int
    end: int
    box: str


@dataclass(frozen=True, slots=True)
class ChecklistEntry:
    """A bullet with its content.

    Args:
        parent: The index of the entry around it; always smaller.
        text: Its first paragraph without bullet and box.
        is_done: Whether it is checked off, or is inside of an item that is.
        is_item: Whether it has content and is not done.
        interval: None also without content.
        words: The interval as written.
        key: The key of an item with an interval, which stays the same while its text does, ignoring
            case and blanks; otherwise "".
    """

    parent: int
    text: str
    tick: TickEdit
    is_done: bool
    is_item: bool
    interval: Interval | None = None
    words: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Tree:
    """A checklist as rows and entries.

    ``is_empty``: it has no content, except what is done.
    """

    rows: tuple[Row, ...] = ()
    entries: tuple[ChecklistEntry, ...] = ()
    is_empty: bool = True


def read_tree(text: str) -> Tree:
    """Parse a checklist. Every text is one."""
    reader = _Reader()
    for line in read_lines(text):
        reader.feed(line)
    return reader.tree()


@dataclass(slots=True)
class _Draft:
    """An entry in progress. ``rows`` and ``parts`` are those of its first paragraph."""

    parent: int
    column: int
    depth: int
    tick: TickEdit
    is_done: bool
    rows: list[int]
    parts: list[str]
    has_entries: bool = False
    is_alive: bool = False

    @property
    def text(self) -> str:
        return unescaped(" ".join(" ".join(self.parts).split()))

    def kind(self) -> RowKind:
        text = self.text
        if says_nothing(text):
            return RowKind.BLANK
        timed = read_interval(text)
        if timed is not None and says_nothing(timed.rest):
            return RowKind.LEAD
        return RowKind.LEAD if self.has_entries and text.endswith(":") else RowKind.TEXT


@dataclass(slots=True)
class _Reader:
    """Parses line by line.

    ``within`` are the entries that a line may belong to, the innermost last; ``paragraph`` the
    lines of the present paragraph; ``collects`` the entry whose first paragraph that is.
    """

    rows: list[Row] = field(default_factory=list)
    drafts: list[_Draft] = field(default_factory=list)
    within: list[int] = field(default_factory=list)
    paragraph: int = 0
    depth: int = 0
    collects: int = NOBODY

    def feed(self, line: SourceLine) -> None:
        """Parse a line."""
        prefix = _PREFIX.match(line.text)
        assert prefix is not None, "a prefix may be empty"
        columns, rest = _columns(prefix[0]), _seen(line.text[prefix.end() :])
        if line.part is LinePart.CODE:
            self._row(line.text, RowKind.TEXT)
        elif not rest:
            self._end_paragraph()
            self._row("", RowKind.BLANK)
        elif self._is_underline(rest, columns):
            self._end_paragraph()
            above = self.rows.pop()
            level = 1 if rest.startswith("=") else 2
            self._row(f"{above.text}\n{_seen(line.text).rstrip()}", RowKind.HEADING, level)
        elif not _RULE.fullmatch(rest) and (bullet := _BULLET.match(line.text, prefix.end())):
            self._bullet(line, bullet, columns)
        elif says_nothing(rest) or line.part is LinePart.FENCE or _HEADING.match(rest):
            self._structure(line, rest, columns)
        else:
            self._text(_seen(line.text), rest, columns)

    def tree(self) -> Tree:
        """Return the result."""
        for draft in self.drafts:
            kind = draft.kind()
            for number in draft.rows:
                self.rows[number] = replace(self.rows[number], kind=kind)
        is_empty = True
        for row in self.rows:
            if row.kind is RowKind.TEXT and not self._is_done(row.owner):
                is_empty = False
                self._enliven(row.owner)
        return Tree(tuple(self.rows), tuple(map(_entry, self.drafts)), is_empty)

    def _structure(self, line: SourceLine, rest: str, columns: list[int]) -> None:
        self._end_paragraph()
        self._leave(columns)
        if line.part is LinePart.FENCE:
            self._row(line.text, RowKind.TEXT)
        elif (heading := _HEADING.match(rest)) and not says_nothing(rest):
            self._row(_seen(line.text).rstrip(), RowKind.HEADING, len(heading[1]))
        else:
            self._row("", RowKind.BLANK)

    def _bullet(self, line: SourceLine, bullet: re.Match[str], columns: list[int]) -> None:
        self._leave(columns)
        parent, box = self._owner, bullet["box"]
        ticked = box is not None and box[1] in "xX"
        content = _seen(line.text[bullet.end() :])
        draft = _Draft(
            parent=parent,
            column=columns[-1],
            depth=len(columns) - 1,
            tick=_tick(line, bullet),
            is_done=ticked or self._is_done(parent),
            rows=[len(self.rows)],
            parts=[content],
        )
        if parent != NOBODY:
            self.drafts[parent].has_entries = True
        self.within.append(len(self.drafts))
        self.drafts.append(draft)
        self.collects = self._owner
        # Only text continues without indentation; an empty bullet has none.
        self.paragraph, self.depth = int(not says_nothing(content)), draft.depth
        self._row(_seen(line.text).rstrip(), RowKind.TEXT)

    def _text(self, text: str, rest: str, columns: list[int]) -> None:
        if not self.paragraph:
            self._leave(columns)
            self.depth = len(columns) - 1
            if self.collects != self._owner:
                self.collects = NOBODY
        if self.collects != NOBODY:
            self.drafts[self.collects].rows.append(len(self.rows))
            self.drafts[self.collects].parts.append(rest)
        self.paragraph += 1
        self._row(text.rstrip(), RowKind.TEXT)

    def _is_underline(self, rest: str, columns: list[int]) -> bool:
        """Return whether the line above is a heading because of this one."""
        return (
            self.paragraph == 1
            and not self.within
            and self.depth == len(columns) - 1
            and _UNDERLINE.fullmatch(rest) is not None
        )

    def _leave(self, columns: list[int]) -> None:
        """Leave the entries that the next line is not indented for."""
        while self.within:
            draft = self.drafts[self.within[-1]]
            if len(columns) > draft.depth and columns[draft.depth] >= draft.column + _INSIDE:
                return
            self.within.pop()

    def _end_paragraph(self) -> None:
        self.paragraph, self.collects = 0, NOBODY

    def _row(self, text: str, kind: RowKind, level: int = 0) -> None:
        # A blank line parts what stands around it, whatever becomes of the entry above it.
        owner = NOBODY if kind is RowKind.BLANK else self._owner
        self.rows.append(Row(text, kind, owner, level))

    @property
    def _owner(self) -> int:
        return self.within[-1] if self.within else NOBODY

    def _is_done(self, number: int) -> bool:
        return number != NOBODY and self.drafts[number].is_done

    def _enliven(self, number: int) -> None:
        """Mark an entry and all entries around it as having content."""
        while number != NOBODY and not self.drafts[number].is_alive:
            self.drafts[number].is_alive = True
            number = self.drafts[number].parent


def _entry(draft: _Draft) -> ChecklistEntry:
    text = draft.text
    is_item = draft.is_alive and not draft.is_done and draft.kind() is not RowKind.BLANK
    entry = ChecklistEntry(draft.parent, text, draft.tick, draft.is_done, is_item)
    timed = read_interval(text) if is_item else None
    if timed is None:
        return entry
    return replace(entry, interval=timed.interval, words=timed.words, key=_key(text))


def _key(text: str) -> str:
    plain = unicodedata.normalize("NFC", text.casefold())
    return sha256(plain.encode(errors="surrogatepass")).hexdigest()[:16]


def _columns(prefix: str) -> list[int]:
    """Return the columns of each quote mark, and of the text; tabs count as usual."""
    columns, column = [], 0
    for character in prefix:
        if character == ">":
            columns.append(column)
        if character == "\t":
            column += _TAB - column % _TAB
        elif character not in UNSEEN:
            column += 1
    return [*columns, column]


def _tick(line: SourceLine, bullet: re.Match[str]) -> TickEdit:
    if bullet["box"] is not None:
        return TickEdit(line.start + bullet.start("box"), line.start + bullet.end("box"), "[x]")
    if bullet.end() == len(line.text):
        behind = line.start + bullet.end("mark")
        return TickEdit(behind, behind, " [x]")
    begin = line.start + bullet.end()
    return TickEdit(begin, begin, "[x] ")


def _seen(text: str) -> str:
    return text.replace(HIDDEN, "")
