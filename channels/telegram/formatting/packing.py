"""Distributes blocks of styled text over parts of Telegram's size."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, assert_never

from channels.telegram.formatting.markup import (
    MARKUP_BUDGET,
    PLAIN,
    Format,
    TextRun,
    cost,
    unstyled,
)
from goclaw_py.core.text import is_blank, split_text, utf16_len

NO_GAP = TextRun("", PLAIN)
_LEAST_UNITS = 2
"""The smallest part: a character may have this many units."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A paragraph, heading or line of a list. Not empty.

    ``gap`` separates it from the block before it; a heading stays with what follows.
    """

    runs: Sequence[TextRun]
    gap: TextRun = NO_GAP
    heading: bool = False


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Lines in a fixed-width font, which are split between lines. Not empty.

    ``header`` is the beginning that each part repeats, "" if there is none.
    """

    text: str
    format: Format
    gap: TextRun = NO_GAP
    header: str = ""


Block = Flow | Verbatim


class _Room(NamedTuple):
    """The room left in a part: visible UTF-16 units, and cost of tags."""

    units: int
    budget: int


def pack(blocks: Sequence[Block], limit: int) -> list[list[TextRun]]:
    """Distribute blocks over parts of at most ``limit`` (≥ 2) visible UTF-16 units.

    No part costs more than ``MARKUP_BUDGET``, and none is blank. Splits are between blocks if no
    part becomes small, otherwise between lines, sentences, words.
    """
    whole = [run for block in blocks for run in (block.gap, *_whole(block))]
    # Most answers are one part; counting UTF-16 units takes longer than anything else here.
    short = sum(len(run.text) for run in whole) * 2 <= limit or _units(whole) <= limit
    if short and _cost((), whole) <= MARKUP_BUDGET:
        return [] if is_blank("".join(run.text for run in whole)) else [whole]
    packer = _Packer(limit)
    for block in blocks:
        packer.add(block)
    return packer.finish()


