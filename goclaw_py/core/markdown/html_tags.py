"""Reads the few HTML tags that models write in chats; all other HTML stays as written."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape

from markdown_it.rules_inline import StateInline

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:_.-]*)((?:\s[^<>]{0,2000})?)/?>")
_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)[^`]*\1(?!`)")
_INNER_CODE = re.compile(r"\A<code[^<>]*>|</code>\Z", re.IGNORECASE)
_HREF = re.compile(
    r"\shref\s*=\s*(?:\"((?:https?|mailto|tg):[^\"]+)\"|'((?:https?|mailto|tg):[^']+)'"
    r"|((?:https?|mailto|tg):[^\s\"']+))",
    re.IGNORECASE,
)

_STYLES = {
    **dict.fromkeys(
        ("b", "strong", "mark", "summary", "h1", "h2", "h3", "h4", "h5", "h6"), "strong"
    ),
    **dict.fromkeys(("i", "em", "u", "ins"), "em"),
    **dict.fromkeys(("s", "strike", "del"), "s"),
}
_CODES = frozenset(("code", "kbd", "samp", "tt", "pre"))
_NAMED = re.compile(r"\s+(?:tag|element)s?\b", re.IGNORECASE)
_BEFORE_NAMED = re.compile(r"\b(?:an?|the|use|using|with|insert|or)\s\Z", re.IGNORECASE)
_WITHOUT_MEANING = frozenset(("span", "font", "small", "big", "center", "p"))
_FOLDED = re.compile(r"(?:\A|\n)<details[^<>\n]*>(?:\n|<summary)")
_FOLDS = frozenset(("details", "summary"))
"""May begin in one paragraph and end in another one."""
_OWN_LINE = frozenset(("summary", "p", "center", "h1", "h2", "h3", "h4", "h5", "h6"))
_ALONE = frozenset(("br", "hr", "img", "input", "details"))
"""Have no end, or one in another paragraph."""
_PAIRED = frozenset((*_STYLES, *_CODES, *_WITHOUT_MEANING, "sub", "sup", "a"))

_FAR = 40

_RAISED = str.maketrans(
    "0123456789+-−=()niabcdefghjklmoprstuvwxyz",  # noqa: RUF001  the sign of mathematics
    "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱᵃᵇᶜᵈᵉᶠᵍʰʲᵏˡᵐᵒᵖʳˢᵗᵘᵛʷˣʸᶻ",
)
_LOWERED = str.maketrans("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")


@dataclass(frozen=True, slots=True)
class _Closing:
    begin: int
    end: int


def html_tag(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  the library's signature
    """Parse a line break, or a known tag together with its end.

    What a sentence names is no markup: ``use <b> and </b>``, ``the <br> tag``.
    """
    src, begin = state.src, state.pos
    if src[begin] != "<" or (tag := _TAG.match(src, begin, state.posMax)) is None:
        return False
    name = tag[2].lower()
    if name == "br":
        before = src[max(begin - 10, 0) : begin]
        is_last = src[tag.end() : tag.end() + 1] in {"", "\n"}
        if _NAMED.match(src, tag.end()) or (not is_last and _BEFORE_NAMED.search(before)):
            return False
        return _break(state, tag.end(), silent=silent)
    closing = _closings(state).get(begin)
    if closing is None or closing.end > state.posMax:
        return name in _FOLDS and _fold(state, tag)
    if name not in {"sub", "sup"} and not _is_around(src, name, tag, closing):
        return False
    if name in {"sub", "sup"} or name in _CODES:
        shown = _verbatim(state, name, src[tag.end() : closing.begin], silent=silent)
    elif name == "a":
        shown = _link(state, tag, closing, silent=silent)
    else:
        shown = silent or _styled(state, name, tag, closing)
    if shown:
        state.pos = closing.end
    return shown


def _is_around(src: str, name: str, tag: re.Match[str], closing: _Closing) -> bool:
    """Return whether tags are around something, or on lines of their own."""
    inner = src[tag.end() : closing.begin]
    if not inner.strip():
        return False
    before = src[: tag.start()] if tag.start() < _FAR else src[tag.start() - _FAR : tag.start()]
    begins = before.rstrip(" ")[-1:] in {"", "\n", ">"}
    if name in _OWN_LINE and not begins:
        return False
    ends = src[closing.end : closing.end + 1] in {"", "\n", "<"}
    return (begins and ends) or not (inner[0] == " " or inner[-1] == " ")


def _verbatim(state: StateInline, name: str, inner: str, *, silent: bool) -> bool:
    """Parse code, or numbers that are raised or lowered: H₂O, x²."""
    if name in _CODES:
        if not silent:
            inner = _INNER_CODE.sub("", inner) if name == "pre" else inner
            state.push("code_inline", "code", 0).content = unescape(inner.strip("\n"))
        return True
    table = _RAISED if name == "sup" else _LOWERED
    if not inner or any(ord(char) not in table for char in inner):
        return False
    if not silent:
        state.append_pending(inner.translate(table))
    return True


def _link(state: StateInline, tag: re.Match[str], closing: _Closing, *, silent: bool) -> bool:
    href = _HREF.search(tag[3])
    address = state.md.normalizeLink(unescape(href[href.lastindex or 0])) if href else ""
    if not address or not state.md.validateLink(address):
        return False
    if not silent:
        state.push("link_open", "a", 1).attrs = {"href": address}
        _inside(state, tag.end(), closing.begin)
        state.push("link_close", "a", -1)
    return True


def _styled(state: StateInline, name: str, tag: re.Match[str], closing: _Closing) -> bool:
    style = _STYLES.get(name)
    if style:
        state.push(f"{style}_open", style, 1)
    is_first = state.src[tag.end()] == "\n"
    is_last = state.src[closing.begin - 1] == "\n"
    _inside(state, tag.end() + is_first, closing.begin - is_last)
    if style:
        state.push(f"{style}_close", style, -1)
    if name in _OWN_LINE and state.src[closing.end : closing.end + 1] not in {"", "\n"}:
        state.push("hardbreak", "br", 0)
    return True


def _inside(state: StateInline, begin: int, end: int) -> None:
    most, state.pos, state.posMax = state.posMax, begin, end
    state.md.inline.tokenize(state)
    state.posMax = most


def _break(state: StateInline, end: int, *, silent: bool) -> bool:
    src = state.src
    while end < state.posMax and src[end] == " ":
        end += 1
    if end < state.posMax and src[end] == "\n":
        end += 1
    if not silent:
        state.pending = state.pending.rstrip(" ")
        state.push("hardbreak", "br", 0)
    state.pos = end
    return True


def _fold(state: StateInline, tag: re.Match[str]) -> bool:
    """Drop a tag at the edge of a line, with the end of this line if nothing else is in it."""
    src, end = state.src, tag.end()
    begins = tag.start() == 0 or src[tag.start() - 1] == "\n"
    ends = end == len(src) or src[end] == "\n"
    if not tag[1]:
        is_edge = begins and (ends or src.startswith("<summary", end))
    else:
        is_behind = src[tag.start() - 1] != " " and ("<details" not in src or _FOLDED.search(src))
        is_edge = ends and (begins or bool(is_behind))
    if not is_edge:
        return False
    if begins and ends and end < state.posMax:
        end += 1
    state.pos = end
    return True


def _closings(state: StateInline) -> Mapping[int, _Closing]:
    """Return the end of each tag of a paragraph that has one, by the place of its beginning."""
    known: dict[str, dict[int, _Closing]] = state.env.setdefault("closings", {})
    found = known.get(state.src)
    if found is None:
        found = known[state.src] = _paired(state.src) if "</" in state.src else {}
    return found


def _paired(src: str) -> dict[int, _Closing]:
    """Return pairs of known tags. Within an unknown pair, as in XML, all tags mean themselves."""
    code = iter([*_CODE.finditer(src)] if "`" in src else ())
    skipped = next(code, None)
    found: dict[int, _Closing] = {}
    unknown: list[tuple[int, int]] = []
    opened: list[tuple[str, int, bool]] = []
    waiting: dict[str, int] = {}
    for tag in _TAG.finditer(src):
        while skipped and skipped.end() <= tag.start():
            skipped = next(code, None)
        name = tag[2].lower()
        if name in _ALONE or (skipped and skipped.start() < tag.start()):
            continue
        if not tag[1]:
            is_known = name in _PAIRED and (name != "a" or "href" in tag[3].lower())
            opened.append((name, tag.start(), is_known))
            waiting[name] = waiting.get(name, 0) + 1
        elif waiting.get(name):
            # Tags that cross are no markup.
            is_pair = True
            while True:
                other, begin, is_known = opened.pop()
                waiting[other] -= 1
                if other == name:
                    break
                is_pair = is_pair and not is_known
            if not is_known:
                unknown.append((begin, tag.end()))
            elif is_pair:
                found[begin] = _Closing(tag.start(), tag.end())
    return _without(found, unknown) if unknown else found


def _without(found: dict[int, _Closing], unknown: list[tuple[int, int]]) -> dict[int, _Closing]:
    """Return what begins in none of the unknown pairs, which are disjoint or nested."""
    begins: list[int] = []
    ends: list[int] = []
    for begin, end in sorted(unknown):
        if not ends or begin >= ends[-1]:
            begins.append(begin)
            ends.append(end)

    def is_outside(place: int) -> bool:
        number = bisect_right(begins, place) - 1
        return number < 0 or ends[number] <= place

    return {begin: closing for begin, closing in found.items() if is_outside(begin)}
