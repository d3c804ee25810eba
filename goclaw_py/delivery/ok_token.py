"""HEARTBEAT_OK in what an agent says (SPEC HB-6, HB-7).

The token is looked for in *readings* of a text: as it stands, with entities resolved, and rendered,
without tags and the addresses of links. Every reading knows from where in the text each of its
characters comes, so that a token that is found in one can be taken out of the text.

A letter of the token counts in all its widths and styles, with accents or without. Letters of other
alphabets that look like it do not. All patterns take a time linear in the length of the text.
"""

from __future__ import annotations

import hashlib
import html
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from goclaw_py.common.text import is_blank, well_formed

HEARTBEAT_OK: Final = "HEARTBEAT_OK"

_ROUNDS = 3
"""How often the rest is searched again before its underscores are replaced by blanks."""
_MOST_NESTED = 12
"""Levels of markup around a token that are removed with it."""


class AckPosition(StrEnum):
    """Where in a reply HEARTBEAT_OK counts (SPEC HB-6)."""

    ANYWHERE = "anywhere"
    EDGES = "edges"


@dataclass(frozen=True, slots=True)
class AckResult:
    """What a reply means.

    Args:
        is_ok: All is well: nothing is delivered.
        text: What is to be delivered otherwise: the reply without the token, in Markdown as it was;
            never blank, and never with the token as a word.
    """

    is_ok: bool
    text: str = ""


def judge(reply: str, *, ack_max_chars: int, position: AckPosition) -> AckResult:
    """Tell whether a reply says that all is well, and what of it is delivered if not.

    A *character* is a visible code point of the text in NFC: an accented letter is one however it
    is written, an emoji of several parts is as many as it has.

    Source: SPEC HB-6.
    """
    text = well_formed(reply)
    spans = _token_spans(text)
    if not spans:
        return AckResult(is_ok=False, text=reply) if not is_blank(text) else AckResult(is_ok=True)
    left = _without(text, spans)
    rest = plain_text(left)
    edges = (text[: spans[0].begin], text[spans[-1].end :])
    counts = position is AckPosition.ANYWHERE or any(map(_is_punctuation, edges))
    if not rest or (counts and len(rest) <= ack_max_chars):
        return AckResult(is_ok=True)
    return AckResult(is_ok=False, text=left)


def without_token(text: str) -> str:
    """A text without the token and the markup around it; unchanged if it is not in it.

    Whatever the text, the token is no word of what is returned, rendered or as it stands.
    """
    left = well_formed(text)
    spans = _token_spans(left)
    return _without(left, spans) if spans else text


def conversation_text(text: str, *, growing: bool = False) -> str:
    """A reply in a conversation, without the token where it is no part of a sentence.

    That is alone, or at the begin or end of the reply on a line of its own or set off by
    punctuation: models that know the token from heartbeats put it there. A sentence about the token
    stays whole. Of a reply that is ``growing`` the beginning of a token at its end is left out too.

    Source: SPEC HB-6.
    """
    left = well_formed(text)
    if growing and (begun := _BEGUN.search(left)) and HEARTBEAT_OK.startswith(begun[1]):
        left = left[: begun.start()]
    if HEARTBEAT_OK[:4] not in left:
        return left if growing else text
    for _ in range(_ROUNDS):
        spans = _token_spans(left)
        if not spans or not plain_text(_cut(left, spans)):
            return "" if spans else left
        first, last = spans[0], spans[-1]
        if _is_punctuation(left[last.end :]) and _ENDS.search(left[: last.begin]):
            left = _cut(left, [last]).rstrip()
        elif _is_punctuation(left[: first.begin]) and _BEGINS.match(left[first.end :]):
            left = _cut(left, [first]).lstrip("\n .,;:!?\u2013\u2014-")
        else:
            break
    return left