class _Packer:
    """Fills one part after the other."""

    def __init__(self, limit: int) -> None:
        self._parts: list[list[TextRun]] = []
        self._limit = limit
        self._runs: list[TextRun] = []
        self._left = _Room(limit, MARKUP_BUDGET)
        self._headings: int | None = None
        """The position in ``_runs`` of headings without content so far."""

    def add(self, block: Block) -> None:
        """Add a block to this part, the next, or as many as it needs."""
        whole = _whole(block)
        units = _units(whole)
        if not self._fits(block, whole, units):
            if units <= self._limit and self._left.units * 2 <= self._limit:
                self._end_part()
            if not self._fits(block, whole, units):
                self._add_in_pieces(block)
                return
        self._append(block.gap, whole, heading=isinstance(block, Flow) and block.heading)

    def finish(self) -> list[list[TextRun]]:
        """Return all parts; the last one may end with headings."""
        self._headings = None
        self._end_part()
        return self._parts

    def _end_part(self) -> None:
        """Begin a new part with the headings that have no content yet."""
        carried: list[TextRun] = []
        if self._headings:
            headings = self._runs[self._headings + 1 :]
            if _units(headings) * 8 <= self._limit and _cost((), headings) * 8 <= MARKUP_BUDGET:
                carried = headings
                del self._runs[self._headings :]
        if not is_blank("".join(run.text for run in self._runs)):
            self._parts.append(self._runs)
        self._runs, self._headings = [], None
        self._left = _Room(self._limit, MARKUP_BUDGET)
        if carried:
            self._append(NO_GAP, carried, heading=True)

    def _add_in_pieces(self, block: Block) -> None:
        while self._runs and (
            self._after(block.gap).units < max(self._limit // 4, _LEAST_UNITS)
            or self._left.budget * 2 < MARKUP_BUDGET
        ):
            self._end_part()
        first = self._after(block.gap)
        gap = block.gap
        for number, piece in enumerate(_pieces(block, first, self._limit)):
            if number:
                self._end_part()
                gap = NO_GAP
            if piece:
                self._append(gap, piece)

    def _after(self, gap: TextRun) -> _Room:
        """Return the room after a gap; the first block of a part has no gap."""
        return self._left._replace(units=self._left.units - (len(gap.text) if self._runs else 0))

    def _fits(self, block: Block, runs: Sequence[TextRun], units: int) -> bool:
        return (
            units <= self._after(block.gap).units
            and _cost(self._runs[-1:], [block.gap, *runs]) <= self._left.budget
        )

    def _append(self, gap: TextRun, runs: Sequence[TextRun], *, heading: bool = False) -> None:
        added = [gap, *runs] if self._runs else runs
        if not heading:
            self._headings = None
        elif self._headings is None:
            self._headings = len(self._runs)
        self._left = _Room(
            self._left.units - _units(added),
            self._left.budget - _cost(self._runs[-1:], added),
        )
        self._runs += added


def _whole(block: Block) -> Sequence[TextRun]:
    return block.runs if isinstance(block, Flow) else [TextRun(block.text, block.format)]


def _units(runs: Iterable[TextRun]) -> int:
    return utf16_len("".join(run.text for run in runs))


def _cost(before: Sequence[TextRun], runs: Iterable[TextRun]) -> int:
    """Return the cost of the tags of ``runs`` after ``before``, of which the last one counts."""
    form = before[-1].format if before else PLAIN
    spent = 0
    for run in runs:
        if run.format is not form:
            spent += cost(form, run.format)
            form = run.format
    return spent


def _pieces(block: Block, first: _Room, limit: int) -> Iterator[Sequence[TextRun]]:
    """Split a block; ``first`` is for the first piece, which is empty if nothing fits."""
    match block:
        case Flow(runs):
            if _cost((), runs) > MARKUP_BUDGET:
                # Where everything is emphasised, nothing is.
                runs = [TextRun(run.text, unstyled(run.format)) for run in runs]
            yield from _flow_pieces(runs, first, limit)
        case Verbatim(text, form, _, header):
            for piece in _line_pieces(text, header, first.units, limit):
                yield [TextRun(piece, form)] if piece else []
        case _:
            assert_never(block)


def _flow_pieces(runs: Sequence[TextRun], room: _Room, limit: int) -> Iterator[Sequence[TextRun]]:
    text = "".join(run.text for run in runs)
    ends = list(accumulate(len(run.text) for run in runs))
    place = 0
    while place < len(text):
        # More than fits is enough to see; the rest would be read again for every piece.
        ahead = text[place : place + 2 * limit]
        affordable = _affordable(_between(runs, ends, place, place + len(ahead)), room.budget)
        heads = split_text(ahead, max(min(room.units, utf16_len(ahead[:affordable])), _LEAST_UNITS))
        if not heads:
            place += len(ahead)
            continue
        # Only blanks are skipped above the first piece, so nothing visible is found before it.
        begin = place + ahead.index(heads[0])
        place = begin + len(heads[0])
        yield _between(runs, ends, begin, place)
        while place < len(text) and text[place].isspace():
            place += 1
        room = _Room(limit, MARKUP_BUDGET)


def _affordable(runs: Iterable[TextRun], budget: int) -> int:
    """Return how many code points precede the first tag that exceeds the budget."""
    form, size = PLAIN, 0
    for run in runs:
        budget -= cost(form, run.format)
        if budget < 0:
            break
        form = run.format
        size += len(run.text)
    return size


def _between(runs: Sequence[TextRun], ends: Sequence[int], begin: int, end: int) -> list[TextRun]:
    """Return the runs from code point ``begin`` to ``end``; run i ends before ``ends[i]``."""
    found = []
    number = bisect_right(ends, begin)
    while number < len(runs) and begin < end:
        text, form = runs[number]
        skipped = len(text) - (ends[number] - begin)
        taken = text[skipped : skipped + end - begin]
        found.append(TextRun(taken, form))
        begin += len(taken)
        number += 1
    return found


def _line_pieces(text: str, header: str, room: int, limit: int) -> Iterator[str]:
    if utf16_len(header) > limit // 4:
        header = ""
    longest = limit - (utf16_len(header) + 1 if header else 0)
    chunk: list[str] = []
    size = 0
    for line in text.split("\n"):
        pieces = [line] if utf16_len(line) <= longest else split_text(line, longest)
        for number, piece in enumerate(pieces):
            if (chunk or room < limit) and (number or size + utf16_len(piece) > room):
                yield "\n".join(chunk)
                chunk = [header] if header else []
                size = limit - longest
                room = limit
            if chunk or piece.strip():
                chunk.append(piece)
                size += utf16_len(piece) + 1
    if chunk:
        yield "\n".join(chunk)
