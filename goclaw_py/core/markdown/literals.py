r"""Finds what stays as written within a paragraph: addresses, Windows paths, patterns, formulas.

CommonMark has no such rule: it would take the underscores of ``https://example.com/_v1_`` as
emphasis, and the backslashes of ``C:\_temp`` and ``\d+\.\d+`` as escapes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from markdown_it.rules_inline import StateInline, escape

Span = tuple[int, int]

_SPECIAL = re.compile(r"[\n*<\]\\_`]|!(?=\[)|\[|&(?=[#A-Za-z])|~(?=~)")
"""The characters at which a rule may begin to match."""
_ADDRESS = re.compile(
    r"(?<![^\W_])[A-Za-z][A-Za-z0-9+.-]{0,20}://"
    '[^\\s<>\\[\\]`"|，。！？；：（）【】《》「」『』、“”‘’]+'  # noqa: RUF001  full-width marks
)
_WEB = re.compile(r"https?://[^\W_]", re.IGNORECASE)
_PIECE = re.compile(r"[^\s<>\[\]`|，。！？；：、]+")  # noqa: RUF001  no blank stands beside them
_OPENING = re.compile("(?:~~|[*_\"'(“„«‘])*")  # noqa: RUF001  quotation marks
_PATH_OR_PATTERN = re.compile(
    r"(?:\\|\.{1,2}|~|%\w+%|\$env:\w+)\\."  # a path of Windows
    r"|\^.*\\|¯\\_"
    r"|.*(?:"
    r"(?<![^\W_])[A-Za-z]:\\."
    r"|\\[A-Za-z0-9]"  # a class as in \d, a command as in \frac, a folder
    r"|\\[.?(){}^|/,;:'\"@\\](?=.)"  # CommonMark would only drop the backslash
    r"|\w\\\*\.\w|/\\"
    r")"
)
_BRACKET = re.compile(r"[()]")
_TRAILING = ".,;:!?'\")”’»…"  # noqa: RUF001  quotation marks
_BEHIND = _TRAILING.replace(")", "") + "*~"
_MARKS = ("**", "*", "__", "_", "~~")
_EDGE_UNDERSCORE = re.compile(r"(?<!\w)_+(?=\S)|(?<=\S)_+(?!\w)")
_ESCAPE = re.compile(
    r"\\(?:[*_`~<>#]|\[(?=[^\[\]\n]*\]\()|\](?=[(\[])|!(?=\[)|[.!](?=\s|\Z)|&(?=#?\w+;)|\$(?=\d))"
)
_LINE_BEGIN = r"-+=>"


def text(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  the library's signature
    """Skip to the next character that may be markup, beyond all that stays as written."""
    src, end = state.src, state.pos
    literals = literal_spans(state)
    while found := _SPECIAL.search(src, end):
        end = found.start()
        if not literals:
            break
        number = bisect_right(literals, (end, len(src))) - 1
        if number < 0 or literals[number][1] <= end:
            break
        end = literals[number][1]
    else:
        end = len(src)
    end = min(end, state.posMax)
    if end <= state.pos:
        return False
    if not silent:
        state.append_pending(src[state.pos : end])
    state.pos = end
    return True


def backslash(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  the library's signature
    """Parse an escape where it is one; any other backslash is itself."""
    src, pos = state.src, state.pos
    if src[pos] != "\\":
        return False
    if _is_escape(src, pos):
        return escape(state, silent)
    # Two of them stay two, and the second one escapes nothing.
    size = 2 if src.startswith("\\\\", pos) and pos + 1 < state.posMax else 1
    if not silent:
        state.append_pending("\\" * size)
    state.pos = pos + size
    return True


def _is_escape(src: str, pos: int) -> bool:
    if src.startswith("_", pos + 1) and "%" in src[max(pos - 1, 0) : pos + 3]:
        return False  # of a pattern of SQL
    if _ESCAPE.match(src, pos):
        return True
    after = src[pos + 1 : pos + 2]
    before = src[max(pos - 10, 0) : pos]
    if after == "\n":
        # A shell's continued line has a blank before it.
        return bool(before) and not before[-1].isspace()
    if after == "%":
        return before[-1:].isdigit()
    if after and after in _LINE_BEGIN:
        return not before or before[-1] == "\n"
    if after and after in ".)":
        digits = len(before) - len(before.rstrip("0123456789"))
        begin = pos - digits
        return digits > 0 and (begin == 0 or src[begin - 1] == "\n")
    return False


def literal_spans(state: StateInline) -> list[Span]:
    """Return what stays as written in the paragraph of a parser, in order."""
    known: dict[str, list[Span]] = state.env.setdefault("literals", {})
    spans = known.get(state.src)
    if spans is None:
        src = state.src
        spans = known[src] = list(_spans(src)) if "://" in src or "\\" in src else []
    return spans


def addresses(words: str) -> Iterator[Span]:
    """Yield where web addresses stand in words, each without the punctuation behind it."""
    for found in _ADDRESS.finditer(words):
        begin, end = found.start(), _balanced_end(words, *found.span())
        address = words[begin:end].rstrip(_BEHIND)
        if _WEB.match(address):
            yield begin, begin + len(address)


def _spans(src: str) -> Iterator[Span]:
    odd = dict.fromkeys(_MARKS, False)
    last = 0
    for piece in _PIECE.finditer(src):
        for begin, most in _within(src, piece):
            _count(odd, src[last:begin])
            last = begin
            opening = src[piece.start() : begin]
            end = _trimmed(src, begin, most, opening, odd)
            if begin < end:
                last = end
                yield begin, end


def _within(src: str, piece: re.Match[str]) -> Iterator[Span]:
    """Return the addresses, paths and patterns in a piece without blanks."""
    place = piece.start()
    for address in _ADDRESS.finditer(src, *piece.span()):
        yield from _paths(src, place, address.start())
        place = _balanced_end(src, *address.span())
        yield address.start(), place
    yield from _paths(src, place, piece.end())


def _paths(src: str, begin: int, most: int) -> Iterator[Span]:
    if src.find("\\", begin, most) < 0:
        return
    while opening := _OPENING.match(src, begin, most):
        begin = opening.end()
        mark = opening[0][-2:]
        closing = src.find(mark, begin, most) if mark in {"**", "~~"} else -1
        if closing < 0:
            break
        # What follows an emphasis may be another path, as where no blanks are written.
        yield from _patterns(src, begin, closing)
        begin = closing + len(mark)
        if not src[begin:most].strip("*~_"):
            return
    yield from _patterns(src, begin, most)


def _patterns(src: str, begin: int, most: int) -> Iterator[Span]:
    while begin < most:
        end = _balanced_end(src, begin, most)
        if _PATH_OR_PATTERN.match(src, begin, end):
            yield begin, end
        begin = end + 1


def _balanced_end(src: str, begin: int, end: int) -> int:
    """Return where a closing bracket belongs to something around the text."""
    depth = 0
    for bracket in _BRACKET.finditer(src, begin, end):
        depth += 1 if bracket[0] == "(" else -1
        if depth < 0:
            return bracket.start()
    return end


def _trimmed(src: str, begin: int, end: int, opening: str, odd: dict[str, bool]) -> int:
    """Return the end without punctuation, and without marks that close an emphasis around it."""
    for mark in ("**", "~~"):
        if opening.endswith(mark) and (closing := src.find(mark, begin, end)) > 0:
            end = closing
    kept = end
    while kept > begin:
        if src[kept - 1] in _TRAILING:
            kept -= 1
            continue
        for mark in _MARKS:
            if src.endswith(mark, begin, kept) and (
                opening.endswith(mark) or (odd[mark] and _closes(src, begin, kept, mark))
            ):
                kept -= len(mark)
                end = kept
                break
        else:
            break
    return end


def _closes(src: str, begin: int, end: int, mark: str) -> bool:
    """Return whether the mark at the end of an address or path closes one that is open."""
    if not mark.startswith("_"):
        return True
    # The last step of an address may have its own: /_v1_.
    step = src[max(src.rfind("/", begin, end), src.rfind("\\", begin, end)) + 1 : end]
    return step.count("_") % 2 == len(mark) % 2


def _count(odd: dict[str, bool], between: str) -> None:
    """Follow which marks are open after a text."""
    if not between:
        return
    double = between.count("**")
    odd["**"] ^= double % 2 == 1
    odd["*"] ^= between.count("*") % 2 == 1
    odd["~~"] ^= between.count("~~") % 2 == 1
    for edge in _EDGE_UNDERSCORE.findall(between):
        odd["__" if len(edge) > 1 else "_"] ^= True
