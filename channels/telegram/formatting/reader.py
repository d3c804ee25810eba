"""Parses Markdown into blocks."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from channels.telegram.formatting.cleaning import cleaned
from channels.telegram.formatting.markup import (
    BOLD,
    CODE,
    ITALIC,
    PLAIN,
    QUOTE,
    STRIKE,
    Format,
    Tag,
    TextRun,
    link,
    nested,
    pre,
)
from channels.telegram.formatting.packing import NO_GAP, Block, Flow, Verbatim
from channels.telegram.formatting.tables import Align, TextTable, table_blocks
from goclaw_py.core.markdown import Token, make_parser, parse
from goclaw_py.core.text import is_blank

_log = logging.getLogger("channels.telegram")

_TAB_COLUMNS = 4
"""The server turns a tab into a single blank."""

_BULLET = "• "
_INDENT = "    "
_INNER_QUOTE = "> "
_DEEPEST_MARKED = 4
"""The deepest quote that gets marks: deeper marks would be most of the text."""
_RULE = "———"
_TASK = re.compile(r"\[([ xX])\]\s")
_STYLES = {"strong": BOLD, "em": ITALIC, "s": STRIKE}


def read_blocks(markdown: str) -> list[Block] | None:
    """Parse a text without lone surrogates and control characters.

    None if it is too long, nested too deep, or markdown-it fails: it is then shown as it is.
    """
    try:
        tokens = parse(_parser, markdown)
    except Exception:  # somebody else's code; whatever the text is, it has to reach the chat
        _log.exception("markdown_unreadable")
        return None
    if tokens is None:
        return None
    return _Reader(tokens, decoded="&" in markdown or "%" in markdown).read()


def _any_address(url: str) -> bool:  # noqa: ARG001  the library's signature
    """Accept any address: ``markup.link`` decides what becomes a link, others stay readable."""
    return True


_parser = make_parser(_any_address)


@dataclass(slots=True)
class _Container:
    """The document, a quote, a list or an item.

    Args:
        gap: The separator of its children.
        indent: The beginning of each of its lines.
        format: ``QUOTE`` or nothing.
        filled: Whether something of it was written.
    """

    gap: str
    indent: str
    format: Format
    filled: bool = False


class _Reader:
    """Converts the tokens of a text, without recursion."""

    def __init__(self, tokens: Sequence[Token], *, decoded: bool) -> None:
        """``decoded``: the text may contain encoded characters that cannot be sent."""
        self._tokens = tokens
        self._decoded = decoded
        self._at = 0
        self._blocks: list[Block] = []
        self._containers = [_Container("\n\n", "", PLAIN)]
        self._gap = NO_GAP
        self._marks = ""
        """The beginning of the next line in place of an indentation: marks of items."""

    def read(self) -> list[Block]:
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if handle := _HANDLERS.get(token.type):
                handle(self, token)
            self._at += 1
        return self._blocks

    # Containers

    def open_list(self, token: Token) -> None:
        outer = self._begin()
        gap = "\n" if self._is_tight(token) else "\n\n"
        self._containers.append(_Container(gap, outer.indent, outer.format))

    def open_item(self, token: Token) -> None:
        outer = self._begin()
        mark = f"{token.info} " if token.info else _BULLET
        self._marks = (self._marks or outer.indent) + mark
        inner = _Container(outer.gap, outer.indent + _INDENT, outer.format)
        self._containers.append(inner)

    def close_item(self, _token: Token) -> None:
        self._add_marks()
        self._containers.pop()

    def open_quote(self, _token: Token) -> None:
        outer = self._begin()
        indent = ""
        if outer.format:
            # Telegram has no quotes in quotes.
            mark = _INNER_QUOTE if len(self._containers) <= _DEEPEST_MARKED else ""
            indent = outer.indent + mark
            self._marks = self._marks and self._marks + mark
        self._containers.append(_Container("\n\n", indent, (QUOTE,)))

    def close(self, _token: Token) -> None:
        self._containers.pop()

    def _begin(self) -> _Container:
        """Begin a child of the innermost container, with a separator before it."""
        container = self._containers[-1]
        if container.filled:
            self._gap = TextRun(container.gap, container.format)
        return container

    def _is_tight(self, opening: Token) -> bool:
        """Return whether a list has no blank lines between its items."""
        for token in self._tokens[self._at + 1 :]:
            if token.level <= opening.level:
                break
            if token.type == "paragraph_open" and token.level == opening.level + 2:
                return token.hidden
        return True

    # Blocks

    def add_text(self, token: Token) -> None:
        container = self._begin()
        opening = self._tokens[self._at - 1]
        runs = self._inline(token, container.format, container.indent)
        if opening.type == "heading_open":
            self._add([TextRun(text, nested(form, BOLD)) for text, form in runs], heading=True)
            return
        task = _TASK.match(runs[0].text) if self._marks and runs else None
        if task:
            box = "☐ " if task[1] == " " else "☑ "
            self._marks = self._marks.removesuffix(_BULLET) + box
            runs[0] = runs[0]._replace(text=runs[0].text[task.end() :])
        self._add(runs)

    def add_code(self, token: Token) -> None:
        container = self._begin()
        text = self._sendable(token.content).expandtabs(_TAB_COLUMNS)
        lines = text.rstrip().split("\n")
        while lines and not lines[0].strip():
            del lines[0]
        if lines:
            form = nested(container.format, pre(token.info))
            self._add_marks()
            self._append(Verbatim("\n".join(lines), form, self._gap))

    def add_rule(self, _token: Token) -> None:
        self._add([TextRun(_RULE, self._begin().format)])

    def add_table(self, _token: Token) -> None:
        container = self._begin()
        aligns: list[Align] = []
        rows: list[list[list[TextRun]]] = []
        while (token := self._tokens[self._at]).type != "table_close":
            match token.type:
                case "tr_open":
                    rows.append([])
                case "th_open":
                    aligns.append(_align(token))
                case "inline":
                    rows[-1].append(self._inline(token, container.format, ""))
            self._at += 1
        self._add_marks()
        for block in table_blocks(TextTable(aligns, rows), self._gap, container.format):
            self._append(block)

    def _add_marks(self) -> None:
        """Write the marks of items on their own line, above a block that cannot contain them."""
        if self._marks:
            form = self._containers[-1].format
            self._append(Flow([TextRun(self._marks.rstrip(), form)], self._gap))
            self._gap = TextRun("\n", form)

    def _add(self, runs: list[TextRun], *, heading: bool = False) -> None:
        """Add lines, after the marks or the indentation."""
        container = self._containers[-1]
        if before := self._marks or container.indent:
            runs.insert(0, TextRun(before, container.format))
        if not is_blank("".join(run.text for run in runs)):
            self._append(Flow(runs, self._gap, heading))

    def _append(self, block: Block) -> None:
        self._blocks.append(block)
        self._gap = NO_GAP
        self._marks = ""
        for container in self._containers:
            container.filled = True

    def _inline(self, token: Token, base: Format, indent: str) -> list[TextRun]:
        words = _Words(base, "\n" + indent, self._sendable)
        words.add(token.children or ())
        return words.runs

    def _sendable(self, text: str) -> str:
        return cleaned(text) if self._decoded else text


_HANDLERS: dict[str, Callable[[_Reader, Token], None]] = {
    "bullet_list_open": _Reader.open_list,
    "ordered_list_open": _Reader.open_list,
    "list_item_open": _Reader.open_item,
    "blockquote_open": _Reader.open_quote,
    "bullet_list_close": _Reader.close,
    "ordered_list_close": _Reader.close,
    "list_item_close": _Reader.close_item,
    "blockquote_close": _Reader.close,
    "inline": _Reader.add_text,
    "fence": _Reader.add_code,
    "code_block": _Reader.add_code,
    "hr": _Reader.add_rule,
    "table_open": _Reader.add_table,
}


def _align(token: Token) -> Align:
    return Align(str(token.attrs.get("style", "text-align:left")).rpartition(":")[2])


class _Words:
    """Converts the tokens of a paragraph to runs."""

    def __init__(self, base: Format, line_end: str, sendable: Callable[[str], str]) -> None:
        self.runs: list[TextRun] = []
        self._formats = [base]
        self._links: list[_Link] = []
        self._line_end = line_end
        self._sendable = sendable

    def add(self, tokens: Iterable[Token]) -> None:
        for token in tokens:
            match token.type:
                case "text":
                    self._add(token.content, self._formats[-1])
                case "softbreak" | "hardbreak":
                    self.runs.append(TextRun(self._line_end, self._formats[-1]))
                case "code_inline":
                    self._add(token.content, nested(self._formats[-1], CODE))
                case "link_open":
                    self._open_link(token)
                case "link_close":
                    self._close_link()
                case _ if token.nesting > 0:
                    self._formats.append(nested(self._formats[-1], _STYLES[token.tag]))
                case _:
                    self._formats.pop()

    def _add(self, text: str, form: Format) -> None:
        if text:
            self.runs.append(TextRun(self._sendable(text), form))

    def _open_link(self, token: Token) -> None:
        address = str(token.attrs["href"])
        tag = link(address)
        outer = self._formats[-1]
        self._formats.append(nested(outer, tag) if tag else outer)
        self._links.append(_Link(address, tag, len(self.runs), bare=token.markup == "autolink"))

    def _close_link(self) -> None:
        """Keep an address that Telegram would not link as text."""
        found = self._links.pop()
        said = "".join(run.text for run in self.runs[found.begin :])
        form = self._formats.pop()
        address = found.address.removeprefix("mailto:")
        if found.tag:
            return
        if not found.bare:
            self._add("" if address == said else f" ({address})", form)
        elif address == found.address:
            # Most often no address at all, but code such as <std::vector>.
            self.runs.insert(found.begin, TextRun("<", form))
            self._add(">", form)


@dataclass(frozen=True, slots=True)
class _Link:
    """An open link: its tag, if Telegram accepts it, and the number of its first run."""

    address: str
    tag: Tag | None
    begin: int
    bare: bool
