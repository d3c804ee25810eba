"""Parses Markdown with markdown-it.

CommonMark with tables and strikethrough. HTML is not markup here: it stays visible. markdown-it is
linear in the length of a text, but each level of nesting multiplies its work and text below its
limit is lost, so deeply nested texts are not parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline, emphasis
from markdown_it.token import Token

__all__ = ["Token", "make_parser", "parse"]

_LONGEST = 32_000
"""The longest text to parse; a longer one may block the event loop for seconds."""
_MOST_CELLS = 20_000
"""The most table cells; markdown-it adds those that a row lacks."""
_DEEPEST = 16
"""The deepest nesting; a list takes two levels."""
_OF_DELIMITERS = "-|: \t>*+0123456789.)"
"""The characters of a table's delimiter row, in lists and quotes too."""
_ASTERISKS = re.compile(r"\*+")
_WORD = re.compile(r"[^\W_\u2e80-\U0003ffff]")
"""A letter or digit of a script with blanks between words."""


def make_parser(accepts: Callable[[str], bool]) -> MarkdownIt:
    """Create a parser. What links to an address that it does not accept stays text."""
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST})
    parser.enable(["table", "strikethrough"]).disable(["html_block", "html_inline"])
    parser.inline.ruler.at("emphasis", _emphasis)
    parser.validateLink = accepts  # type: ignore[assignment,method-assign]  # made for that
    return parser


def parse(parser: MarkdownIt, markdown: str) -> list[Token] | None:
    """Parse a text without lone surrogates and control characters.

    None if it is too long or nested too deep: it is then shown as it is.
    """
    if len(markdown) > _LONGEST or _cells(markdown) > _MOST_CELLS:
        return None
    tokens = parser.parse(markdown)
    if any(token.nesting > 0 and token.level >= _DEEPEST - 1 for token in tokens):
        return None
    return tokens


def _cells(markdown: str) -> int:
    """Return an upper bound of the table cells in a text."""
    lines = markdown.split("\n")
    columns = (line.count("|") + 1 for line in lines if not line.strip(_OF_DELIMITERS))
    return len(lines) * max(columns, default=0)


def _emphasis(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  the library's signature
    """Parse ``*`` and ``_``; an asterisk within a word is only itself.

    So ``2*3*4`` and ``x**2`` stay. Scripts without blanks between words need it for emphasis.
    """
    found = _ASTERISKS.match(state.src, state.pos)
    if found is None or silent:
        return emphasis.tokenize(state, silent)
    before, after = state.src[state.pos - 1 : state.pos], state.src[found.end() : found.end() + 1]
    is_inside = _WORD.match(before) and _WORD.match(after)
    if not is_inside or (len(found[0]) > 1 and not after.isdigit()):
        return emphasis.tokenize(state, silent)
    state.pending += found[0]
    state.pos = found.end()
    return True
