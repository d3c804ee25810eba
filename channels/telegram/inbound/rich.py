"""The plain text of rich messages, which other bots and some clients send."""

from __future__ import annotations

from collections.abc import Iterator

from channels.telegram.fields import Fields, clean, list_or_empty, object_or_empty

_DEEPEST = 20
"""The deepest nesting of blocks and styles that is read."""


def rich_text(message: object) -> str:
    """Return the text of a rich message, each block on a line; "" if it has none."""
    blocks = object_or_empty(message).get("blocks")
    return clean("\n".join(line for line in _lines(blocks, _DEEPEST) if line.strip()))


def _lines(blocks: object, depth: int) -> Iterator[str]:
    if depth <= 0:
        return
    for block in map(object_or_empty, list_or_empty(blocks)):
        yield _inline(block.get("summary"), depth)
        yield _inline(block.get("text", block.get("expression")), depth)
        for row in list_or_empty(block.get("cells")):
            yield _row(row, depth)
        for item in map(object_or_empty, list_or_empty(block.get("items"))):
            yield _item(item, depth)
        yield from _lines(block.get("blocks"), depth - 1)
        yield _inline(block.get("caption"), depth)
        yield _inline(block.get("credit"), depth)


def _row(row: object, depth: int) -> str:
    cells = map(object_or_empty, list_or_empty(row))
    return " | ".join(_inline(cell.get("text"), depth) for cell in cells)


def _item(item: Fields, depth: int) -> str:
    content = "\n".join(line for line in _lines(item.get("blocks"), depth - 1) if line)
    return f"{_inline(item.get('label'), depth)} {content}".strip()


def _inline(text: object, depth: int) -> str:
    """Return a styled text: a string, an object with a text inside, or a list of those."""
    if isinstance(text, str):
        return text
    if depth <= 0:
        return ""
    if isinstance(text, list):
        return "".join(_inline(part, depth - 1) for part in text)
    fields = object_or_empty(text)
    for key in ("text", "alternative_text", "expression"):
        if key in fields:
            return _inline(fields[key], depth - 1)
    return ""
