"""Converts Markdown replies to Telegram's formatting (SPEC CHAN-3)."""

from __future__ import annotations

import re

from channels.telegram.client import TEXT_LIMIT
from channels.telegram.formatting.cleaning import cleaned
from channels.telegram.formatting.markup import PLAIN, TextRun, to_html, to_text
from channels.telegram.formatting.packing import pack
from channels.telegram.formatting.reader import read_blocks
from goclaw_py.core.text import is_blank, split_text

_SIGNS = re.compile(
    r"[*_`~\[<&|\\]"
    r"|^[ \t]*(?:[>#+=-]|\d{1,9}[.)])"
    r"|^(?: {4}| {0,3}\t)",
    re.MULTILINE,
)
"""Matches texts that may be more than plain Markdown paragraphs."""


def render(markdown: str, limit: int = TEXT_LIMIT) -> list[str]:
    """Convert Markdown to parts for ``parse_mode = HTML``.

    Each part is complete, has at most ``limit`` (≥ 2) visible UTF-16 units and no more formatting
    than the server keeps, and is not blank. Any text is accepted; one that is too long or nested
    too deep is shown as it is.

    Source: SPEC CHAN-3.
    """
    text = cleaned(markdown)
    blocks = read_blocks(text) if _SIGNS.search(text) else None
    parts = None if blocks is None else [to_html(part) for part in pack(blocks, limit)]
    if parts or (parts is not None and not any(c.isalnum() and not is_blank(c) for c in text)):
        return parts
    # Some Markdown has words and shows none: in the info line of a fence, in the address of a link
    # that is nowhere. People would wait for an answer that never comes.
    return [to_html([TextRun(part, PLAIN)]) for part in split_text(text, limit)]


def plain(html: str) -> str:
    """Convert a part of ``render`` to the visible text.

    For a server that refuses the markup. Link addresses follow in brackets, unless the text is then
    too long.
    """
    return to_text(html, TEXT_LIMIT)
