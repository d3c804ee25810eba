"""Thoughts that models write into their answers, between tags such as ``<think>``.

A tag counts in whichever pieces it comes, but not in code. A block that begins a line may lack its
closing tag: the rest is thought. Servers whose template writes the opening tag send only the
closing one: what is before it is thought.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = (
    r"\s?(?:[a-z]{1,16}[:_]){0,2}"  # <seed:think>, <redacted_thinking>, <chain_of_thought>
    r"(?:antthinking|reasoning|reflection|scratchpad|thinking|thoughts?|think)\s?"
)
_ATTRIBUTES = r"(?:\s[\w:-]{1,32}=[^<>\n]{0,160})?"
_OPEN = re.compile(
    rf"<{_NAME}{_ATTRIBUTES}(?<!/)>|<\|begin_of_thought\|>|◁think▷|\[THINK\]", re.IGNORECASE
)
_CLOSE = re.compile(rf"<\s?/{_NAME}>|<\|end_of_thought\|>|◁/think▷|\[/THINK\]", re.IGNORECASE)
_TOKEN = re.compile(
    rf"(?P<open>{_OPEN.pattern})|(?P<close>{_CLOSE.pattern})|(?P<ticks>`+|~{{3,}})", re.IGNORECASE
)
_TAG = re.compile(rf"{_OPEN.pattern}|{_CLOSE.pattern}", re.IGNORECASE)
_BEGUN = re.compile(
    rf"(?:`+|~+|<\s?/?\s?[a-z:_]*\s?|<{_NAME}\s?[\w:-]*(?:=[^<>\n]*)?|<\|[a-z_]*\|?|[\[◁]/?[a-z]*"
    rf"|{_CLOSE.pattern})$",
    re.IGNORECASE,
)
"""What may become a tag or a longer run, or depends on the next character."""
_LONGEST = 260
"""No tag is longer."""
_SPECIAL = re.compile(r"[<\[◁`~]")
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_MIN_FENCE = 3


class Separated(NamedTuple):
    """An answer, and the thoughts that were in it."""

    text: str
    thoughts: tuple[str, ...] = ()
    is_cut: bool = False
    """Whether it ends within a thought."""


class ThoughtFilter:
    """Removes thoughts from a text that comes in pieces, in linear time."""

    def __init__(self) -> None:
        self._held = ""
        """The end of the text so far, whose meaning depends on what comes next."""
        self._block: list[str] | None = None
        """The pieces of the block that is open, with its tag."""
        self._begins_line = False
        """Whether the block that is open begins a line."""
        self._ends_blank = True
        """Whether the visible text ends with a blank, or is empty."""
        self._line_ends = 1
        """The line ends among the blanks at its end. With one of them a line begins."""
        self._after: list[str] | None = None
        """The blanks after a block that has just ended."""
        self._line_ends_after = 0
        self._ticks = 0
        """The length of the run of backticks that began a piece of code in this paragraph."""
        self._fence = ""
        """The run that began a block of code."""
        self._visible: list[str] = []
        self._lasting = 0
        """The number of visible pieces before the last block."""
        self._thoughts: list[str] = []
        self._is_cut = False

    def feed(self, piece: str) -> str:
        """Return what is visible of the text so far and was not returned yet."""
        if not self._held and self._block is None and not _SPECIAL.search(piece):
            return self._show(piece)
        text = self._held + piece
        begun = _BEGUN.search(text, max(0, len(text) - _LONGEST))
        end = len(text) if begun is None else begun.start()
        self._held = text[end:]
        return self._read(text[:end])

    def end(self, rest: str = "") -> str:
        """Return what is left, and the rest of the text, which has no tags.

        A block that is still open is a thought if it begins a line.
        """
        shown, self._held = self._read(self._held), ""
        if self._block is None:
            return shown + self._show(rest)
        block, self._block = "".join([*self._block, rest]), None
        if not self._begins_line:
            return shown + self._show(block)
        self._add_thought(block)
        self._is_cut = True
        return shown

    @property
    def result(self) -> Separated:
        """Return the whole answer, after its end."""
        return Separated("".join(self._visible), tuple(self._thoughts), self._is_cut)

    def _read(self, text: str) -> str:
        shown: list[str] = []
        place = 0
        while place < len(text):
            if self._block is not None:
                found = _CLOSE.search(text, place)
                self._block.append(text[place : None if found is None else found.start()])
                if found is None:
                    break
                self._add_thought("".join(self._block))
                self._block = None
                place = found.end()
                continue
            found = _TOKEN.search(text, place)
            shown.append(self._show(text[place : None if found is None else found.start()]))
            if found is None:
                break
            place = found.end()
            shown.append(self._token(found, next_char=text[place : place + 1]))
        return "".join(shown)

    def _token(self, found: re.Match[str], next_char: str) -> str:
        """Read a tag or a run of backticks; return it if it is visible."""
        token, is_first = found[0], bool(self._line_ends or self._line_ends_after)
        match found.lastgroup:
            case "open" if not self._fence and (is_first or not self._ticks):
                self._block, self._begins_line = [token], is_first
                return ""
            case "close" if not self._fence and not self._ticks:
                # Between blanks in a line it is a word about tags.
                if is_first or not (self._ends_blank and next_char in {" ", "\t"}):
                    self._reclassify()
                    return ""
            case "ticks":
                # In this order: blank lines before it are not in the code.
                shown = self._show(token)
                self._begin_or_end_code(token, is_first=is_first)
                return shown
        return self._show(token)

    def _begin_or_end_code(self, run: str, *, is_first: bool) -> None:
        if self._fence:
            if is_first and run.startswith(self._fence):
                self._fence = ""
        elif is_first and len(run) >= _MIN_FENCE:
            self._fence = run
        elif run[0] == "`" and self._ticks in {0, len(run)}:
            self._ticks = 0 if self._ticks else len(run)

    def _show(self, text: str) -> str:
        if self._after is not None:
            rest = text.lstrip()
            self._after.append(text[: len(text) - len(rest)])
            self._line_ends_after += self._after[-1].count("\n")
            if not rest:
                return ""
            if not self._visible:
                text = rest
            elif self._ends_blank:
                # The blanks before a block and those after it are not added up.
                text = "\n" * (self._line_ends_after - self._line_ends) + rest
            else:
                text = "".join(self._after) + rest
            self._after, self._line_ends_after = None, 0
        if not text:
            return ""
        if self._ticks and self._ends_paragraph(text):
            self._ticks = 0
        rest = text.rstrip()
        self._line_ends = text.count("\n", len(rest)) + (0 if rest else self._line_ends)
        self._ends_blank = len(rest) < len(text)
        self._visible.append(text)
        return text

    def _ends_paragraph(self, text: str) -> bool:
        """Return whether a blank line is in a text, or between the text so far and it."""
        if _BLANK_LINE.search(text):
            return True
        return self._line_ends > 0 and "\n" in text[: len(text) - len(text.lstrip())]

    def _add_thought(self, block: str) -> None:
        tag = _OPEN.match(block)
        self._thoughts.append(block[tag.end() :] if tag else block)
        self._lasting = len(self._visible)
        self._after = self._after or []

    def _reclassify(self) -> None:
        """Turn what has become visible since the last block into a thought."""
        self._thoughts.append("".join(self._visible[self._lasting :]))
        del self._visible[self._lasting :]
        self._ends_blank, self._line_ends = True, 1
        self._after, self._line_ends_after = [], 0


def separate(text: str) -> Separated:
    """Separate an answer from the thoughts in it."""
    place = 0
    for tag in _TAG.finditer(text):
        place = tag.end() + 1
    if not place:
        return Separated(text)
    # Behind the last tag there is nothing to find, however many backticks there are.
    reader = ThoughtFilter()
    reader.feed(text[:place])
    reader.end(text[place:])
    return reader.result
