"""What holds for every text that is made into parts for Telegram (SPEC CHAN-3)."""

from __future__ import annotations

import re
import time
import unicodedata

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from channels.telegram.format import plain, render
from channels.telegram.formatting.cleaning import cleaned
from goclaw_py.core.text import is_blank, split_text, utf16_len, well_formed
from tests.botapi import markup

# A loaded machine is slow now and then; that is no property of the code.
patiently = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

ENDLESS = 10**9

PIECES = [
    *("*", "**", "_", "`", "``", "~~", "[", "]", "(", ")", "](", "![", "!", "<", ">", "&", "\\"),
    *("&amp;", "&#x202e;", "&#0;", "|", "||", "#", "##", "-", "+", "1.", "2)", "=", ":", "--"),
    *("> ", "- ", "1. ", "# ", "```", "```py\n", "~~~\n", "[ ] ", "[x] ", "---\n", "===\n"),
    *("](http://a.b/?c&d) ", "](<e f>)", "<http://g.h>", "<mailto:i@j.k>", "[a]: b\n"),
    *("|a|b|\n|-|-|\n", "|c|d\n", "|", " \n", "\n", "\n\n", "  ", "    ", "\t", "\r"),
    *(
        "word ", "sentence. ", "a", "é", "日本", "e\u0301", "\u0301", "😀", "👍🏽", "🇩🇪", "\ud83d",
        "\ude00",
    ),
    *("\x00", "\x0c", "\x7f", "\u200b", "\u200d", "\u202e", "\u2028", "\u030a", "\u00a0"),
]  # fmt: skip
soups = st.lists(st.sampled_from(PIECES), max_size=80).map("".join)
texts = st.text(st.characters(), max_size=200)
anything = st.one_of(soups, texts, st.builds("{}{}".format, soups, texts))
limits = st.one_of(st.integers(2, 40), st.sampled_from([100, 4096]))


def shown(part: str) -> str:
    """The text as ``plain`` shows it, but without addresses of links."""
    return plain(re.sub(r"<a [^>]*>|</a>", "", part))


def visible(text: str) -> str:
    return "".join(c for c in text if not c.isspace() and unicodedata.category(c) not in "Cc Cf")


@patiently
@given(anything, limits)
def test_every_part_is_accepted_by_the_server(text: str, limit: int) -> None:
    for part in render(text, limit):
        message = markup.html(part)
        assert message.text == shown(part).strip()
        assert part.count("<") - part.count("</") == part.count("</")


@patiently
@given(anything, limits)
@example("********```py\n***", 4)
@example("# a\n" * 30 + "x " * 40, 20)
@example("**" + "a `b` " * 120 + "**", 4096)
def test_every_part_fits_and_can_be_seen(text: str, limit: int) -> None:
    for part in render(text, limit):
        assert utf16_len(shown(part)) <= limit
        assert not is_blank(shown(part))
        marked = part.replace("<pre><code", "<pre")
        assert marked.count("<") - marked.count("</") <= 100


@patiently
@given(anything, limits)
@example("*a*\n\n# b\n\n# c", 4096)
def test_cutting_loses_nothing_and_doubles_nothing(text: str, limit: int) -> None:
    # The heading of a table is repeated on purpose.
    text = text.replace("|", "")
    whole = visible("".join(map(shown, render(text, ENDLESS))))
    assert visible("".join(map(shown, render(text, limit)))) == whole


@patiently
@given(st.lists(st.text("abc é😀*_`", max_size=12), min_size=1, max_size=30), limits)
def test_cutting_a_table_loses_no_row(cells: list[str], limit: int) -> None:
    table = "".join(f"|{number}:{cell.replace('|', '')}|\n" for number, cell in enumerate(cells))
    parts = render(f"|h|\n|-|\n{table}", limit)
    numbers = [int(found) for part in parts for found in re.findall(r"(\d+):", shown(part))]
    if limit >= 20:
        assert numbers == list(range(len(cells)))


@patiently
@given(anything, limits)
def test_no_part_has_a_lone_surrogate_or_a_refused_character(text: str, limit: int) -> None:
    for part in render(text, limit):
        assert part == well_formed(part)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e]", part)


@patiently
@given(anything, limits)
def test_plain_leaves_no_markup(text: str, limit: int) -> None:
    for part in render(text, limit):
        assert utf16_len(plain(part)) <= 4096
        if "<a " in part:
            assert visible(plain(part)).startswith(visible(shown(part[: part.index("<a ")])))
        else:
            assert plain(part).count("<") == part.count("&lt;")
            assert plain(part) == shown(part)


@patiently
@given(st.text(st.characters(exclude_characters="*_`~[<&|\\#>+=-"), max_size=200), limits)
def test_a_text_without_signs_of_markdown_comes_out_as_itself(text: str, limit: int) -> None:
    # A number may begin a list, and blanks code.
    text = re.sub(r"(?m)^\s+", "", re.sub(r"\d", "", cleaned(text)))
    assert [shown(part) for part in render(text, limit)] == split_text(text, limit)


@patiently
@given(texts)
def test_characters_that_are_no_markdown_are_all_shown(text: str) -> None:
    letters = re.sub(r"[^\w\s]|_", "", cleaned(text))
    assert visible("".join(map(shown, render(f"*a* {letters}")))) == visible("a" + letters)


N = 10_000
BOMBS = {
    "stars": "*" * 1_000_000,
    "backticks": "`" * 100_000,
    "runs of backticks": "".join("`" * number + " " for number in range(250)),
    "quotes": ">" * N + "a",
    "lists": "- " * N + "a",
    "empty items": "-\n" * N,
    "brackets": "[" * N + "a" + "](b)" * N,
    "open brackets": "[" * 32_000,
    "open images": "![" * 16_000,
    "images": "![" * 3000 + "a" + "](b)" * 3000,
    "emphasis": "*a **b " * 2000 + "** c*" * 2000,
    "pairs": "a**b" * 8000,
    "lazy quote": "> " * 12 + "a\n" + "b\n" * 15_000,
    "links": "".join(f"[a](http://b.c/{number}) " for number in range(N)),
    "table": "|a|b|\n|-|-|\n" + "|c|d|\n" * N,
    "columns": "|a" * N + "\n" + "|-" * N + "\n" + "|b\n" * N,
    "missing cells": "|a" * 60 + "\n" + "|-" * 60 + "\n" + "|b\n" * N,
    "missing cells, fewer": "|a" * 40 + "\n" + "|-" * 40 + "\n" + "|b\n" * 480,
    "delimiters": "|-" * 16_000 + "a",
    "heading of a table": "|" + "h" * N + "|\n|-|\n" + "|a|\n" * 5000,
    "headings": "# a\n" * 8000,
    "references": "".join(f"[a{number}]: b\n" for number in range(2500)),
    "marks": "1) a\n2. b\n" * 3200,
    "accents": "*" + "\u0301" * 30_000,
    "invisible": "*a*" + "\u200b" * 30_000 + "b",
    "blanks": "*a*" + " " * 30_000 + "b",
    "blank lines": "*a*" + "\n" * 1_000_000 + "b",
    "endless code": "```\n" + "x " * 16_000,
    "references to characters": "&#x202e;&amp;" * 2400,
    "words": "word " * 200_000,
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS.keys())
@pytest.mark.slow
def test_a_bomb_ends_soon(text: str) -> None:
    began = time.process_time()
    parts = render(text)
    # Each takes less than a second; the machine may be slow.
    assert time.process_time() - began < 30
    assert len(parts) < 350
    for part in parts:
        assert utf16_len(markup.html(part).text) <= 4096
