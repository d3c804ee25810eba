"""HEARTBEAT_OK in agents' replies (SPEC HB-6, HB-7).

The token is searched in several *readings* of a text: as it is, with entities resolved, and
rendered, without tags and link addresses. A reading knows the position in the text of each of its
characters, so that a token found in it can be removed from the text.

Letters of the token may have any width, style and accents. Similar letters of other alphabets do
not count. All patterns take time linear in the length of the text.

The rules of SPEC HB-6:

**HEARTBEAT_OK detection.** The token counts as a word of its own (not `HEARTBEAT_OKAY`,
`NOT_HEARTBEAT_OK`; letters of scripts without blanks between words are no part of it), in the
forms `HEARTBEAT_OK`, `**…**`, `__…__`, `*…*`, `_…_`, `` `…` ``, fenced, quoted, `<b>…</b>` and
other inline tags in any nesting, backslash-escaped, with punctuation. The reply is OK when what
remains after removing token and markup has ≤ `ack_max_chars` (300) **characters**; default
`ack_position = "anywhere"`, `"edges"` demands start or end. Lower case does not count. An empty
reply is OK, and so is one that is only `NO_REPLY` (also in Markdown or quotes). A longer rest is
delivered **without** the token, and so is a reply that the model could not complete
(`finish_reason = length`), whatever its length: no output of a heartbeat run or job run ever shows
it, streaming included. The log row keeps the reply, and of a short one with the token `heartbeat
why` shows what else it said. A model that can call tools has `heartbeat_done(notify, text)` in a
heartbeat run, which overrides the reply. A reply in a conversation, and its draft, loses the token
where it stands apart at its begin or end; a sentence about it stays whole.
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

from goclaw_py.core.text import is_blank, well_formed

HEARTBEAT_OK: Final = "HEARTBEAT_OK"
NO_REPLY: Final = "NO_REPLY"
"""What a model writes that has nothing to say."""
_QUOTES: Final = " \"'.!\u2026\u3002\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb()[]|$"

_ROUNDS = 3
"""The number of searches before underscores in the rest are replaced by blanks."""
_MOST_NESTED = 12
"""The levels of markup around a token that are removed with it."""


class AckPosition(StrEnum):
    """Where in a reply HEARTBEAT_OK counts (SPEC HB-6)."""

    ANYWHERE = "anywhere"
    EDGES = "edges"


@dataclass(frozen=True, slots=True)
class AckResult:
    """The meaning of a reply.

    Args:
        is_ok: Whether nothing is delivered.
        text: Otherwise the text to deliver: the reply without the token, in its Markdown; never
            blank, and never with the token as a word.
    """

    is_ok: bool
    text: str = ""


def judge(reply: str, *, ack_max_chars: int, position: AckPosition) -> AckResult:
    """Return whether a reply means that all is well, and otherwise the text to deliver.

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


def is_silent(text: str) -> bool:
    """Return whether a reply is blank, or only ``NO_REPLY``, also in markup or quotes.

    Source: SPEC HB-6, CRON-13.
    """
    if NO_REPLY[:2] not in text:
        return is_blank(text)
    return plain_text(well_formed(text)).strip(_QUOTES) == NO_REPLY


def without_token(text: str) -> str:
    """Return a text without the token and the markup around it.

    The token is not a word of the result, as it is or rendered.
    """
    left = well_formed(text)
    spans = _token_spans(left)
    return _without(left, spans) if spans else text


def conversation_text(text: str, *, growing: bool = False) -> str:
    """Return a reply in a conversation without the token where it is not part of a sentence.

    That is: alone, or at the beginning or end on a line of its own or separated by punctuation,
    where models that know it from heartbeats put it. A sentence about the token is kept. If the
    reply is ``growing``, the beginning of a token at its end is removed too.

    Source: SPEC HB-6.
    """
    left = well_formed(text)
    if growing and (begun := _BEGUN.search(left)) and HEARTBEAT_OK.startswith(begun[1]):
        left = left[: begun.start()]
    if HEARTBEAT_OK[:4] not in left:
        return left if growing else text
    for _ in range(_ROUNDS):
        spans = _token_spans(left)
        if not spans or _is_punctuation(_remove_spans(left, spans)):
            return "" if spans else left
        first, last = spans[0], spans[-1]
        if _is_punctuation(left[last.end :]) and _ENDS.search(left[: last.begin]):
            left = _remove_spans(left, [last]).rstrip()
        elif _is_punctuation(left[: first.begin]) and _BEGINS.match(left[first.end :]):
            left = _remove_spans(left, [first]).lstrip("\n .,;:!?\u2013\u2014-")
        else:
            break
    return left


