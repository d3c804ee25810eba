"""The text of rich messages, which other bots and some clients send, as it is and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from channels.telegram.fields import (
    Fields,
    clean,
    list_or_empty,
    object_or_empty,
    text_or_empty,
    whole_number,
)
from channels.telegram.inbound.markdown import (
    SIGNS,
    code,
    code_block,
    emphasis,
    link,
    mention,
    quotation,
)

_DEEPEST = 20
"""The deepest nesting of blocks and styles that is read."""
_QUOTES = frozenset(["blockquote", "expandable_blockquote", "pullquote"])
_MOST_SIGNS = 6


def rich_text(message: object, *, markdown: bool = False) -> str:
    """Return the text of a rich message, each block on a line; "" if it has none."""
    blocks = object_or_empty(message).get("blocks")
    lines = _RichReader(markdown).lines(blocks, _DEEPEST)
    return clean("\n".join(line for line in lines if line.strip()))


@dataclass(frozen=True, slots=True)
class _RichReader:
    """Reads blocks and styled texts."""

    markdown: bool

    def lines(self, blocks: object, depth: int) -> Iterator[str]:
        if depth <= 0:
            return
        for block in map(object_or_empty, list_or_empty(blocks)):
            lines = self._block(block, depth)
            if self.markdown and text_or_empty(block.get("type")) in _QUOTES:
                yield quotation("\n".join(line for line in lines if line.strip()))
            else:
                yield from lines

    def inline(self, text: object, depth: int) -> str:
        """Return a styled text: a string, an object with a text inside, or a list of those."""
        if isinstance(text, str):
            return text
        if depth <= 0:
            return ""
        if isinstance(text, list):
            return "".join(self.inline(part, depth - 1) for part in text)
        fields = object_or_empty(text)
        if "button" in fields:
            return self._button(fields["button"], depth - 1)
        for key in ("text", "alternative_text", "expression"):
            if key in fields:
                words = self.inline(fields[key], depth - 1)
                return self._styled(fields, words, depth) if self.markdown and words else words
        return ""

    def _block(self, block: Fields, depth: int) -> Iterator[str]:
        yield self.inline(block.get("summary"), depth)
        yield self._text(block, depth)
        for row in list_or_empty(block.get("cells")):
            yield self._row(row, depth)
        for item in map(object_or_empty, list_or_empty(block.get("items"))):
            yield self._item(item, depth)
        for button in list_or_empty(block.get("buttons")):
            yield self._button(button, depth)
        yield from self.lines(block.get("blocks"), depth - 1)
        yield self.inline(block.get("caption"), depth)
        yield self.inline(block.get("credit"), depth)

    def _text(self, block: Fields, depth: int) -> str:
        text = self.inline(block.get("text", block.get("expression")), depth)
        if not self.markdown or not text:
            return text
        match block.get("type"):
            case "pre":
                # Styles within code are no signs that the code has.
                plain = _RichReader(markdown=False).inline(block.get("text"), depth)
                return code_block(plain, block.get("language"))
            case "heading":
                level = whole_number(block.get("size")) or 1
                return f"{'#' * min(max(level, 1), _MOST_SIGNS)} {text}"
            case _:
                return text

    def _row(self, row: object, depth: int) -> str:
        cells = map(object_or_empty, list_or_empty(row))
        return " | ".join(self.inline(cell.get("text"), depth) for cell in cells)

    def _item(self, item: Fields, depth: int) -> str:
        content = "\n".join(line for line in self.lines(item.get("blocks"), depth - 1) if line)
        return f"{self.inline(item.get('label'), depth)} {content}".strip()

    def _button(self, button: object, depth: int) -> str:
        fields = object_or_empty(button)
        label = self.inline(fields.get("text"), depth)
        return link(label, fields.get("url")) if self.markdown else label

    def _styled(self, fields: Fields, words: str, depth: int) -> str:
        match fields.get("type"):
            case "url":
                return link(words, fields.get("url"))
            case "text_mention":
                return mention(words, fields.get("user"))
            case "code":
                return code(_RichReader(markdown=False).inline(fields.get("text"), depth - 1))
            case str(kind) if kind in SIGNS:
                return emphasis(words, SIGNS[kind])
            case _:
                return words
