"""Parses Markdown with markdown-it, for all channels.

CommonMark with tables and strikethrough, with rules of its own for chats: signs that mean
themselves stay (``literals``, ``emphasis``, ``blocks``), and a few HTML tags are markup
(``html_tags``). markdown-it is linear in the length of a text, but each level of nesting multiplies
its work and text below its limit is lost, so deeply nested texts are not parsed.

The rules of SPEC CHAN-3:

Markdown → Telegram HTML; on a parse error the same text plain. One reader serves all channels.

- **Signs.** A sign is markup only where it can mean nothing else; in doubt it is shown. Addresses,
  paths, globs, patterns, formulas, cron expressions, names with underscores and calls (`a[i](x)`)
  stay as written, in lists, tables, quotes and emphasis too. A backslash escapes only a sign that
  would be markup there. A run of marks is markup as a whole or not at all (`**kwargs` and `2*` are
  no pair). Emphasis opens where a word may begin and closes where one may end, also beside
  full-width signs, in scripts without blanks, and behind a label (`**Hinweis:**Text`). A sign at
  the beginning of a line means itself if it can: `>=5`, `>>> f()`, a bullet, `>` or `#` directly
  behind the mark of an item (`- + adds`), a plus that is not in a list of an item, the next line
  of a sum; `---` below a line separates. At most eight signs alone are shown as they are. The
  definition of a link is shown unless the text uses it. Outside of markup the visible text is the
  written text. The work is proportional to the length.
- **Fences.** One behind words (`` Run:```sh ``) begins code if the next fence closes it. Of an
  empty block the line of its fence is shown.
- **Bare addresses** of the web are links in the web chat, as other channels make them.
- **Images** are links with their words; a link without words shows its address.
- **Tables.** A row loses no cell: bars in code and in `||` separate nothing if the row has too
  many, and what is still too much stands in the last column. A line without a bar ends the table.
- **Lists.** Numbers stay as written, with their zeros and brackets; one number that all items have
  counts on.
- **HTML.** `<br>` is a line break; `b strong i em u s del code kbd a sub sup h1` to `h6 summary`
  and their like are what Markdown has for them, if they are closed in their paragraph, not empty
  and not crossed, and stand around words without blanks or on lines of their own; `details`,
  `span` and `p` show only what is in them. What a sentence names (`the <br> tag`, `use <b> and
  </b>`), what is between other tags, as in XML, and all other HTML is text.
- **Length.** A text over 32,000 characters is read in pieces, which end between blocks; a list
  goes on over them; over 200,000, or if a block is too long, it is shown as it is. A text of
  invisible signs only (U+2800 and U+3164 too) is an empty answer.
- **Parts.** Split at 4032 UTF-16 units (Telegram's limit of 4096 less the line of IO-5) without
  breaking a surrogate pair, entity, code fence or table; what Telegram finds too long all the same
  goes in smaller pieces, without markup. Only the first part is a reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from markdown_it import MarkdownIt
from markdown_it.token import Token

from goclaw_py.core.markdown import blocks
from goclaw_py.core.markdown.emphasis import emphasis
from goclaw_py.core.markdown.html_tags import html_tag
from goclaw_py.core.markdown.links import autolink, link, with_words
from goclaw_py.core.markdown.literals import addresses, backslash, text
from goclaw_py.core.markdown.pairs import pair_runs
from goclaw_py.core.markdown.tables import table

__all__ = ["Token", "addresses", "make_parser", "parse"]

_LONGEST = 32_000
"""The longest text to parse at once; a longer one is parsed in pieces."""
_LONGEST_OF_ALL = 200_000
"""A longer one would block the event loop for seconds, and is shown as it is."""
_MOST_CELLS = 20_000
"""The most table cells; markdown-it adds those that a row lacks."""
_DEEPEST = 16
"""The deepest nesting; a list takes two levels."""
_OF_DELIMITERS = "-|: \t>*+0123456789.)"
"""The characters of a table's delimiter row, in lists and quotes too."""
_ONLY_SIGNS = re.compile(r"\s*[!-/:-@\[-`{-~]{1,8}\s*")
"""An answer such as ``#`` or ``>``: it means the sign."""
_ENDS_PARAGRAPH = ["paragraph", "reference", "blockquote"]


def make_parser(accepts: Callable[[str], bool]) -> MarkdownIt:
    """Create a parser. What links to an address that it does not accept stays text."""
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST})
    parser.enable("table").disable(["html_block", "html_inline"])
    block, inline = parser.block.ruler, parser.inline.ruler
    block.at("table", table, {"alt": ["paragraph", "reference"]})
    block.at("hr", blocks.horizontal_rule, {"alt": [*_ENDS_PARAGRAPH, "list"]})
    block.at("list", blocks.items, {"alt": _ENDS_PARAGRAPH})
    block.at("heading", blocks.titled, {"alt": _ENDS_PARAGRAPH})
    block.at("blockquote", blocks.quoted, {"alt": [*_ENDS_PARAGRAPH, "list"]})
    block.at("lheading", blocks.underlined)
    block.at("reference", blocks.definition)
    inline.at("text", text)
    inline.at("escape", backslash)
    inline.at("emphasis", emphasis)
    inline.at("link", link)
    inline.at("autolink", autolink)
    inline.before("autolink", "html_tag", html_tag)
    parser.inline.ruler2.at("balance_pairs", pair_runs)
    parser.inline.ruler2.enable("strikethrough")
    parser.validateLink = accepts  # type: ignore[assignment,method-assign]  # made for that
    return parser


def parse(parser: MarkdownIt, markdown: str) -> list[Token] | None:
    """Parse a text without lone surrogates and control characters.

    None if it is too long, nested too deep, or only a few signs: it is then shown as it is.
    ``info`` of an item of an ordered list is its number as people see it.
    """
    if _ONLY_SIGNS.fullmatch(markdown):
        return None
    if len(markdown) > _LONGEST_OF_ALL:
        return None
    if "```" in markdown:
        markdown = blocks.with_fences_on_lines(markdown)
    is_short = len(markdown) <= _LONGEST
    tokens: list[Token] = []
    for piece in (markdown,) if is_short else blocks.pieces(markdown, _LONGEST):
        if len(piece) > _LONGEST or (parsed := _parse(parser, piece)) is None:
            return None
        if tokens and parsed and blocks.is_one_list(tokens[-1], parsed[0]):
            del tokens[-1], parsed[0]
        tokens += parsed
    if any(token.tag == "ol" for token in tokens):
        blocks.number_items(tokens)
    return tokens


def _parse(parser: MarkdownIt, markdown: str) -> list[Token] | None:
    if _cells(markdown) > _MOST_CELLS:
        return None
    tokens = parser.parse(markdown)
    for token in tokens:
        if token.nesting > 0:
            if token.level >= _DEEPEST - 1:
                return None
        elif token.children and "[" in token.content:
            token.children = with_words(token.children)
        elif token.type == "fence":
            blocks.show_info(token)
    return tokens


def _cells(markdown: str) -> int:
    """Return an upper bound of the table cells in a text."""
    lines = markdown.split("\n")
    columns = [0 if line.strip(_OF_DELIMITERS) else line.count("|") + 1 for line in lines]
    if len(lines) * max(columns) <= _MOST_CELLS:
        return 0
    total = widest = 0
    for line, width in zip(lines, columns, strict=True):
        # A blank line ends a table, in a quote too.
        widest = max(widest, width) if line.strip("> \t") else 0
        total += widest
    return total
