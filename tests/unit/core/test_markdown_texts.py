# ruff: noqa: RUF001  full-width signs mean themselves here
"""The same text in Telegram, on the page and in the terminal (SPEC CHAN-3, CHAN-9)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from channels.telegram.format import render
from goclaw_py.cli.chats.markdown import formatted
from goclaw_py.core.markdown import make_parser, parse
from goclaw_py.web.pages.chat.markdown import html_of
from tests.botapi import markup
from tests.unit.core.chat_texts import CHAT_TEXTS
from tests.unit.core.markdown_texts import AS_WRITTEN, FRAGMENTS, MARKUP

TEXTS = [text for group in AS_WRITTEN.values() for text in group]
WITHIN = (
    ("{}", "{}"),
    ("Look: {}", "Look:{}"),
    ("- a\n- {}", "•a•{}"),
    ("> {}", "{}"),
    ("**a** {} *b*", "a{}b"),
    ("|a|\n|-|\n|{} |", "a{}"),
)
"""Where a text may be, and what is shown there."""
STYLES = {"strong": "bold", "b": "bold", "em": "italic", "i": "italic", "s": "strikethrough"}


class Page(HTMLParser):
    """What a browser shows: text, numbers of lists, and which words have a style."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.styled: set[tuple[str, str]] = set()
        self._numbers: list[int | None] = []
        self._open: list[tuple[str, int]] = []
        self.feed(str(html))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "br":
            self.text += "\n"
        elif tag in {"ol", "ul"}:
            self._numbers.append(int(given.get("start") or 1) if tag == "ol" else None)
        elif tag == "li":
            number = self._numbers[-1]
            if number is None:
                self.text += "• "
            else:
                number = int(given.get("value") or number)
                self._numbers[-1] = number + 1
                shown = given.get("data-number")
                self.text += f"{shown or f'{number}.'} "
                if shown:
                    self._numbers[-1] = int(shown[:-1]) + 1
        elif tag in {"td", "th"}:
            self.text += " "
        self._open.append((tag, len(self.text)))

    def handle_endtag(self, tag: str) -> None:
        if tag in {"ol", "ul"}:
            self._numbers.pop()
        begin = 0
        while self._open:
            other, begin = self._open.pop()
            if other == tag:
                break
        if tag in STYLES:
            self.styled.add((STYLES[tag], self.text[begin:]))

    def handle_data(self, data: str) -> None:
        self.text += data


def telegram(text: str) -> str:
    return "".join(markup.html(part).text for part in render(text))


