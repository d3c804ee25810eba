"""The lines of a Markdown file, with its comments marked (SPEC HB-3)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

HIDDEN: Final = "\ufdd0"
"""Replaces each character of a comment; a code point that no file contains."""

UNSEEN: Final = f"\ufeff\u200b\u200c\u200d\u2060{HIDDEN}"
_NOTHING: Final = re.compile(
    rf"(?:[-*+_=#>`~\s{UNSEEN}]|[0-9]{{1,9}}[.)](?!\S)|\[[\sxX]?\](?!\S))*"
)
_FRONT_MATTER: Final = re.compile(
    r"\ufeff?---[^\S\n]*\n(?:(?:#[^\n]*)?\r?\n)*(?=[A-Za-z_][\w-]*:\s)"
    r"(?:(?:[A-Za-z_][\w-]*:(?=\s)[^\n]*|-[^\S\n][^\n]*|[^\S\n][^\n]*|#[^\n]*)?\n)*"
    r"(?:---|\.\.\.)[^\S\n]*(?=\n|\Z)"
)
"""Matches keys with values or lists between two rules, where a file begins."""
_HEADING_LINE: Final = re.compile(r"[\s>]*#{1,6}(?:\s|$)")
_DELIMITER_ROW: Final = re.compile(r":?-+:?\s*(?:\|\s*:?-+:?\s*)*")
_TEMPLATE: Final = re.compile(r"[^`~]*(?:`{3,}|~{3,})\s*(?:md|markdown)\b", re.IGNORECASE)
"""Matches the first line of a code block in Markdown."""
_LONE_RETURN: Final = re.compile(r"\r(?!\n)")
_MOST_LINES: Final = 500
"""The longest code block; keeps reading linear in the length of a file."""
# Atomic groups, not possessive ones: see ``chat.outbound.ok_token``.
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
    plain = [line.text if line.part is LinePart.PLAIN else "" for line in lines]
    for number in _empty_tables(plain):
        lines[number] = replace(lines[number], text=HIDDEN * len(plain[number]))
    return lines if lines[-1].text else lines[:-1]


def says_nothing(text: str) -> bool:
    """Return whether a text has only blanks, bullets, boxes, rules, fences, quotes and headings."""
    return _NOTHING.fullmatch(text) is not None


def _empty_tables(lines: Sequence[str]) -> Iterator[int]:
    """Yield the lines of the tables in which every cell below the head is empty."""
    number = 0
    while number + 1 < len(lines):
        rule = lines[number + 1]
        end = number + 1
        if (
            "|" in lines[number]
            and "|" in rule
            and _DELIMITER_ROW.fullmatch(rule.strip(f" \t\r>|{UNSEEN}"))
        ):
            end = number + 2
            while end < len(lines) and "|" in lines[end]:
                end += 1
            cells = (cell for row in lines[number + 2 : end] for cell in row.split("|"))
            if all(map(says_nothing, cells)):
                yield from range(number, end)
        number = end


def _is_blank(block: str) -> bool:
    """Return whether a code block has no content: it is empty, or a template without an item."""
    head, *lines = block.split("\n")
    if _TEMPLATE.match(head):
        # The comments and the front matter of code in other languages are code.
        said = "\n".join(lines[:-1]).split("-->")
        text = "".join([*(one.partition("<!--")[0] for one in said[:-1]), said[-1]])
        found = _FRONT_MATTER.match(text)
        lines = [*(text[found.end() :] if found else text).split("\n"), ""]
    blank = {*_empty_tables(lines[:-1])}
    return all(
        number in blank or says_nothing(line) or _HEADING_LINE.match(line)
        for number, line in enumerate(lines[:-1])
    )


def _masked(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the text with comments hidden, and where code blocks begin and end.

    Front matter, and a code block without content, are hidden too.
    """
    parts: list[str] = []
    blocks: list[tuple[int, int]] = []
    last, place = text.rfind("-->"), 0
    if front := _FRONT_MATTER.match(text):
        place = front.end()
        parts.append(_hidden(front[0]))
    while (found := _MARK.search(text, place)) is not None:
        start, end = found.span()
        parts.append(text[place:start])
        if found["comment"]:
            # ``<!-->`` is a comment too.
            end = text.find("-->", start + 2) + 3 if last >= start + 2 else text.find("\n", start)
            end = len(text) if end < 0 else end
        is_code = found["fence"] is not None and not _is_blank(found[0])
        if is_code:
            blocks.append((start, end))
        hides = found["comment"] or (found["fence"] and not is_code)
        parts.append(_hidden(text[start:end]) if hides else text[start:end])
        place = end
    return "".join([*parts, text[place:]]), blocks


def _hidden(text: str) -> str:
    return re.sub(r"[^\r\n]", HIDDEN, text)


def escaped(text: str) -> str:
    """Return a line of text that neither begins nor ends a comment; see ``unescaped``."""
    return _NO_END.sub(r"--\\\1>", _NO_COMMENT.sub(r"\\\1<!--", text))


def unescaped(text: str) -> str:
    """Return a text without the backslash that ``escaped`` added."""
    return _COMMENT_AGAIN.sub(r"\1<!--", _END_AGAIN.sub(r"--\1>", text))
