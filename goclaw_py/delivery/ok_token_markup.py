"""HEARTBEAT_OK as it looks to people, whatever way it is written (SPEC HB-6).

A text is looked at in *views*, which have a sign for each of its characters, so that places in a
view are places in the text. In the first one what shows nothing is a sign of its own, and what
stands for a character (``&#95;``) is that character; in the others tags and the addresses of links
show nothing either. Somebody who reads the text as it stands sees the first one, somebody who reads
it rendered one of the others. One pattern finds the token in each of them, in one pass.

A letter of the token counts in all its widths and styles, with accents or without. Other letters
that look like it do not: those of other alphabets.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from html.entities import html5
from typing import Final, NamedTuple

_NOTHING: Final = "\x01"
"""Shows nothing, and holds the letters around it together."""
_HIDDEN: Final = "\x02"
"""Shows nothing when the text is rendered; something, if it is not."""
_REST: Final = "\x03"
_BEGIN: Final = "\x04"
"""``&#95;`` is one ``_BEGIN``, the character, and ``_REST`` for all that follows."""

_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""What Unicode says to show as nothing, and control characters."""

_LINE_ENDS: Final = "\n\r\x85\u2028\u2029"
_BLANK_SIGN: Final = "\u2800"
"""A sign of Braille without a dot."""
_LETTERS: Final = frozenset("HEARTBOK_")

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff"
    "\uff66-\uff9d\U00020000-\U0003ffff]"
)
"""Letters of Thai, Lao, Burmese, Khmer, Japanese and Chinese, which put no blanks between words: a
word of Latin letters among them is one of its own."""


class _Signs(dict[int, str]):
    """Signs of characters, for ``str.translate``."""

    def __missing__(self, code: int) -> str:
        sign = self[code] = _sign(chr(code))
        return sign


def _sign(char: str) -> str:
    """The sign of a character in the first view."""
    if char in _LINE_ENDS:
        return "\n"
    if char.isspace() or char == _BLANK_SIGN:
        return " "
    if _is_nothing(char):
        return _NOTHING
    if char.isascii():
        return char
    base = "".join(
        part for part in unicodedata.normalize("NFKD", char) if not unicodedata.combining(part)
    )
    if base in _LETTERS:
        return base
    if _UNSPACED.match(char):
        return "."
    return "w" if char.isalnum() or unicodedata.category(char) == "Pc" else "."


def _is_nothing(char: str) -> bool:
    return _INVISIBLE.match(char) is not None or unicodedata.category(char) in (
        "Mn",
        "Mc",
        "Me",
        "Cf",
    )


class MarkupSpan(NamedTuple):
    """From the code point ``begin`` to before ``end``."""

    begin: int
    end: int


# ---------------------------------------------------------------------- views


def _coded(nothing: str) -> re.Pattern[str]:
    """``nothing``: what may be in the middle of it."""
    n = f"[{nothing}]*+" if nothing else ""
    amp = rf"(?:a{n}m{n}p|#{n}0*+3{n}8|#{n}[xX]{n}0*+2{n}6)"
    return re.compile(
        rf"&{n}(?:{amp}{n};{n})*"
        rf"(?P<name>#{n}(?:[0-9][0-9{nothing}]*+|[xX]{n}[0-9a-fA-F][0-9a-fA-F{nothing}]*+);?"
        rf"|[A-Za-z][A-Za-z0-9{nothing}]{{0,63}}+;|s{n}h{n}y|[lg]{n}t)"
        rf"|%{n}[2-7]{n}[0-9A-Fa-f]|(?:%{n}[89A-Fa-f]{n}[0-9A-Fa-f])++"
    )


_CODED = _coded(_NOTHING)
"""Entities, also of entities, and what stands for a character in an address.