_BEGUN: Final = re.compile(r"(?:^|\s)[*_`]*(HEAR[A-Z_]*)$")
_ENDS: Final = re.compile(r"(?:^|[.!?\u2026\u3002\uff01\uff1f][\s*_`)\]]*|\n\s*)[*_`>\s\"'(\[]*$")
"""Before the token: nothing, the end of a sentence, or a line end."""
_BEGINS: Final = re.compile(r"[*_`]*[ \t]*(?:$|\n|[.,;:!?\u2013\u2014-])")
"""After the token: nothing, a line end, or the end of a sentence."""


def alert_key(agent: str, target: str, text: str) -> str:
    """Return a key that is equal for alerts with the same text and target (SPEC HB-7).

    64 hexadecimal digits. ``target`` names the chat and thread. Token, markup and the kind of
    blanks do not count.
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
"""Characters that Unicode says to show as nothing, and control characters."""
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff"
    "\uff66-\uff9d\U00020000-\U0003ffff]"
)
"""Letters of Thai, Lao, Burmese, Khmer, Japanese and Chinese, without blanks between words.

A word of Latin letters among them is a word of its own.
"""
_NOTHING: Final = "\x01"
_NOTHINGS = re.compile(f"{_NOTHING}+")
_HIDDEN: Final = "\x02"
"""Invisible when the text is rendered, visible otherwise."""

# Groups are atomic, (?>...), not possessive: Python before 3.11.5 takes the beginning of a
# possessive group that fails for a match. A single character may be possessive.
_TAG: Final = r"""<(?>(?:[^<>"']++|"[^"]*+"|'[^']*+')*)>|<[^<>]*+>"""
"""An attribute may contain anything in quotes."""
_NESTED = r"\((?>(?:[^()\\]++|\\.|\((?>(?:[^()\\]++|\\.)*)\))*)\)"
_ADDRESS: Final = (
    r"\]\((?>(?:[^()\\\"'<>]++|\\.|\"(?>(?:[^\"\\]++|\\.)*)\"|'(?>(?:[^'\\]++|\\.)*)'|<[^<>]*+>"
    rf"|\((?>(?:[^()\\]++|\\.)*)\))*)\)|\]\((?>(?:[^()\\]++|\\.|{_NESTED})*)\)|\]\[[^\[\]]*+\]"
)
"""The part of a link after its text: address and title."""
_NUMBER = r"#0*+[0-9]{1,7}+;?|#[xX]0*+[0-9a-fA-F]{1,6}+;?"
_CODED = re.compile(
    rf"&(?>(?:(?:amp|#0*+38|#[xX]0*+26);)*)(?P<name>{_NUMBER}|[A-Za-z][A-Za-z0-9]{{1,31}}+;?)"
    r"|%[2-7][0-9A-Fa-f]"
)
"""Entities, also of entities, and encoded characters in an address."""
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_OUTER = re.compile(rf"(?:{_ADDRESS}|{_TAG}|!(?=\[))+", re.DOTALL)
# A blank at the edge of a piece of code is not shown either.
_CODE_EDGE = r"(?<!`)`++[ \n]|[ \n](?=`)"
_LINKS = re.compile(rf"(?:{_CODE_EDGE}|{_ADDRESS}|!(?=\[))+", re.DOTALL)
_INNER = re.compile(rf"(?:{_CODE_EDGE}|<[^<>]*+>|\]\([^()\[\]]*+\)|\]\[[^\[\]]*+\]|!(?=\[))+")

_HIDING: Final = ((_LINKS,), (_INNER,), (_COMMENT, _OUTER))
"""What is hidden, in this order.

Hidden parts may hide others, and are visible to people who do not see tags or comments.
"""


class _Span(NamedTuple):
    """From the code point ``begin`` to before ``end``."""

    begin: int
    end: int


class _Reading(NamedTuple):
    """A way to read a text, with the position in the text of each of its characters."""

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
    """For ``str.translate``: token letters as ASCII, ``_NOTHING`` for invisible characters."""

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
"""Characters that are invisible within a rendered word."""
# Underscores are markup only next to other markup. So ``HEART_BEAT_OK`` is something else.
_GAP = rf"(?>(?:_*+[{_MARKS}][_{_MARKS}]*+)?)"
_JOINT = rf"(?:_(?=O)|(?=[{_MARKS}]*+_)_*+[{_MARKS}][_{_MARKS}]*+)"
_TOKEN = re.compile(rf"{_GAP.join('HEARTBEAT')}{_JOINT}O{_GAP}K(?=(?>(?:\\?+_)*)(?![^\W_]))")


def _token_spans(text: str) -> list[_Span]:
    """Return where the token is a word in any reading of a well-formed text.

    The spans are in order and do not touch; they do not include markup around the token.
    """
    found = [
        _Span(places[match.start()].begin, places[match.end() - 1].end)
        for view, places in _readings(text)
        for match in _TOKEN.finditer(view)
        if not _follows_word(view, match.start())
    ]
    merged: list[_Span] = []
    for span in sorted(found):
        if merged and span.begin <= merged[-1].end:
            merged[-1] = _Span(merged[-1].begin, max(span.end, merged[-1].end))
        else:
            merged.append(span)
    return merged


def _follows_word(view: str, begin: int) -> bool:
    """Return whether there is a word before a position. Underscores alone are markup."""
    while begin and (view[begin - 1] == "_" or view[begin - 1 : begin + 1] == r"\_"):
        begin -= 1
    return begin > 0 and view[begin - 1].isalnum()


# ---------------------------------------------------------------------- removal

_HOLE: Final = "\ufdd0"
"""Replaces a token; a code point that no text contains."""
_POINTS = ".,;:!?…。、，；：！？"  # noqa: RUF001
_MARKUP = re.compile(rf"[*`~]+|{_TAG}|{_ADDRESS}", re.DOTALL)
_LINE = r"(?:[ \t>]|[-*+•][ \t]|\d{1,9}[.)][ \t]|\#{1,6}[ \t]|\[[ xX]\][ \t]){0,40}"
"""Marks of quotes, lists and headings at the beginning of a line."""
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
    rf"|{_HOLE}(?>(?:(?>(?:[\s\u200b-\u200f\ufeff{_POINTS}·*_`~\\-]|<[^<>]{{0,256}}>){{0,16}})"
    rf"{_HOLE})+)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
"""A token with markup on both sides, or several in a row."""

_LEADING = rf"(?>(?:(?!!\[)[{_POINTS}]|[-\u2013\u2014|]+(?=\s|$)|[ \t])*)"
_LONE_LINE = re.compile(
    rf"(\n{{0,2}})^{_LINE}{_HOLE}[ \t]*+((?>(?:\n[ \t]*+(?=\n))*)(?:\n|\Z))", re.MULTILINE
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
        text = _remove_spans(text, spans)
        # Two halves may have come together, or what was in a tag have come out of it.
        spans = _token_spans(text)
        if not spans:
            return text
    # No reading of what is left has an underscore, so none has the token.
    signs = text.translate(_SIGNS)
    return "".join(" " if sign in "_&%" else char for char, sign in zip(text, signs, strict=True))


def _remove_spans(text: str, spans: Sequence[_Span]) -> str:
    """Return the text without these spans, which are in order, and the markup around them."""
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
    (re.compile(r"^[ \t>]*+([-*_])(?>(?:[ \t]*+\1){2,})[ \t]*+$", re.MULTILINE), ""),
    (re.compile(r"^[ \t>]*+(?:#{1,6}+[ \t]+|[-*+•][ \t]+(?:\[[ xX]\][ \t]+)?)?", re.MULTILINE), ""),
    (re.compile(rf"!?\[(?=[^\[\]]*+(?:{_ADDRESS}))|{_ADDRESS}", re.DOTALL), ""),
    (re.compile(rf"(?=</?[A-Za-z](?!\w*+:)|<!--)(?:{_TAG})"), ""),
    (re.compile(r"(?<![\w\\])_++|(?<![_\\])_++(?!\w)|(?<!\\)(?:[*`]++|~~++)"), ""),
    (re.compile(r"\\([!-/:-@\[-`{-~])"), r"\1"),
)


def plain_text(text: str) -> str:
    """Return the visible text: without markup and invisible characters, in NFC.

    Markup is recognised by its appearance, which is enough to count characters and to compare
    texts.
    """
    for pattern, left in _NO_WORDS:
        text = pattern.sub(left, text)
    text = _CODED.sub(lambda coded: html.unescape(coded[0]) if coded["name"] else coded[0], text)
    return unicodedata.normalize("NFC", _INVISIBLE.sub("", text)).strip()


def _is_punctuation(text: str) -> bool:
    """Return whether there is nothing but blanks, markup and punctuation."""
    return all(
        (char.isascii() and not char.isalnum()) or unicodedata.category(char)[0] in "PZM"
        for char in plain_text(text)
    )