_BEGUN: Final = re.compile(r"(?:^|\s)[*_`]*(HEAR[A-Z_]*)$")
_ENDS: Final = re.compile(r"(?:^|[.!?\u2026\u3002\uff01\uff1f][\s*_`)\]]*|\n\s*)[*_`>\s]*$")
"""Before the token: nothing, the end of a sentence, or a line that has ended."""
_BEGINS: Final = re.compile(r"[*_`]*[ \t]*(?:$|\n|[.,;:!?\u2013\u2014-])")
"""Behind the token: nothing, the end of its line, or what ends a sentence."""


def alert_key(agent: str, target: str, text: str) -> str:
    """Equal for alerts that say the same in the same place (SPEC HB-7); 64 hexadecimal digits.

    ``target`` names the chat and thread. Token and markup do not count, nor how blanks are written.
    """
    said = plain_text(without_token(well_formed(text)))
    key = hashlib.sha256()
    for part in (agent, target, " ".join(said.split())):
        encoded = well_formed(part).encode()
        # With its length: what moves from one part to the next makes another key.
        key.update(b"%d:%b" % (len(encoded), encoded))
    return key.hexdigest()


# ---------------------------------------------------------------------- readings

_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
"""What Unicode says to show as nothing, and control characters."""
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff"
    "\uff66-\uff9d\U00020000-\U0003ffff]"
)
"""Letters of Thai, Lao, Burmese, Khmer, Japanese and Chinese, which put no blanks between words: a
word of Latin letters among them is one of its own."""
_NOTHING: Final = "\x01"
_NOTHINGS = re.compile(f"{_NOTHING}+")
_HIDDEN: Final = "\x02"
"""Shows nothing when the text is rendered; something, if it is not."""

_TAG: Final = r"""<(?:[^<>"']++|"[^"]*+"|'[^']*+')*+>|<[^<>]*+>"""
"""An attribute may hold anything between its quotes."""
_NESTED = r"\((?:[^()\\]++|\\.|\((?:[^()\\]++|\\.)*+\))*+\)"
_ADDRESS: Final = (
    r"\]\((?:[^()\\\"'<>]++|\\.|\"(?:[^\"\\]++|\\.)*+\"|'(?:[^'\\]++|\\.)*+'|<[^<>]*+>"
    rf"|\((?:[^()\\]++|\\.)*+\))*+\)|\]\((?:[^()\\]++|\\.|{_NESTED})*+\)|\]\[[^\[\]]*+\]"
)
"""What follows the words of a link: where it leads, and a title."""
_NUMBER = r"#0*+[0-9]{1,7}+;?|#[xX]0*+[0-9a-fA-F]{1,6}+;?"
_CODED = re.compile(
    rf"&(?:(?:amp|#0*+38|#[xX]0*+26);)*+(?P<name>{_NUMBER}|[A-Za-z][A-Za-z0-9]{{1,31}}+;?)"
    r"|%[2-7][0-9A-Fa-f]"
)
"""Entities, also of entities, and what stands for a character in an address."""
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# Not possessive: Python 3.11.2 then takes the beginning of an alternative that fails for a match.
_OUTER = re.compile(rf"(?:{_ADDRESS}|{_TAG}|!(?=\[))+", re.DOTALL)
# A blank at the edge of a piece of code is not shown either.
_CODE_EDGE = r"(?<!`)`++[ \n]|[ \n](?=`)"
_LINKS = re.compile(rf"(?:{_CODE_EDGE}|{_ADDRESS}|!(?=\[))+", re.DOTALL)
_INNER = re.compile(rf"(?:{_CODE_EDGE}|<[^<>]*+>|\]\([^()\[\]]*+\)|\]\[[^\[\]]*+\]|!(?=\[))+")

_HIDING: Final = ((_LINKS,), (_INNER,), (_COMMENT, _OUTER))
"""What is hidden, in this order. What is hidden may hide something in turn, and one who does not
read tags or comments as such sees what is in them."""


class _Span(NamedTuple):
    """From the code point ``begin`` to before ``end``."""

    begin: int
    end: int


