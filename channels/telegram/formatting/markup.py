"""Styled text, and its form in Telegram's HTML.

The server allows only some nesting: code contains nothing, a link contains no link and no code, a
quote contains no quote. ``nested`` creates only such formats, and tags are always in the same
order, so that the tags between any runs are balanced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from goclaw_py.core.text import utf16_len

MARKUP_BUDGET = 9000
"""The cost of the tags in a part.

The server keeps 100 entities and refuses more than 9500 bytes of them.
"""
_LEAST_COST = MARKUP_BUDGET // 100
_LINK_OVERHEAD = 24
_LONGEST_ADDRESS = 2048
_ADDRESS = re.compile(r"(?:https?://|tg:(?://)?)[^\s/]", re.IGNORECASE)
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,32}")


@dataclass(frozen=True, slots=True, eq=False)
class Tag:
    """A formatting entity. ``rank`` is its place in the order of nesting, outermost first.

    Two links are two tags, even to the same address.
    """

    opening: str
    closing: str
    rank: int
    cost: int = _LEAST_COST


Format = tuple[Tag, ...]
"""The tags around a text, outermost first."""

PLAIN: Format = ()
QUOTE = Tag("<blockquote>", "</blockquote>", 0)
_LINK_RANK = 1
BOLD = Tag("<b>", "</b>", 2)
ITALIC = Tag("<i>", "</i>", 3)
STRIKE = Tag("<s>", "</s>", 4)
CODE = Tag("<code>", "</code>", 5)
_PRE = Tag("<pre>", "</pre>", 5)


class TextRun(NamedTuple):
    """A text in one format."""

    text: str
    format: Format


def link(address: str) -> Tag | None:
    """Return the tag of a link, or None if Telegram would not link this address.

    The server parses ``mailto:`` as a host name, and finds mail addresses by itself.
    """
    if len(address) > _LONGEST_ADDRESS or not _ADDRESS.match(address):
        return None
    cost = max(_LEAST_COST, len(address.encode()) + _LINK_OVERHEAD)
    return Tag(f'<a href="{_escaped(address).replace(chr(34), "&quot;")}">', "</a>", 1, cost)


def pre(info: str) -> Tag:
    """Return the tag of a code block; ``info`` is the text after its fence."""
    language = info.split(maxsplit=1)[0] if info.strip() else ""
    if not _LANGUAGE.fullmatch(language):
        return _PRE
    return Tag(f'<pre><code class="language-{language}">', "</code></pre>", _PRE.rank)


def nested(outer: Format, tag: Tag) -> Format:
    """Return ``outer`` with ``tag`` inside, as far as Telegram allows it."""
    ranks = [other.rank for other in outer]
    if tag.rank in ranks or _PRE.rank in ranks:
        return outer
    if tag.rank == _PRE.rank:
        if _LINK_RANK in ranks:
            return outer
        return (*(other for other in outer if other is QUOTE), tag)
    return tuple(sorted((*outer, tag), key=lambda each: each.rank))


def unstyled(form: Format) -> Format:
    """Return only the tags with a meaning: quotes and links."""
    return tuple(tag for tag in form if tag.rank <= _LINK_RANK)


def cost(before: Format, after: Format) -> int:
    """Return the cost of the tags that are opened between texts in these formats."""
    return sum(tag.cost for tag in after[_shared(before, after) :])


def to_html(runs: Iterable[TextRun]) -> str:
    """Return a part as HTML; every tag that it opens is closed."""
    pieces = []
    current = PLAIN
    for text, form in runs:
        if not text:
            continue
        if form != current:
            kept = _shared(current, form)
            pieces += [tag.closing for tag in reversed(current[kept:])]
            pieces += [tag.opening for tag in form[kept:]]
            current = form
        pieces.append(_escaped(text))
    pieces += [tag.closing for tag in reversed(current)]
    return "".join(pieces)


def _shared(before: Sequence[Tag], after: Sequence[Tag]) -> int:
    """Return how many of the outer tags stay open."""
    count = 0
    for one, other in zip(before, after, strict=False):
        if one is not other:
            break
        count += 1
    return count


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_TAG = re.compile(r"<(/?)([a-z]+)([^>]*)>")
_HREF = re.compile(r'href="([^"]*)"')


def to_text(html: str, limit: int) -> str:
    """Return the visible text of a part of ``to_html``.

    Link addresses follow in brackets, unless the text would then exceed ``limit`` UTF-16 units.
    """
    addressed = _unescaped(_TAG.sub(_Addresses(html), html))
    return addressed if utf16_len(addressed) <= limit else _unescaped(_TAG.sub("", html))


class _Addresses:
    """Removes tags, and replaces the end of a link by its address."""

    def __init__(self, html: str) -> None:
        self._html = html
        self._address = ""
        self._begin = 0

    def __call__(self, tag: re.Match[str]) -> str:
        closing, name, attributes = tag.groups()
        if name != "a":
            return ""
        if not closing:
            found = _HREF.search(attributes)
            self._address = found[1].replace("&quot;", '"') if found else ""
            self._begin = tag.end()
            return ""
        said = _TAG.sub("", self._html[self._begin : tag.start()])
        return "" if self._address in {"", said} else f" ({self._address})"


def _unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