What shows nothing may be in them: channels take control characters away before they read a text.
"""

TAG: Final = r"""<(?:[^<>"']++|"[^"]*+"|'[^']*+')*+>|<[^<>]*+>"""
"""An attribute may hold anything between its quotes."""
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)

_IN_PARENTHESES = r"(?:[^()\\]++|\\.|\((?:[^()\\]++|\\.|\((?:[^()\\]++|\\.)*+\))*+\))*+"
ADDRESS: Final = (
    r"\]\((?:[^()\\\"'<>]++|\\.|\"(?:[^\"\\]++|\\.)*+\"|'(?:[^'\\]++|\\.)*+'|<[^<>]*+>"
    r"|\((?:[^()\\]++|\\.)*+\))*+\)"
    rf"|\]\({_IN_PARENTHESES}\)"
    r"|\]\[[^\[\]]*+\]"
)
"""What follows the words of a link: where it leads, and a title."""

# Not possessive: Python 3.11.2 then takes the beginning of an alternative that fails for a match.
_OUTER = re.compile(rf"(?:{ADDRESS}|{TAG}|!(?=\[))+", re.DOTALL)
# A blank at the edge of a piece of code is not shown either.
# From the first one of a run only: otherwise a long run is looked at from each of its signs.
_CODE_EDGE = r"(?<!`)`++[ \n]|[ \n](?=`)"
_LINKS = re.compile(rf"(?:{_CODE_EDGE}|{ADDRESS}|!(?=\[))+", re.DOTALL)
_INNER = re.compile(rf"(?:{_CODE_EDGE}|<[^<>]*+>|\]\([^()\[\]]*+\)|\]\[[^\[\]]*+\]|!(?=\[))+")
_STRICTLY_CODED = _coded("")
_CODED_BRACKET = re.compile(r"(?<=\x04)[][<>()`\"'](?=\x03)")


def _views(text: str) -> list[str]:
    """The first view, and the others if they differ from it."""
    as_is = text.translate(_Signs())
    first = _CODED.sub(_decoded, as_is) if "&" in as_is or "%" in as_is else as_is
    if not any(sign in first for sign in "<[]`"):
        return [first]
    bases = [first]
    if first != as_is:
        # A bracket that is coded is markup only to one who decodes first, and what shows nothing
        # may keep others from decoding.
        strict = _STRICTLY_CODED.sub(_decoded, as_is) if _NOTHING in as_is else first
        bases += [strict, _CODED_BRACKET.sub(".", first), _CODED_BRACKET.sub(".", strict)]
    # What is hidden may hide something in turn, and one who does not read tags or comments as such
    # sees what is in them.
    views = [first]
    for base in set(bases):
        views += [_LINKS.sub(_hidden, base), _INNER.sub(_hidden, base)]
        views += [_OUTER.sub(_hidden, _without_comments(base))]
    return list(dict.fromkeys(views))


def _without_comments(view: str) -> str:
    # Behind the last end of one they would all be looked through to the end of the text.
    end = view.rfind("-->") + len("-->")
    return _COMMENT.sub(_hidden, view[:end]) + view[end:] if "<!--" in view else view


def _hidden(found: re.Match[str]) -> str:
    return _HIDDEN * len(found[0])


def _decoded(coded: re.Match[str]) -> str:
    source = coded[0]
    return _often(source) if len(source) <= _OFTEN_CHARS else _signs_of(source)


def _signs_of(source: str) -> str:
    chars = _meant(source)
    signs = "".join(map(_sign, chars))
    if not signs.strip(_NOTHING):
        return _HIDDEN * len(source) if signs else source
    return _BEGIN + signs + _REST * (len(source) - 2) if len(signs) == 1 else source


def _meant(source: str) -> str:
    """The characters that something stands for, "" if it stands for none."""
    source = source.replace(_NOTHING, "")
    coded = _CODED.match(source)
    assert coded
    name = coded["name"]
    if name is None:
        return bytes.fromhex(source.replace("%", "")).decode(errors="replace")
    if name[0] != "#":
        return html5.get(name, "")
    base = 16 if name[1] in "xX" else 10
    digits = name.strip("#xX;").lstrip("0")
    # No character has a longer number, and Python does not read numbers of any length.
    code = int(digits or "0", base) if len(digits) <= 7 else 0
    return chr(code) if 0 < code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else ""


# A text may be full of them.
_OFTEN_CHARS = 12
_often = lru_cache(maxsize=256)(_signs_of)
_often_meant = lru_cache(maxsize=256)(_meant)


# ---------------------------------------------------------------------- the token

_WORD = "0-9A-Za-z"
_MARKUP = r"\x02-\x04*`~\\\[\]"
"""What is not seen in the middle of a word when it is rendered."""

# Between two letters there may be markup, and underscores that belong to it: Markdown takes them
# for markup only next to punctuation. So ``HEART_BEAT_OK`` is something else.
_GAP = rf"\x01*+(?:[_\x01]*+[{_MARKUP}][_\x01{_MARKUP}]*+)?+"
_JOINT = rf"(?:\x01*+_\x01*+(?=O)|(?=[\x01{_MARKUP}]*+_)[_\x01]*+[{_MARKUP}][_\x01{_MARKUP}]*+)"
_TOKEN = re.compile(
    rf"{_GAP.join('HEARTBEAT')}{_JOINT}O{_GAP}K[\x01\x03]*+(?=(?:\\?+_|\x01)*+(?![{_WORD}]))"
)
_HOLDS: Final = f"_{_NOTHING}"


def token_spans(text: str) -> list[MarkupSpan]:
    """Where the token is a word of its own to somebody who reads the text in either way.

    ``text`` is well formed. The spans are in order and do not touch each other; markup around the
    token is in none of them.
    """
    views = _views(text)
    if not all(letter in views[0] for letter in _LETTERS):
        return []
    found = [word for view in views for word in _words(view)]
    return found if len(views) == 1 else _merged(sorted(found))


def _words(view: str) -> list[MarkupSpan]:
    words = []
    for match in _TOKEN.finditer(view):
        begin = match.start()
        if view.startswith(_BEGIN, begin - 1):
            begin -= 1
        if not _is_held(view, begin):
            words.append(MarkupSpan(begin, match.end()))
    return words


def _is_held(view: str, begin: int) -> bool:
    """Whether there is a word before a place. Underscores alone are markup."""
    before = begin
    while before and (
        view[before - 1] in _HOLDS or (view[before - 1] == "\\" and view[before] == "_")
    ):
        before -= 1
    return before > 0 and view[before - 1].isalnum()


def _merged(spans: list[MarkupSpan]) -> list[MarkupSpan]:
    merged: list[MarkupSpan] = []
    for span in spans:
        if merged and span.begin <= merged[-1].end:
            merged[-1] = MarkupSpan(merged[-1].begin, max(span.end, merged[-1].end))
        else:
            merged.append(span)
    return merged


_UNDERSCORE = re.compile(r"\x04?+_\x03*+")


def without_underscores(text: str) -> str:
    """The text with blanks where it has underscores, however they are written.

    No token is in it then, in whatever way it is read.
    """
    first = _views(text)[0]
    pieces, end = [], 0
    for found in _UNDERSCORE.finditer(first):
        pieces.append(text[end : found.start()])
        end = found.end()
    return " ".join([*pieces, text[end:]])


# ---------------------------------------------------------------------- what is left

_FENCE = re.compile(r"^[ \t>]*+(?:`{3,}+|~{3,}+)[^\n`]*+$", re.MULTILINE)
_RULE = re.compile(r"^[ \t>]*+([-*_])(?:[ \t]*+\1){2,}+[ \t]*+$", re.MULTILINE)
_LINE_MARK = re.compile(
    r"^(?=[ \t>#*+•-])(?:[ \t]*+>)*+[ \t]*+(?:#{1,6}+[ \t]+|[-*+•][ \t]+(?:\[[ xX]\][ \t]+)?)?",
    re.MULTILINE,
)
_LINK = re.compile(rf"!?\[(?=[^\[\]]*+(?:{ADDRESS}))|{ADDRESS}", re.DOTALL)
_BARE_TAG = re.compile(r"""</?[A-Za-z](?!\w*+:)(?:[^<>"']++|"[^"]*+"|'[^']*+')*+>|<!--[^<>]*+-->""")
_EMPHASIS = re.compile(r"[*`]++|~~++|_++")
_TO_REMOVE = (
    (_FENCE, ("```", "~~~")),
    (_RULE, "-*_"),
    (_LINE_MARK, " \t>#-*+•"),
    (_LINK, "]"),
    (_BARE_TAG, "<"),
)
"""What is removed, and what is in any text that has it."""

_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_INVISIBLES = re.compile(f"{_INVISIBLE.pattern}++")


def bare(text: str) -> str:
    """What a text says: without markup, entities as what they stand for, not trimmed.

    What is markup is decided by the looks of it. That is good enough to count characters, and to
    tell whether two texts say the same.
    """
    for pattern, signs in _TO_REMOVE:
        if any(sign in text for sign in signs):
            text = pattern.sub("", text)
    text = _EMPHASIS.sub(_literal, text)
    if "\\" in text:
        text = _ESCAPED.sub(r"\1", text)
    return _CODED.sub(_said, text) if "&" in text else text


def _literal(signs: re.Match[str]) -> str:
    """Signs that look like emphasis, if they are none: between blanks, escaped, in names."""
    text, (begin, end) = signs.string, signs.span()
    before, after = text[begin - 1 : begin], text[end : end + 1]
    if before == "\\":
        return signs[0]
    if signs[0][0] == "_":
        return signs[0] if before.isalnum() and after.isalnum() else ""
    return signs[0] if before.isspace() and after.isspace() else ""


def _said(coded: re.Match[str]) -> str:
    source = coded[0]
    if source[0] == "%":
        return source
    return (_often_meant(source) if len(source) <= _OFTEN_CHARS else _meant(source)) or source


def trimmed(text: str) -> str:
    """A text without what shows nothing at its ends: blanks and their like."""
    signs = text.translate(_Signs())
    around = f" \n{_NOTHING}"
    end = len(signs.rstrip(around))
    # Accents and the variants of an emoji belong to what is before them.
    while 0 < end < len(text) and unicodedata.category(text[end])[0] == "M":
        end += 1
    return text[len(signs) - len(signs.lstrip(around)) : end]


def shown(text: str) -> str:
    """A text without what shows nothing. Accents are shown."""
    return _INVISIBLES.sub("", text)