class _Reading(NamedTuple):
    """What somebody may read in a text, and where in the text each character of it is."""

    text: str
    places: Sequence[_Span]

    def replaced(self, pattern: re.Pattern[str], by: Callable[[re.Match[str]], str]) -> _Reading:
        # Behind its last end, each begin of a comment would be searched to the end of the text.
        limit = self.text.rfind("-->") + len("-->") if pattern is _COMMENT else len(self.text)
        parts: list[str] = []
        places: list[_Span] = []
        end = 0
        for found in pattern.finditer(self.text, 0, limit):
            begin, new = found.start(), by(found)
            parts += [self.text[end:begin], new]
            places += self.places[end:begin]
            end = found.end()
            places += [_Span(self.places[begin].begin, self.places[end - 1].end)] * len(new)
        if not end:
            return self
        return _Reading("".join([*parts, self.text[end:]]), [*places, *self.places[end:]])


class _Signs(dict[int, str]):
    """For ``str.translate``: letters of the token as ASCII, ``_NOTHING`` for what is not seen."""

    def __missing__(self, code: int) -> str:
        sign = self[code] = _sign(chr(code))
        return sign


_SIGNS: Final = _Signs()


def _sign(char: str) -> str:
    if _INVISIBLE.match(char) or unicodedata.category(char) in ("Mn", "Mc", "Me", "Cf"):
        return _NOTHING
    parts = unicodedata.normalize("NFKD", char)
    base = "".join(part for part in parts if not unicodedata.combining(part))
    if base in frozenset(HEARTBEAT_OK):
        return base
    return "." if _UNSPACED.match(char) else char


def _nothing(_: re.Match[str]) -> str:
    return ""


def _hidden(_: re.Match[str]) -> str:
    return _HIDDEN


def _decoded(coded: re.Match[str]) -> str:
    return _meaning(coded[0], coded["name"])


# A text may be full of them.
@lru_cache(maxsize=256)
def _meaning(source: str, name: str | None) -> str:
    char = html.unescape(f"&{name}") if name else chr(int(source[1:], 16))
    return char.translate(_SIGNS).replace(_NOTHING, "")


def _readings(text: str) -> Iterator[_Reading]:
    signs = text.translate(_SIGNS)
    if not re.search("[&%]", signs) and not frozenset(HEARTBEAT_OK).issubset(signs):
        return
    places = list(map(_Span._make, pairwise(range(len(text) + 1))))
    stands = _Reading(signs, places)
    shown = stands.replaced(_NOTHINGS, _nothing)
    decoded = shown.replaced(_CODED, _decoded)
    # What shows nothing may keep a reader from decoding.
    strict = stands.replaced(_CODED, _decoded).replaced(_NOTHINGS, _nothing)
    for first in (shown, decoded) if strict.text == decoded.text else (shown, decoded, strict):
        yield first
        for patterns in _HIDING:
            reading = first
            for pattern in patterns:
                reading = reading.replaced(pattern, _hidden)
            if reading is first:
                continue
            yield reading
            # A bracket that is coded is markup only to one who decodes first.
            if first is shown:
                yield reading.replaced(_CODED, _decoded)


_MARKS = rf"{_HIDDEN}*`~\\\[\]"
"""What is not seen in the middle of a word when it is rendered."""
# Underscores are markup only next to other markup. So ``HEART_BEAT_OK`` is something else.
_GAP = rf"(?:_*+[{_MARKS}][_{_MARKS}]*+)?+"
_JOINT = rf"(?:_(?=O)|(?=[{_MARKS}]*+_)_*+[{_MARKS}][_{_MARKS}]*+)"
_TOKEN = re.compile(rf"{_GAP.join('HEARTBEAT')}{_JOINT}O{_GAP}K(?=(?:\\?+_)*+(?![^\W_]))")


