"""The formatting of people's texts as Markdown (SPEC CHAN-6).

The words stay as they were written: signs are only added, so that the agent reads where a link
leads, and what is code, a quote or a spoiler.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Final

from channels.telegram.fields import Fields, clean, list_or_empty, object_or_empty, whole_number
from goclaw_py.core.text import is_blank
from goclaw_py.core.values import value

SIGNS: Final[Mapping[str, str]] = {
    "bold": "**",
    "italic": "*",
    "strikethrough": "~~",
    "spoiler": "||",
}
"""Markdown has no sign for underlined text."""
_KINDS: Final = (
    "blockquote", "expandable_blockquote", "pre", "text_link", "text_mention", *SIGNS, "code",
)  # fmt: skip
"""What is around what if two of them have the same extent, the outermost first."""
_BLOCKS: Final = frozenset(["blockquote", "expandable_blockquote", "pre"])
_LITERAL: Final = frozenset(["pre", "code"])

_LANGUAGE: Final = re.compile(r"[\w+#.-]{1,40}")
_BACKTICKS: Final = re.compile("`+")
_NOT_IN_ADDRESSES: Final = re.compile(r"[\s\x00-\x1f\x7f<>]")
_BRACKET: Final = re.compile(r"[\[\]]")


@value(frozen=True, slots=True)
class _Span:
    """Formatting from ``begin`` to ``end`` in code points; ``facts`` are those of its entity."""

    begin: int
    end: int
    kind: str
    facts: Fields


def marked(text: str, entities: object, begin: int = 0, end: int | None = None) -> str:
    """Return a part of a text, as Markdown, with the entities of the whole text.

    Entities with offsets outside of the text are limited to it. Takes linear time.
    """
    end = len(text) if end is None else end
    spans = sorted(
        _spans(text, list_or_empty(entities)),
        key=lambda span: (span.begin, -span.end, _KINDS.index(span.kind)),
    )
    return _inside(text, begin, end, spans[::-1], frozenset()) if spans else text[begin:end]


def link(label: str, url: object) -> str:
    """Return a link; the label alone if it is the address itself, or there is none."""
    words = label.strip()
    address = clean(url).strip() if isinstance(url, str) else ""
    named = words.rstrip("/")
    if not address or any(address.rstrip("/") == scheme + named for scheme in _SCHEMES):
        return label
    address = _NOT_IN_ADDRESSES.sub(_percent, address)
    if not _is_balanced(address, "()"):
        address = address.replace("(", "%28").replace(")", "%29")
    if is_blank(words):
        return f"{label}<{address}>"
    if not _is_balanced(words, "[]"):
        words = _BRACKET.sub(r"\\\g<0>", words)
    return _around(label, f"[{words}]({address})")


_SCHEMES: Final = ("", "https://", "http://", "mailto:")


def mention(label: str, user: object) -> str:
    """Return a mention of a person without a username, in Telegram's way of writing."""
    number = whole_number(object_or_empty(user).get("id"))
    return label if number is None else link(label, f"tg://user?id={number}")


def emphasis(words: str, sign: str) -> str:
    """Return words between signs; blanks at their ends stay outside."""
    return words if is_blank(words) else _around(words, f"{sign}{words.strip()}{sign}")


def code(words: str) -> str:
    """Return code within a line."""
    fence = "`" * (_longest_run(words) + 1)
    space = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{fence}{space}{words}{space}{fence}" if words else ""


def code_block(words: str, language: object) -> str:
    """Return lines of code."""
    fence = "`" * max(3, _longest_run(words) + 1)
    named = isinstance(language, str) and _LANGUAGE.fullmatch(language)
    words = words.removesuffix("\n")
    return f"{fence}{language if named else ''}\n{words}\n{fence}"


def quotation(words: str) -> str:
    """Return lines of a quote."""
    return "\n".join(f"> {line}".rstrip() for line in words.split("\n"))


def _spans(text: str, entities: Iterable[object]) -> Iterator[_Span]:
    """Yield the entities that Markdown can express, with places in code points."""
    starts: list[int] | None = None
    for entity in map(object_or_empty, entities):
        kind = entity.get("type")
        if not isinstance(kind, str) or kind not in _KINDS:
            continue
        offset, length = whole_number(entity.get("offset")), whole_number(entity.get("length"))
        if offset is None or length is None or length <= 0:
            continue
        if starts is None:
            # Where each code point begins, in the UTF-16 units of the server, and where all end.
            units = (1 + (char > "\uffff") for char in text)
            starts = list(accumulate(units, initial=0))
        # One that begins or ends within a character has all of it.
        begin = bisect_right(starts, max(offset, 0)) - 1
        end = min(bisect_left(starts, offset + length), len(text))
        if begin < end:
            yield _Span(begin, end, kind, entity)


def _inside(text: str, begin: int, end: int, spans: list[_Span], around: frozenset[str]) -> str:
    """Return a part of a text; takes the spans that begin in it from the end of ``spans``."""
    parts: list[str] = []
    at = begin
    while spans and spans[-1].begin < end:
        span = spans.pop()
        first, last = max(span.begin, at), min(span.end, end)
        # Nothing is twice the same, which also limits the depth.
        if first >= last or span.kind in around or around & _LITERAL:
            continue
        words = _inside(text, first, last, spans, around | {span.kind})
        parts.append(text[at:first])
        if span.kind in _BLOCKS:
            before, after = text[max(begin, first - 1) : first], text[last : min(last + 2, end)]
            parts += _block(span, words, before, after)
        else:
            parts.append(_inline(span, words))
        at = last
    parts.append(text[at:end])
    return "".join(parts)


def _inline(span: _Span, words: str) -> str:
    match span.kind:
        case "text_link":
            return link(words, span.facts.get("url"))
        case "text_mention":
            return mention(words, span.facts.get("user"))
        case "code":
            return code(words)
        case _:
            return emphasis(words, SIGNS[span.kind])


def _block(span: _Span, words: str, before: str, after: str) -> list[str]:
    """Return a block; ``before`` and ``after`` are the characters next to it, if there are any."""
    if span.kind == "pre":
        block, gap = code_block(words, span.facts.get("language")), 1
    else:
        # Without an empty line, what follows would belong to the quote.
        block, gap = quotation(words.strip("\n")), 2
    missing = gap - (len(after) - len(after.lstrip("\n")))
    return ["\n" if before not in {"", "\n"} else "", block, "\n" * missing if after else ""]


def _around(words: str, shown: str) -> str:
    """Return ``shown`` with the blanks around ``words``."""
    begun = words.lstrip()
    return words[: len(words) - len(begun)] + shown + begun[len(begun.rstrip()) :]


def _longest_run(words: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(words)), default=0)


def _percent(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())


def _is_balanced(text: str, pair: str) -> bool:
    depth = 0
    for char in text:
        depth += (char == pair[0]) - (char == pair[1])
        if depth < 0:
            return False
    return depth == 0
