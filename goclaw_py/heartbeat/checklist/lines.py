"""The lines of a Markdown file, with its comments marked (SPEC HB-3)."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum
from typing import Final

HIDDEN: Final = "\ufdd0"
"""Replaces each character of a comment; a code point that no file contains."""

_LONE_RETURN: Final = re.compile(r"\r(?!\n)")
_MOST_LINES: Final = 500
"""The longest code block; keeps reading linear in the length of a file."""
# Atomic groups, not possessive ones: see ``delivery.ok_token``.
_BULLETS: Final = r"(?>(?:(?:[-*+]|[0-9]{1,9}[.)])[^\S\n]+(?:\[[\sxX]?\][^\S\n]+)?)*)"
_MARK: Final = re.compile(
    rf"^(?>(?:[^\S\n]|>)*){_BULLETS}(?P<fence>`{{3,}}+(?![^\n]*`)|~{{3,}}+)[^\n]*\n"
    rf"(?:[^\n]*\n){{0,{_MOST_LINES}}}?(?>(?:[^\S\n]|>)*)(?P=fence)(?:`*+|~*+)[^\S\n]*+$"
    r"|(?<!`)(?P<code>`++)[^\n]*?(?<!`)(?P=code)(?!`)|`+|\\+<!--|(?P<comment><!--)",
    re.MULTILINE,
)
"""Matches a code block, inline code, or a comment."""
_NO_COMMENT: Final = re.compile(r"(\\*)<!--")
_NO_END: Final = re.compile(r"--(\\*)>")
_COMMENT_AGAIN: Final = re.compile(r"\\(\\*)<!--")
_END_AGAIN: Final = re.compile(r"--\\(\\*)>")


class LinePart(Enum):
    """What a line belongs to."""

    PLAIN = 0
    FENCE = 1
    """The first line of a code block."""
    CODE = 2
    """Its other lines."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line without its end. It begins at ``start`` of the file; its comments are ``HIDDEN``."""

    text: str
    start: int
    part: LinePart = LinePart.PLAIN


def read_lines(text: str) -> list[SourceLine]:
    """Return all lines, in order.

    A comment ends at the first ``-->``, perhaps on another line; without one, it hides only the
    rest of its line. There are no comments in code blocks and inline code, or after a backslash. An
    unclosed fence is an ordinary line, so that a slip does not turn all that follows into code.
    """
    masked, blocks = _masked(_LONE_RETURN.sub("\n", text))
    lines: list[SourceLine] = []
    start = 0
    for line in masked.split("\n"):
        block = bisect_right(blocks, (start, len(text))) - 1
        part = LinePart.PLAIN
        if block >= 0 and start <= blocks[block][1]:
            part = LinePart.FENCE if start == blocks[block][0] else LinePart.CODE
        lines.append(SourceLine(line.removesuffix("\r"), start, part))
        start += len(line) + 1
    return lines if lines[-1].text else lines[:-1]


def _masked(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the text with comments hidden, and where code blocks begin and end.

    A code block without content is hidden too.
    """
    parts: list[str] = []
    blocks: list[tuple[int, int]] = []
    last, place = text.rfind("-->"), 0
    while (found := _MARK.search(text, place)) is not None:
        start, end = found.span()
        parts.append(text[place:start])
        if found["comment"]:
            # ``<!-->`` is a comment too.
            end = text.find("-->", start + 2) + 3 if last >= start + 2 else text.find("\n", start)
            end = len(text) if end < 0 else end
        is_code = found["fence"] is not None and any(
            line.strip(" \t\r>") for line in found[0].split("\n")[1:-1]
        )
        if is_code:
            blocks.append((start, end))
        hides = found["comment"] or (found["fence"] and not is_code)
        parts.append(re.sub(r"[^\r\n]", HIDDEN, text[start:end]) if hides else text[start:end])
        place = end
    return "".join([*parts, text[place:]]), blocks


def escaped(text: str) -> str:
    """Return a line of text that neither begins nor ends a comment; see ``unescaped``."""
    return _NO_END.sub(r"--\\\1>", _NO_COMMENT.sub(r"\\\1<!--", text))


def unescaped(text: str) -> str:
    """Return a text without the backslash that ``escaped`` added."""
    return _COMMENT_AGAIN.sub(r"\1<!--", _END_AGAIN.sub(r"--\1>", text))
