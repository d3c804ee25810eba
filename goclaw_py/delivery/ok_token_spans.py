"""Removes words from Markdown and leaves the rest intact (SPEC HB-6)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from goclaw_py.delivery.ok_token_markup import ADDRESS, TAG, MarkupSpan

MOST_TIDIED: Final = 200
"""Of more words than that only the words are taken out, and their markup stays."""

_NEAR = 16
"""How many blanks there may be between a word and the markup around it."""
_LINE = 256
"""How far a line is looked at."""

_PAIRS: Final = {
    "(": ")",
    "[": "]",
    "{": "}",
    "<": ">",
    "“": "”",
    "„": "“”",
    "”": "”",
    "‘": "’",  # noqa: RUF001  quotes of other languages
    "‚": "‘’",  # noqa: RUF001
    "’": "’",  # noqa: RUF001
    "«": "»",
    "»": "«",
    "‹": "›",  # noqa: RUF001
    "›": "‹",  # noqa: RUF001
    "「": "」",
    "『": "』",
    "《": "》",
    "〈": "〉",
    "【": "】",
    "〔": "〕",  # noqa: RUF001
    "〝": "〞〟",
    "（": "）",  # noqa: RUF001
    "［": "］",  # noqa: RUF001
    "＂": "＂",  # noqa: RUF001
}
"""What opens, and what may close it."""

_LEAST: Final = {"*": 1, "_": 1, "~": 1, "`": 1, '"': 1, "'": 1, "|": 2, "=": 2}
"""Signs that open and close, and how many of them it takes."""

_OPENERS = "".join(_PAIRS) + "".join(_LEAST)
_CLOSERS = "".join(_PAIRS.values()) + "".join(_LEAST)
_POINTS = ".,;:!?…。、，；：！？"  # noqa: RUF001
_ENDS_SENTENCE = tuple(_POINTS)

_ADDRESS = re.compile(ADDRESS, re.DOTALL)
_TAG = re.compile(TAG)
_TAG_NAME = re.compile(r"<([A-Za-z][\w:-]*)")
_CLOSE_TAG = re.compile(r"</([A-Za-z][\w:-]*)\s{0,16}>")
_FENCE = re.compile(
    r"^[ \t>]*+(?:[-*+][ \t]++|\d{1,9}[.)][ \t]++)?(?P<sign>`{3,}+|~{3,}+)(?P<info>[^\n`]*+)$",
    re.MULTILINE,
)
_EMPTY = re.compile(rf"[\s>]{{0,{_NEAR}}}")
# Not possessive, as in `heartbeat_markup`.
_LINE_MARKS = re.compile(
    r"(?:[ \t]|>|[-*+•][ \t]|\d{1,9}[.)][ \t]|#{1,6}[ \t]|\[[ xX]\][ \t]|[-*+•#>]+$)*"
)
_BETWEEN = re.compile(rf"[\s\u200b-\u200f\ufeff{_POINTS}·-]{{0,{_NEAR}}}")
_LEADING = re.compile(rf"(?:(?!!\[)[{_POINTS}]|[-\u2013\u2014|]+(?=\s|$)|[^\S\n])+")
_TRAILING = re.compile(rf"[{_POINTS}]++(?=\s*(?:\n|$))")
_EMPTY_LINES = re.compile(r"(?:[^\S\n]*\n)++")


def cut(text: str, spans: Sequence[MarkupSpan]) -> str:
    """The text without these places, which are in order, and without the markup around them.

    Never longer than before. What was apart is not always apart then: look at it again.
    """
    if len(spans) > MOST_TIDIED:
        begins = [0, *(span.end for span in spans)]
        ends = [*(span.begin for span in spans), len(text)]
        return " ".join(map(text.__getitem__, map(slice, begins, ends)))
    for begin, end in reversed(_Markdown(text).widened(spans)):
        text = _joined(text[:begin], text[end:])
    return text


# ---------------------------------------------------------------------- markup around a word


class _Markdown:
    """A text, and where code blocks are in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._blocks = _blocks(text)

    def widened(self, spans: Sequence[MarkupSpan]) -> list[MarkupSpan]:
        """The places with the markup around them; several with nothing between them are one."""
        text = self._text
        places: list[MarkupSpan] = []
        for number, span in enumerate(spans):
            if places and span.begin < places[-1].end:
                continue
            most = spans[number + 1].begin if number + 1 < len(spans) else len(text)
            place = self._widen(span, MarkupSpan(places[-1].end if places else 0, most))
            while places and _BETWEEN.fullmatch(text, places[-1].end, place.begin):
                both = MarkupSpan(places.pop().begin, place.end)
                place = self._widen(both, MarkupSpan(places[-1].end if places else 0, most))
            places.append(place)
        return places

    def _widen(self, place: MarkupSpan, room: MarkupSpan) -> MarkupSpan:
        """Take in whatever pairs of markup are around a place, as far as ``room``."""
        while True:
            wider = (
                self._signs(place, room)
                or self._half(place, room)
                or self._pair(place, room)
                or self._tags(place, room)
                or self._fence(place, room)
            )
            if wider is None:
                return place
            place = wider

    def _signs(self, place: MarkupSpan, room: MarkupSpan) -> MarkupSpan | None:
        """Signs that are the same on both sides, next to it."""
        text, (begin, end) = self._text, place
        # Both may be escaped.
        if text.startswith("\\", end) and end + 1 < room.end:
            end += 1
        before, after = self._run_before(begin, room), self._run_after(end, room)
        if before[:1] != after[:1]:
            return None
        count = min(len(before), len(after))
        if not before or count < _LEAST[before[0]]:
            return None
        begin -= count
        if begin > room.begin and text[begin - 1] == "\\":
            begin -= 1
        return MarkupSpan(begin, end + count)

    def _half(self, place: MarkupSpan, room: MarkupSpan) -> MarkupSpan | None:
        """One half of a pair, the other of which is in the place: ``**HEART**BEAT_OK``."""
        begin, end = place
        if end - begin > _LINE:
            return None
        inside = self._text[begin:end].replace("_", "")
        if (run := self._run_before(begin, room)) and run in inside:
            return MarkupSpan(begin - len(run), end)
        if (run := self._run_after(end, room)) and run in inside:
            return MarkupSpan(begin, end + len(run))
        if begin > room.begin and self._text[begin - 1] == "[" and _ADDRESS.search(inside):
            return MarkupSpan(begin - 1, end)
        return None

    def _run_before(self, begin: int, room: MarkupSpan) -> str:
        text, first = self._text, begin
        while (
            first > room.begin and text[first - 1] in _LEAST and text[first - 1] == text[begin - 1]
        ):
            first -= 1
        return text[first:begin]

    def _run_after(self, end: int, room: MarkupSpan) -> str:
        text, last = self._text, end
        while last < room.end and text[last] in _LEAST and text[last] == text[end]:
            last += 1
        return text[end:last]

    def _pair(self, place: MarkupSpan, room: MarkupSpan) -> MarkupSpan | None:
        """Brackets or quotes, with blanks between or without; of a link also where it leads."""
        text, (begin, end) = self._text, self._near(place, room)
        if begin <= room.begin or end >= room.end:
            return None
        opening, closing = text[begin - 1], text[end]
        if closing not in _PAIRS.get(opening, ""):
            return None
        begin -= 1
        if opening == "[":
            # Where it leads, the next one may be.
            if address := _ADDRESS.match(text, end):
                end = address.end() - 1
            if begin > room.begin and text[begin - 1] == "!":
                begin -= 1
        return MarkupSpan(begin, end + 1)

    def _tags(self, place: MarkupSpan, room: MarkupSpan) -> MarkupSpan | None:
        """A tag and the one that closes it."""
        text, (begin, end) = self._text, self._near(place, room)
        if not (begin > room.begin and text[begin - 1] == ">"):
            return None
        closing = _CLOSE_TAG.match(text, end, room.end)
        if closing is None:
            return None
        # An attribute may hold what looks like a tag.
        opens = begin
        for _ in range(_NEAR):
            opens = text.rfind("<", max(room.begin, begin - _LINE), opens)
            if opens < 0:
                return None
            name = _TAG_NAME.match(text, opens)
            if name and name[1].lower() == closing[1].lower():
                return (
                    MarkupSpan(opens, closing.end()) if _TAG.fullmatch(text, opens, begin) else None
                )
        return None

    def _fence(self, place: MarkupSpan, room: MarkupSpan) -> MarkupSpan | None:
        """A code block with nothing else in it."""
        text, (begin, end) = self._text, place
        number = bisect_right(self._blocks, begin, key=attrgetter("begin")) - 1
        if number < 0:
            return None
        block = self._blocks[number]
        if block.begin < room.begin or block.end > room.end or block.closes < end:
            return None
        above = _EMPTY.fullmatch(text, block.opened, begin)
        below = _EMPTY.fullmatch(text, end, block.closes)
        return MarkupSpan(block.begin, block.end) if above and below else None

    def _near(self, place: MarkupSpan, room: MarkupSpan) -> MarkupSpan:
        """The place with the blanks around it, but not with many."""
        text, (begin, end) = self._text, place
        first, last = max(room.begin, begin - _NEAR), min(room.end, end + _NEAR)
        while begin > first and text[begin - 1].isspace():
            begin -= 1
        while end < last and text[end].isspace():
            end += 1
        return MarkupSpan(begin, end)