def terminal(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", formatted(text, 200))


def signs(text: str) -> str:
    """Return what is visible, without the lines of tables and blanks of a channel."""
    return re.sub(r"[\s─━▌]", "", text)


def test_the_table_is_large() -> None:
    assert len({*TEXTS, *MARKUP}) >= 300


@pytest.mark.parametrize("text", TEXTS)
def test_signs_that_mean_themselves_stay(text: str) -> None:
    for within, around in WITHIN:
        if "|" in within:
            text = text.replace("|", "")
        markdown, shown = within.format(text), signs(around.format(text))
        # A wide table has each cell behind its heading.
        assert signs(telegram(markdown)) in {shown, shown.replace("a", "a:", 1)}
        assert signs(Page(html_of(markdown)).text) == shown
        assert signs(terminal(markdown)) == shown


@pytest.mark.parametrize(("text", "html"), (MARKUP | CHAT_TEXTS).items())
def test_markup_is_shown_alike_everywhere(text: str, html: str) -> None:
    assert render(text) == [html]
    shown = signs(telegram(text))
    assert sorted(signs(Page(html_of(text)).text)) == sorted(shown)
    # It has the addresses of links in brackets, and cells of several lines side by side.
    addressed = re.sub(r" \(https://e.org\S*\)", "", terminal(text))
    assert sorted(signs(addressed)) == sorted(shown)


@pytest.mark.parametrize(
    "text",
    ["```", "[here]: https://e.org", "~~~a~~~", "#", "*", "-", ">", "***", "|"],
)
def test_markdown_that_shows_nothing_is_shown_as_it_is(text: str) -> None:
    """An answer that was given has to arrive."""
    assert telegram(text) == text
    assert Page(html_of(text)).text == text
    assert terminal(text) == text


WORDS = st.sampled_from(FRAGMENTS.split())
_parser = make_parser(lambda _: True)


@settings(deadline=None, max_examples=150)
@given(st.lists(WORDS, min_size=1, max_size=12), st.sampled_from([" ", ": ", " – ", ") (", "，"]))
@example(["**a**", "**a:**b", r"C:\_t\*.log"], "，")
@example(["**a**", r"C:\_t\*.log"], ",")
def test_all_that_is_no_markup_is_shown(words: list[str], between: str) -> None:
    """What is written is what is shown, plus the marks that the reader says it has used."""
    text = "a " + between.join(words)
    tokens = parse(_parser, text)
    assert tokens is not None
    _, inline, _ = tokens
    marked = (
        t.markup * (t.type == "code_inline") + t.content + t.markup for t in inline.children or ()
    )
    assert signs("".join(marked)) == signs(text)
    shown = signs("".join(t.content for t in inline.children or ()))
    assert signs(telegram(text)) == shown
    assert signs(Page(html_of(text)).text) == shown
    assert signs(terminal(text)) == shown


MARKS_AND_WORDS = st.sampled_from([*("*", "**", "***", "****", "_", "__", "~~", "~~~"), *"ab,("])


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(MARKS_AND_WORDS, st.sampled_from(["", "", " "])), max_size=16))
def test_a_run_of_marks_is_markup_as_a_whole_or_not_at_all(parts: list[tuple[str, str]]) -> None:
    text = "a" + "".join(part + blank for part, blank in parts) + "b"
    tokens = parse(_parser, text)
    assert tokens is not None
    children = tokens[1].children or []
    used = "".join(
        "+" * len(t.markup) + "." * len(t.content or " " * t.tag.count("br")) for t in children
    )
    written = "".join(t.markup + (t.content or "\n" * t.tag.count("br")) for t in children)
    assert written == text
    for run in re.finditer(r"\*+|_+|~+", text):
        assert len(set(used[run.start() : run.end()])) == 1


PARTS_OF_ROWS = st.sampled_from(["|", "||", " | ", "`", "``", r"\|", " ", "x", " || "])


@settings(deadline=None, max_examples=100)
@given(st.lists(st.lists(PARTS_OF_ROWS, min_size=1, max_size=8), min_size=1, max_size=5))
def test_no_cell_of_a_table_is_lost(rows: list[list[str]]) -> None:
    words = iter(range(100, 1000))
    lines = ["".join(f"{part}{next(words)}" for part in row) for row in rows]
    text = "|a|b|\n|-|-|\n" + "\n".join(lines)
    written = re.findall(r"\d{3}", text)
    for show in (telegram, lambda text: Page(html_of(text)).text, terminal):
        assert sorted(re.findall(r"\d{3}", show(text))) == written


def steps(text: str) -> int:
    """Return how many lines of code show a text in all channels."""
    count = 0

    def step(*_: Any) -> Any:
        nonlocal count
        count += 1
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        for show in (render, html_of, lambda text: formatted(text, 80)):
            show(text)
    finally:
        sys.settrace(before)
    return count