def _token_spans(text: str) -> list[_Span]:
    """Where the token is a word of its own to somebody who reads the text in either way.

    ``text`` is well formed. The spans are in order and do not touch each other; markup around the
    token is in none of them.
    """
    found = [
        _Span(places[match.start()].begin, places[match.end() - 1].end)
        for view, places in _readings(text)
        for match in _TOKEN.finditer(view)
        if not _is_held(view, match.start())
    ]
    merged: list[_Span] = []
    for span in sorted(found):
        if merged and span.begin <= merged[-1].end:
            merged[-1] = _Span(merged[-1].begin, max(span.end, merged[-1].end))
        else:
            merged.append(span)
    return merged


def _is_held(view: str, begin: int) -> bool:
    """Whether there is a word before a place. Underscores alone are markup."""
    while begin and (view[begin - 1] == "_" or view[begin - 1 : begin + 1] == r"\_"):
        begin -= 1
    return begin > 0 and view[begin - 1].isalnum()


# ---------------------------------------------------------------------- removal

_HOLE: Final = "\ufdd0"
"""Stands where a token has been; a code point that no text has."""
_POINTS = ".,;:!?…。、，；：！？"  # noqa: RUF001
_MARKUP = re.compile(rf"[*`~]+|{_TAG}|{_ADDRESS}", re.DOTALL)
_LINE = r"(?:[ \t>]|[-*+•][ \t]|\d{1,9}[.)][ \t]|\#{1,6}[ \t]|\[[ xX]\][ \t]){0,40}"
"""Marks of quotes, lists and headings at the begin of a line."""
_BLANKS = r"\s{0,16}"
_BRACKETS = (
    "() [] {} <> “” „“ „” ”” ‘’ ‚‘ ‚’ ’’ «» »« ‹› ›‹ "  # noqa: RUF001
    "「」 『』 《》 〈〉 【】 〔〕 〝〞 （） ［］ ＂＂"  # noqa: RUF001
)
_PAIRS = "|".join(
    re.escape(pair[0]) + _BLANKS + _HOLE + _BLANKS + re.escape(pair[1])
    for pair in _BRACKETS.split()
)
_WRAPPED = re.compile(
    rf"^[ \t>]{{0,40}}(?:[-*+][ \t]{{1,4}}|\d{{1,9}}[.)][ \t]{{1,4}})?(?P<fence>`{{3,9}}|~{{3,9}})"
    rf"[^\n`{_HOLE}]{{0,40}}\n[\s>]{{0,16}}{_HOLE}[\s>]{{0,16}}(?P=fence)[ \t]*+$"
    rf"|(?P<sign>(?:\\?[*_~`\"'|=]){{1,9}}){_HOLE}(?P=sign)"
    rf"|!?\[{_BLANKS}{_HOLE}{_BLANKS}(?:{_ADDRESS})|{_PAIRS}"
    rf"|<(?P<tag>[a-z][\w:-]{{0,40}}+)[^<>]{{0,256}}>{_BLANKS}{_HOLE}{_BLANKS}</(?P=tag)\s{{0,16}}>"
    rf"|{_HOLE}(?:(?:[\s\u200b-\u200f\ufeff{_POINTS}·*_`~\\-]|<[^<>]{{0,256}}>){{0,16}}+{_HOLE})++",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
"""A token with what is around it on both sides, or several with nothing between them."""

_LEADING = rf"(?:(?!!\[)[{_POINTS}]|[-\u2013\u2014|]+(?=\s|$)|[ \t])*+"
_LONE_LINE = re.compile(
    rf"(\n{{0,2}})^{_LINE}{_HOLE}[ \t]*+((?:\n[ \t]*+(?=\n))*+(?:\n|\Z))", re.MULTILINE
)
_LEFT_BEHIND: Final = (
    # What parted the token from what follows it goes with it, at the begin of a line or of markup.
    (re.compile(rf"^({_LINE}){_HOLE}{_LEADING}", re.MULTILINE), r"\1"),
    (re.compile(rf"((?:^|[\s(])[*_~`\"'(\[“„«]{{1,9}}){_HOLE}{_LEADING}", re.MULTILINE), r"\1"),
    (re.compile(rf"([{_POINTS}])[ \t]{{0,16}}{_HOLE}[{_POINTS}]*+(?=[ \t]*+(?:\n|\Z))"), r"\1"),
    (re.compile(rf"[ \t]{{0,16}}{_HOLE}(?:[ \t]*+(?=[{_POINTS}\n)]|\Z)|(?=[\]*_`~\"']))"), ""),
    (re.compile(rf"[ \t]{{0,16}}{_HOLE}[ \t]*+"), " "),
)
_EMPTY_LINES = re.compile(r"\A(?:[^\S\n]*+\n)+")


def _without(text: str, spans: Sequence[_Span]) -> str:
    for _ in range(_ROUNDS):
        text = _cut(text, spans)
        # Two halves may have come together, or what was in a tag have come out of it.
        spans = _token_spans(text)
        if not spans:
            return text
    # No reading of what is left has an underscore, so none has the token.
    signs = text.translate(_SIGNS)
    return "".join(" " if sign in "_&%" else char for char, sign in zip(text, signs, strict=True))


def _cut(text: str, spans: Sequence[_Span]) -> str:
    """The text without these places, which are in order, and without the markup around them."""
    parts, end = [], 0
    for span in spans:
        # Markup within the token may have its other half outside of it.
        inside = _MARKUP.findall(text[span.begin : span.end])
        parts += [text[end : span.begin], _HOLE, *(mark + _HOLE for mark in inside)]
        end = span.end
    text = "".join([*parts, text[end:]])
    for _ in range(_MOST_NESTED):
        text, changes = _WRAPPED.subn(_HOLE, text)
        if not changes:
            break
    text = _LONE_LINE.sub(lambda line: max(line[1], "\n" * line[2].count("\n")), text)
    for pattern, left in _LEFT_BEHIND:
        text = pattern.sub(left, text)
    return _EMPTY_LINES.sub("", text).rstrip()


# ---------------------------------------------------------------------- what a text says

_NO_WORDS: Final = (
    # Fences, rules, marks of lines, links, tags and comments, emphasis; then escapes.
    (re.compile(r"^[ \t>]*+(?:`{3,}+|~{3,}+)[^\n`]*+$", re.MULTILINE), ""),
    (re.compile(r"^[ \t>]*+([-*_])(?:[ \t]*+\1){2,}+[ \t]*+$", re.MULTILINE), ""),
    (re.compile(r"^[ \t>]*+(?:#{1,6}+[ \t]+|[-*+•][ \t]+(?:\[[ xX]\][ \t]+)?)?", re.MULTILINE), ""),
    (re.compile(rf"!?\[(?=[^\[\]]*+(?:{_ADDRESS}))|{_ADDRESS}", re.DOTALL), ""),
    (re.compile(rf"(?=</?[A-Za-z](?!\w*+:)|<!--)(?:{_TAG})"), ""),
    (re.compile(r"(?<![\w\\])_++|(?<![_\\])_++(?!\w)|(?<!\\)(?:[*`]++|~~++)"), ""),
    (re.compile(r"\\([!-/:-@\[-`{-~])"), r"\1"),
)


def plain_text(text: str) -> str:
    """What a text says: without markup and what is not seen, in NFC.

    What is markup is decided by the looks of it. That is good enough to count characters, and to
    tell whether two texts say the same.
    """
    for pattern, left in _NO_WORDS:
        text = pattern.sub(left, text)
    text = _CODED.sub(lambda coded: html.unescape(coded[0]) if coded["name"] else coded[0], text)
    return unicodedata.normalize("NFC", _INVISIBLE.sub("", text)).strip()


def _is_punctuation(text: str) -> bool:
    """Whether there is nothing but blanks, markup and punctuation."""
    return all(
        (char.isascii() and not char.isalnum()) or unicodedata.category(char)[0] in "PZM"
        for char in plain_text(text)
    )