class _Block(NamedTuple):
    """A code block: its upper fence from ``begin`` to ``opened``, the lower one from ``closes``."""

    begin: int
    opened: int
    closes: int
    end: int


def _blocks(text: str) -> list[_Block]:
    """The code blocks of a text, in order; one without a lower fence goes to the end."""
    blocks: list[_Block] = []
    upper: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if upper is None:
            upper = fence
        elif fence["sign"].startswith(upper["sign"]) and not fence["info"].strip():
            blocks.append(_Block(upper.start(), upper.end(), fence.start(), fence.end()))
            upper = None
    if upper is not None:
        blocks.append(_Block(upper.start(), upper.end(), len(text), len(text)))
    return blocks


# ---------------------------------------------------------------------- where it has been


def _joined(left: str, right: str) -> str:
    """Two texts between which something has been, as one."""
    before = left.rstrip(" \t")
    begins_line = _begins_line(left)
    if begins_line:
        # What parted the word from what follows it goes with it.
        right = _LEADING.sub("", right, count=1) if _LEADING.match(right) else right
    after = right.lstrip(" \t")
    if not after or after.startswith("\n"):
        return _without_line(left, after) if begins_line else before + after
    if begins_line:
        return left + after
    if before.endswith(_ENDS_SENTENCE) and (points := _TRAILING.match(after)):
        return before + after[points.end() :].lstrip(" \t")
    if _opens(left, before):
        return left + _LEADING.sub("", right, count=1) if _LEADING.match(right) else left + right
    if after[0] in _POINTS or (after == right and after[0] in _CLOSERS):
        return before + after
    return f"{before} {after}"


def _begins_line(left: str) -> bool:
    """Whether there is nothing in the line but marks of quotes, lists and headings."""
    line = left[left.rfind("\n") + 1 :]
    return len(line) <= _LINE and _LINE_MARKS.fullmatch(line) is not None


def _opens(left: str, before: str) -> bool:
    """Whether what is before the place opens something, and belongs to what follows."""
    opened = before.rstrip(_OPENERS)
    return left == before != opened and not opened[-1:].isalnum()


def _without_line(left: str, after: str) -> str:
    """Nothing is left of a line: it goes, and the texts above and below it are apart as before."""
    head = left[: left.rfind("\n") + 1]
    above = head.rstrip()
    gap = _EMPTY_LINES.match(after)
    below = after[gap.end() :] if gap else after
    if not above or not below.strip():
        return above or below
    lines = max(head[len(above) :].count("\n"), gap[0].count("\n") if gap else 0)
    return above + "\n" * min(lines, 2) + below
