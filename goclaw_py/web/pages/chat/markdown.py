"""Markdown as HTML for pages: what an agent has said.

HTML in the text is escaped, and only addresses with a safe scheme become links (SPEC SEC-1).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from markupsafe import Markup

from goclaw_py.core.markdown import Token, addresses, make_parser, parse
from goclaw_py.web.pages.chat.highlighting import highlighted

log = logging.getLogger(__name__)

_MOST_CODE: Final = 6_000
"""Characters of code to highlight in a text: a lexer may need time in proportion to the square."""

_FIRST_LEVEL: Final = 3
"""Of the headings in a text: pages have two levels above it."""
_DIRECTED: Final = (
    *("paragraph_open", "heading_open", "blockquote_open"),
    *("bullet_list_open", "ordered_list_open"),
)
"""What is written from the right if its first letter is: by itself, also beside other texts."""
_TASK: Final = re.compile(r"\[([ xX])\]\s")

_SCHEMES: Final = ("http:", "https:", "mailto:")
_TABLE: Final = '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>'


@lru_cache(maxsize=256)
def html_of(markdown: str) -> Markup:
    """Return a text as HTML; one that cannot be parsed, or shows nothing, is shown as it is.

    Live parts are made again and again with the same texts.
    """
    try:
        tokens = parse(_parser, markdown)
    except Exception:  # the library may raise anything
        log.exception("markdown_unreadable")
        tokens = None
    html = None if tokens is None else _render(tokens)
    return html if html and html.striptags() else Markup("<pre>{}</pre>").format(markdown)


def _render(tokens: list[Token]) -> Markup:
    left = _MOST_CODE
    numbers: list[int] = []
    above: list[str] = []
    for place, token in enumerate(tokens):
        if token.type == "fence":
            left -= len(token.content)
            if left < 0:
                token.info = ""
        # The policy of the pages allows no styles in elements. A column has its alignment as one.
        if style := token.attrs.pop("style", None):
            token.attrSet("class", str(style).removeprefix("text-align:"))
        _number(token, numbers)
        if token.type in ("heading_open", "heading_close"):
            _nest(token, above)
        if token.level == 0 and token.type in _DIRECTED:
            token.attrSet("dir", "auto")
        if place > 1 and tokens[place - 2].type == "list_item_open":
            _tick(tokens[place - 2], token.children or [])
        token.children = list(_with_links(token.children or ()))
        for inner in token.children:
            if inner.type == "link_open":
                inner.attrSet("rel", "noopener noreferrer")
                inner.attrSet("target", "_blank")
    html = _parser.renderer.render(tokens, _parser.options, {})
    # Pages keep line feeds, so a line break must not have one too.
    html = html.replace("<br />\n", "<br />")
    # Text and attributes are escaped, so these are elements. A wide table scrolls by itself.
    html = html.replace("<table>", _TABLE).replace("</table>", "</table></div>").strip()
    return Markup(html)  # noqa: S704


def _nest(heading: Token, above: list[str]) -> None:
    """Give a heading the level below those it stands under: none is left out, as in the page."""
    if heading.nesting > 0:
        while above and above[-1] >= heading.tag:
            above.pop()
        above.append(heading.tag)
    heading.tag = f"h{min(6, _FIRST_LEVEL - 1 + len(above))}"


def _tick(item: Token, words: list[Token]) -> None:
    """Show the box of a task."""
    task = _TASK.match(words[0].content) if words and words[0].type == "text" else None
    if task:
        box = "☐ " if task[1] == " " else "☑ "
        words[0].content = box + words[0].content[task.end() :]
        if not item.info:
            item.attrSet("class", "task")


def _with_links(tokens: Iterable[Token]) -> Iterator[Token]:
    """Yield the tokens of a paragraph, each address of the web as a link."""
    depth = 0
    for token in tokens:
        depth += token.nesting if token.tag == "a" else 0
        if token.type != "text" or depth:
            yield token
            continue
        words, last = token.content, 0
        for begin, end in addresses(words):
            address = words[begin:end]
            yield Token("text", "", 0, content=words[last:begin])
            yield Token("link_open", "a", 1, {"href": _parser.normalizeLink(address)})
            yield Token("text", "", 0, content=address)
            yield Token("link_close", "a", -1)
            last = end
        yield Token("text", "", 0, content=words[last:])


def _number(token: Token, numbers: list[int]) -> None:
    """Give an item its number if HTML would count another one; ``numbers`` are the next ones."""
    match token.type:
        case "ordered_list_open":
            numbers.append(int(token.attrs.get("start", 1)))
        case "ordered_list_close":
            numbers.pop()
        case "list_item_open" if token.info:
            number = int(token.info[:-1])
            if token.info != f"{number}.":
                # HTML has neither zeros nor brackets: the style sheet writes the number.
                token.attrs["data-number"] = token.info
            elif number != numbers[-1]:
                token.attrs["value"] = number
            numbers[-1] = number + 1


def _is_safe(url: str) -> bool:
    return url.lower().startswith(_SCHEMES)


_parser = make_parser(_is_safe)
_parser.options["highlight"] = highlighted