GROWING = {
    "nested emphasis": lambda n: "*a " * n + "b" + " c*" * n,
    "emphasis that is closed too often": lambda n: "*a **b " * n + "c*** " * n,
    "runs of all sizes": lambda n: "".join(f"{'*' * (k % 40)}a " for k in range(n)) + "b** " * n,
    "emphasis beside other marks": lambda n: "_a " * n + "b_* " * n,
    "nested strong emphasis": lambda n: "**a *b " * n + "* c**" * n,
    "emphasis that ends nowhere": lambda n: "*a **b " * n,
    "a list of numbers": lambda n: "".join(f"{number}. *a*\n" for number in range(n)),
    "a list of one number": lambda n: "1. a\n" * n,
    "addresses": lambda n: "**https://e.org/_a_** " * n,
    "a long address": lambda n: "https://e.org/" + "_a_" * n,
    "backslashes": lambda n: r"\*a \d " * n,
    "a long pattern": lambda n: r"\d\*" * n,
    "labels": lambda n: "**a:**b" * n,
    "words": lambda n: "ab**cd**" * n,
    "nested tags": lambda n: "<b>" * n + "a" + "</b>" * n,
    "unknown tags": lambda n: "<x><b>a</b></x>" * n,
    "nested unknown tags": lambda n: "<x>" * n + "<b>a</b>" + "</x>" * n,
    "crossed tags": lambda n: "<b><i></b></i>" * n,
    "open tags": lambda n: "<b>a `<i>` " * n,
    "line breaks": lambda n: "a<br>" * n,
    "calls": lambda n: "[a](b" * n,
    "definitions": lambda n: "".join(f"[a{number}]: http://b.c\n" for number in range(n)),
    "underlines": lambda n: "a\n=\n" * n,
    "rows": lambda n: "|a|b|\n|-|-|\n" + "|`c|d` `|e|\n" * n,
    "a row": lambda n: "|a|b|\n|-|-|\n" + "|`c|d ``" * n,
    "fences behind words": lambda n: "a ```\n" * n + "```",
    "closed fences behind words": lambda n: "a ```b\nc\n```\n" * n,
    "bullets": lambda n: "- + a\n" * n,
    "sums": lambda n: "1\n" + "+ 2\n- 3\n" * n,
    "prompts": lambda n: ">>> a\n" * n,
    "names": lambda n: "__a" * n,
}


@pytest.mark.parametrize("grow", GROWING.values(), ids=GROWING.keys())
@pytest.mark.slow
def test_the_work_grows_no_faster_than_the_text(grow: Callable[[int], str]) -> None:
    assert steps(grow(200)) < 3 * steps(grow(100)) + 1000


@pytest.mark.parametrize("text", [
    "a " + "*" * 4000, "*a " * 1000 + "b" + "*" * 1000,
    "<b>" * 1000 + "a", "\\" * 4001, "a " + "_" * 4001, "a " + "~" * 4001, "**" + "a" * 4000,
], ids=lambda text: text[:8])  # fmt: skip
def test_odd_texts_lose_nothing(text: str) -> None:
    kept = re.sub(r"[*\s]", "", text)
    assert re.sub(r"[*\s]", "", telegram(text)) == kept
    assert re.sub(r"[*\s]", "", Page(html_of(text)).text) == kept


@pytest.mark.slow
def test_a_long_text_keeps_its_formatting() -> None:
    """It is parsed in pieces, never within code, a table, or an item of several lines."""
    part = "## A\n\n**b** *c*\n\n```py\n# d\n\n# e\n```\n\n|f|\n|-|\n|h|\n\n1. j\n\n   k\n2. l\n\n"
    text = part * 500
    assert len(text) > 32_000
    sent = "".join(render(text))
    assert [sent.count(tag) for tag in ("<b>", "<i>", "<pre>")] == [1000, 500, 1000]
    assert html_of(text).count("<table>") == 500
    assert signs(terminal(text)).count("1.jk2.l") == 500


@pytest.mark.slow
def test_a_list_of_thousands_keeps_its_numbers() -> None:
    for count, text in (
        (10_000, "".join(f"{number}. **a**\n" for number in range(1, 10_001))),
        (4000, "1. **a**\n" * 4000),
        (3000, "1. a\n\n   b\n\n" * 3000),
    ):
        tokens = parse(_parser, text)
        assert tokens is not None
        numbers = [token.info for token in tokens if token.type == "list_item_open"]
        assert numbers == [f"{number}." for number in range(1, count + 1)]
        assert [token.tag for token in tokens].count("ol") == 2


@pytest.mark.slow
def test_a_long_list_has_no_gaps() -> None:
    for text in ("- **abcdef**\n" * 4000, "1. **abcdef**\n" * 4000):
        assert "\n\n" not in "\n".join(markup.html(part).text for part in render(text))
