"""The lines of a Markdown file without its comments (SPEC HB-3)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from typing import Final

_LINE: Final = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n)|([^\r\n]+)\Z")
_MARK: Final = re.compile(r"`+|\\+<!--|<!--")
_TICKS: Final = re.compile(r"`+")
_BULLETS: Final = r"(?:(?:[-*+]|[0-9]{1,9}[.)])\s+(?:\[[\sxX]?\]\s+)?)*"
_OPENS: Final = re.compile(rf"[\s>]*{_BULLETS}(?:(`{{3,}}+)(?!.*`)|(~{{3,}}))")
_CLOSES: Final = re.compile(r"[\s>]*(`{3,}|~{3,})\s*")
_NO_COMMENT: Final = re.compile(r"(\\*)<!--")
_NO_END: Final = re.compile(r"--(\\*)>")
_COMMENT_AGAIN: Final = re.compile(r"\\(\\*)<!--")
_END_AGAIN: Final = re.compile(r"--\\(\\*)>")


class LinePart(Enum):
    """What a line belongs to."""

    PLAIN = 0
    FENCE = 1
    """The first line of a block of code."""
    CODE = 2
    """Its other lines."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line, without comments and without its end.

    Args:
        start: Where it begins in the file.
        cuts: Where in ``text`` comments were cut out, and how long they were.
    """

    text: str
    start: int
    part: LinePart = LinePart.PLAIN
    cuts: tuple[tuple[int, int], ...] = ()

    def place(self, at: int) -> int:
        """Where in the file a place in ``text`` is; behind a comment that was cut out there."""
        return self.start + at + sum(length for cut, length in self.cuts if cut <= at)


def read_lines(text: str) -> list[SourceLine]:
    """All lines, in order.

    A comment reaches to the first ``-->``, over lines too; one without hides the rest of its own
    line only. In fenced and in inline code there are none, and none begins after a backslash. A
    fence without a second one is an ordinary line: else a slip would make code of all that follows.
    """
    spans = [(found.start(), found.end(found.lastindex or 0)) for found in _LINE.finditer(text)]
    fences = _Fences(text, spans)
    comments = _Comments(text)
    lines: list[SourceLine] = []
    while len(lines) < len(spans):
        start, end = spans[len(lines)]
        if comments.end <= start and (last := fences.last(len(lines))) is not None:
            lines += _code(text, spans[len(lines) : last + 1])
        else:
            lines.append(comments.cut(start, end))
    return lines


def escaped(text: str) -> str:
    """A line of text that neither begins nor ends a comment; ``unescaped`` takes that back."""
    return _NO_END.sub(r"--\\\1>", _NO_COMMENT.sub(r"\\\1<!--", text))


def unescaped(text: str) -> str:
    """The text that is meant: without the backslash that keeps it from being a comment."""
    return _COMMENT_AGAIN.sub(r"\1<!--", _END_AGAIN.sub(r"--\1>", text))


def _code(text: str, spans: list[tuple[int, int]]) -> list[SourceLine]:
    if not any(text[start:end].strip(" \t>") for start, end in spans[1:-1]):
        return [SourceLine("", start) for start, _ in spans]
    parts = (LinePart.FENCE, *[LinePart.CODE] * (len(spans) - 1))
    return [
        SourceLine(text[start:end], start, part)
        for part, (start, end) in zip(parts, spans, strict=True)
    ]


class _Fences:
    """Finds where blocks of code end."""

    def __init__(self, text: str, spans: list[tuple[int, int]]) -> None:
        self._text = text
        self._spans = spans
        self._closing = [
            (number, found[1])
            for number, (start, end) in enumerate(spans)
            if (found := _CLOSES.fullmatch(text, start, end))
        ]
        # From here on no fence of so many characters is closed: it is not looked for again.
        self._hopeless: dict[str, int] = {}

    def last(self, number: int) -> int | None:
        """The last line of the block that begins with this one; None: it begins none."""
        found = _OPENS.match(self._text, *self._spans[number])
        if found is None:
            return None
        fence = found[1] or found[2]
        if len(fence) >= self._hopeless.get(fence[0], len(fence) + 1):
            return None
        first = bisect_right(self._closing, number, key=lambda each: each[0])
        for at in range(first, len(self._closing)):
            line, closing = self._closing[at]
            if closing.startswith(fence):
                return line
        self._hopeless[fence[0]] = len(fence)
        return None


class _Comments:
    """Cuts comments out of lines, which must be asked for in order.

    ``end``: where the last comment that was found ends.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._last_end = text.rfind("-->")
        self.end = 0

    def cut(self, start: int, end: int) -> SourceLine:
        """The line from ``start`` to ``end``."""
        kept: list[str] = []
        hidden: list[int] = []
        place = start
        if self.end > start:
            place = min(self.end, end)
            kept.append("")
            hidden.append(place - start)
        for at in self._openings(place, end):
            # ``<!-->`` is a comment too.
            closed = self._last_end >= at + 2
            self.end = self._text.find("-->", at + 2) + 3 if closed else end
            kept.append(self._text[place:at])
            place = min(self.end, end)
            hidden.append(place - at)
        kept.append(self._text[place:end])
        cuts = zip(accumulate(map(len, kept)), hidden, strict=False)
        return SourceLine("".join(kept), start, cuts=tuple(cuts))

    def _openings(self, place: int, end: int) -> Iterator[int]:
        """Where comments begin; goes on behind ``self.end``."""
        if self._text.find("<!--", place, end) < 0:
            return
        runs: dict[int, list[int]] = {}
        for run in _TICKS.finditer(self._text, place, end):
            runs.setdefault(len(run[0]), []).append(run.start())
        while (found := _MARK.search(self._text, place, end)) is not None:
            place = found.end()
            match found[0][0]:
                case "<":
                    yield found.start()
                    place = self.end
                case "`":
                    # Inline code ends with as many backticks as it begins with.
                    same = runs[len(found[0])]
                    after = bisect_right(same, found.start())
                    place = same[after] + len(found[0]) if after < len(same) else place
                case _:
                    pass  # a backslash makes text of it
