"""Markdown as Telegram shows it (SPEC CHAN-3)."""

from __future__ import annotations

import logging

import pytest

from channels.telegram.format import plain, render
from channels.telegram.formatting import reader
from tests.botapi import markup


def shown(part: str) -> str:
    return markup.html(part).text


def kinds(part: str) -> list[object]:
    return [entity["type"] for entity in markup.html(part).entities]


ENDLESS = "http://b.c/" + "d" * 3000
LONG = "long " * 5 + "long"
WHAT = "<b>what <i>it</i> is</b>"
EXAMPLES = {
    "plain text": ("Hello, world.", "Hello, world."),
    "signs of HTML": ("1 < 2 & 3 > 2 \"x\" 'y'", "1 &lt; 2 &amp; 3 &gt; 2 \"x\" 'y'"),
    "most HTML is no markup": ("<q>x</q> &lt;", "&lt;q&gt;x&lt;/q&gt; &lt;"),
    "a block of HTML": ("<div>\nx\n</div>", "&lt;div&gt;\nx\n&lt;/div&gt;"),
    "bold": ("a **b** c", "a <b>b</b> c"),
    "italic": ("*a* _b_", "<i>a</i> <i>b</i>"),
    "strike": ("~~a~~", "<s>a</s>"),
    "styles in styles": ("***a** b*", "<b><i>a</i></b><i> b</i>"),
    "code": ("run `a<b`", "run <code>a&lt;b</code>"),
    "no style around code": ("**a `b` c**", "<b>a </b><code>b</code><b> c</b>"),
    "snake_case": ("snake_case_name", "snake_case_name"),
    "escaped": (r"\*a\*", "*a*"),
    "reference to a character": ("&copy; a", "© a"),
    "heading": ("# A *b*\ntext", "<b>A <i>b</i></b>\n\ntext"),
    "underlined heading": ("A\n===", "<b>A</b>"),
    "paragraphs": ("a *b*\n\n\n\nc", "a <i>b</i>\n\nc"),
    "no style within words": ("2*3*4, a*b*c, x**2 + y**2", "2*3*4, a*b*c, x**2 + y**2"),
    "bold within words": ("un**frigging**real **API**s", "un<b>frigging</b>real <b>API</b>s"),
    "styles without blanks": ("\u662f*\u91cd*\u70b9", "\u662f<i>\u91cd</i>\u70b9"),
    "asterisks alone": ("4*4 *a* 5*5", "4*4 <i>a</i> 5*5"),
    "soft break": ("a *b*\nc", "a <i>b</i>\nc"),
    "hard break": ("a *b*  \nc\\\nd", "a <i>b</i>\nc\nd"),
    "rule behind a line": ("a\n---\n*b*", "a\n\n———\n\n<i>b</i>"),
    "rule": ("a\n\n---\n\nb", "a\n\n———\n\nb"),
    "bullets": ("- a\n* b", "• a\n\n• b"),
    "one list": ("- a\n- b", "• a\n• b"),
    "loose list": ("- a\n\n- b", "• a\n\n• b"),
    "numbers": ("3. a\n4. b", "3. a\n4. b"),
    "numbers that do not count": ("1. a\n1. b", "1. a\n2. b"),
    "numbers with brackets": ("1) a\n2) b", "1) a\n2) b"),
    "nested lists": ("- a\n  - b\n    1. c\n- d", "• a\n    • b\n        1. c\n• d"),
    "list in list at once": ("- 1. a", "• 1. a"),
    "lines of an item": ("- a\n  b", "• a\n    b"),
    "paragraphs of an item": ("- a\n\n  b", "• a\n\n    b"),
    "empty item": ("- a\n-\n- b", "• a\n•\n• b"),
    "list after text": ("a:\n- b", "a:\n\n• b"),
    "tasks": ("- [ ] a\n- [x] b\n- [X] *c*", "☐ a\n☑ b\n☑ <i>c</i>"),
    "numbered task": ("1. [x] a", "1. ☑ a"),
    "brackets that are no task": ("[ ] a", "[ ] a"),
    "quote": ("> a\n> b", "<blockquote>a\nb</blockquote>"),
    "quote of paragraphs": ("> a\n>\n> b\n\nc", "<blockquote>a\n\nb</blockquote>\n\nc"),
    "two quotes": (
        "> a\n\n<!-- -->\n\n> b".replace("<!-- -->", "x"),
        "<blockquote>a</blockquote>\n\nx\n\n<blockquote>b</blockquote>",
    ),
    "quote in quote": ("> a\n> > b", "<blockquote>a\n\n&gt; b</blockquote>"),
    "item in inner quote": ("> > - a\n> >   b", "<blockquote>&gt; • a\n&gt;     b</blockquote>"),
    "quote in item": ("- > a\n  > b", "<blockquote>• a\nb</blockquote>"),
    "inner quote in item": ("> - > a\n>   > b", "<blockquote>• &gt; a\n    &gt; b</blockquote>"),
    "style in quote": ("> **a** `b`", "<blockquote><b>a</b> <code>b</code></blockquote>"),
    "code in quote": ("> ```\n> a\n> ```", "<blockquote><pre>a</pre></blockquote>"),
    "fence": ("```python\na < b\n```", '<pre><code class="language-python">a &lt; b</code></pre>'),
    "fence with more": ("~~~c++ x=1\na\n~~~", '<pre><code class="language-c++">a</code></pre>'),
    "fence without language": ("```\na\n\nb\n```", "<pre>a\n\nb</pre>"),
    "fence with odd language": ('```"><b>\na\n```', "<pre>a</pre>"),
    "fence that is open": ("a\n```sh\nls", 'a\n\n<pre><code class="language-sh">ls</code></pre>'),
    "empty fence": ("```\n\n```", None),
    "first line indented": ("```\n\n    a\n  b\n```", "<pre>    a\n  b</pre>"),
    "tab in code": ("```\n\ta\nb\tc\n```", "<pre>    a\nb   c</pre>"),
    "indented code": ("a\n\n    b", "a\n\n<pre>b</pre>"),
    "code in item": ("1. a\n   ```\n   b\n   ```", "1. a\n<pre>b</pre>"),
    "code first in item": ("- ```\n  b\n  ```\n- c", "•\n<pre>b</pre>\n• c"),
    "link": ("[a *b*](http://c.d?e=1&f)", '<a href="http://c.d?e=1&amp;f">a <i>b</i></a>'),
    "link with quotes": ('[a](<http://c.d/"x>)', '<a href="http://c.d/%22x">a</a>'),
    "link in style": ("**[a](HTTPS://b.c)**", '<a href="HTTPS://b.c"><b>a</b></a>'),
    "code in link": ("[`a`](tg://user?id=5)", '<a href="tg://user?id=5">a</a>'),
    "reference": ("[a][b]\n\n[b]: http://c.d", '<a href="http://c.d">a</a>'),
    "bare link": ("<http://a.b>", '<a href="http://a.b">http://a.b</a>'),
    "link without words": ("[](http://a.b)", '<a href="http://a.b">http://a.b</a>'),
    "address without words": ("[](a.md)", "a.md"),
    "mail": ("[me](mailto:a@b.c) <d@e.f>", "me (a@b.c) &lt;d@e.f&gt;"),
    "relative link": ("[a](docs/b.md)", "a (docs/b.md)"),
    "link to itself": ("[a.md](a.md)", "a.md"),
    "dangerous link": ("[a](javascript:b)", "a (javascript:b)"),
    "template of C++": ("<std::vector>", "&lt;std::vector&gt;"),
    "scheme only": ("[a](http://)", "a (http://)"),
    "image": ("![a *b*](http://c.d)", '<a href="http://c.d">a b</a>'),
    "image without words": ("![](http://c.d)", '<a href="http://c.d">image</a>'),
    "image in image": ("![a ![b](c)\nd](http://e.f)", '<a href="http://e.f">a b d</a>'),
    "image in link": ("[![a](http://b.c)](http://d.e)", '<a href="http://d.e">a</a>'),
    "image in a file": ("![a](b.png)", "a (b.png)"),
    "image as data": ("![a](data:image/png;base64,AAAA)", "a"),
    "link with an endless address": (f"[a](<{ENDLESS}>)", f"a ({ENDLESS})"),
    "narrow table": (
        "| name | n |  c  |\n|:--|--:|:-:|\n| apple | 12 | x |\n| 日本 | 3 | xyz |",
        "<pre>name    n   c\n─────  ──  ───\napple  12   x\n日本    3  xyz</pre>",
    ),
    "accents in a table": (
        "|a|b|\n|-|-|\n|e\u0301e\u0301|x|\n|cd|y|",
        "<pre>a   b\n──  ─\ne\u0301e\u0301  x\ncd  y</pre>",
    ),
    "emoji in a table": (
        "|a|b|\n|-|-|\n|✅|x|\n|❤️|x|\n|👍🏽|x|\n|👨\u200d👩\u200d👧|x|\n|🇩🇪|x|\n|1️⃣|x|\n|☂|x|",
        "<pre>a   b\n──  ─\n✅  x\n❤️  x\n👍🏽  x\n👨\u200d👩\u200d👧  x\n🇩🇪  x\n1️⃣  x\n☂   x</pre>",
    ),
    "lines in a table": (
        "|a|b|\n|-|--:|\n|c<br>dd|1|\n|e|2<br/>33|",
        "<pre>a    b\n──  ──\nc    1\ndd\ne    2\n    33</pre>",
    ),
    "wide table": (
        f"|name|what *it* is||\n|-|-|-|\n|a|{LONG}|`x`|\n|b|||",
        f"<b>name</b>: a\n{WHAT}: {LONG}\n<code>x</code>\n\n<b>name</b>: b\n{WHAT}: —\n—",
    ),
    "table with a link": ("|a|\n|-|\n|[b](http://c.d)|", '<b>a</b>: <a href="http://c.d">b</a>'),
    "wide table without rows": (f"|{'a' * 30}|b|c|\n|-|-|-|", f"{'a' * 30} | b | c"),
    "table in item": ("- |a|\n  |-|\n  |b|\n- c", "•\n<pre>a\n─\nb</pre>\n• c"),
    "table in quote": ("> |a|\n> |-|\n> |b|", "<blockquote><pre>a\n─\nb</pre></blockquote>"),
    "quotes in quotes": ("> " * 12 + "a", "<blockquote>&gt; &gt; &gt; a</blockquote>"),
    "quotes too deep": ("> " * 30 + "a", "&gt; " * 30 + "a"),
    "lists too deep": ("1. " * 30 + "a", "1. " * 30 + "a"),
}


@pytest.mark.parametrize(("markdown", "html"), EXAMPLES.values(), ids=EXAMPLES.keys())
def test_markdown_becomes_the_html_of_telegram(markdown: str, html: str | None) -> None:
    """SPEC CHAN-3."""
    assert render(markdown) == ([] if html is None else [html])
    assert all(shown(part) for part in render(markdown))


@pytest.mark.parametrize(
    "text", ["", " \n\t\n", "\u200b", "\u2800", "*\u3164*", "**\u200b**", "```\n\u200b\n```"]
)
def test_what_nobody_can_see_has_no_part(text: str) -> None:
    assert render(text) == []


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("a\ud83d\ude00b", "a😀b"),
        ("a\ud83db *c*", "a\ufffdb <i>c</i>"),
        ("a\x00\x07b\x7f", "ab"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("a\x0cb", "a b"),
        ("user\u202eexe.txt", "userexe.txt"),
        ("*a*&#x202e;&#12;b", "<i>a</i> b"),
        ("<http://a.b/%E2%80%AE%00c>", '<a href="http://a.b/%E2%80%AE%00c">http://a.b/c</a>'),
        ("A\u030angstro\u0308m", "Ångström"),
    ],
)
def test_characters_that_cannot_be_sent_are_dropped(text: str, sent: str) -> None:
    assert render(text) == [sent]


def test_long_headings_are_not_repeated_for_thousands_of_rows() -> None:
    title = "t" * 500
    parts = render(f"|{title}|\n|-|\n" + "|a|\n" * 1000)
    assert sum(part.count(title) for part in parts) == 1
    assert sum(shown(part).count("a") for part in parts) == 1000


def test_code_is_cut_between_lines_and_goes_on_in_its_language() -> None:
    """SPEC CHAN-3."""
    lines = [f"    line {number}" for number in range(9)]
    parts = render("```py\n" + "\n".join(lines) + "\n```", 30)
    begin, end = '<pre><code class="language-py">', "</code></pre>"
    assert all(part.startswith(begin + "    line") and part.endswith(end) for part in parts)
    bodies = [part.removeprefix(begin).removesuffix(end) for part in parts]
    assert "\n".join(bodies).split("\n") == lines
    assert len(parts) == 5


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        ("```\n" + "x" * 50 + "\ny\n```", 20, ["x" * 20, "x" * 20, "x" * 10 + "\ny"]),
        (f"aaaaa\n```\n{'b' * 55}\n{'c' * 55}\n```", 60, ["aaaaa", "b" * 55, "c" * 55]),
    ],
    ids=["endless line", "first line does not fit"],
)
def test_code_is_cut_within_a_line_only_if_it_is_endless(
    text: str, limit: int, parts: list[str]
) -> None:
    assert [plain(part) for part in render(text, limit)] == parts


def test_blank_lines_do_not_begin_a_part_of_code() -> None:
    parts = render("```\n" + "aaaaaaaaa\n\n\n\n" * 3 + "```", 10)
    assert parts == ["<pre>aaaaaaaaa\n</pre>", "<pre>aaaaaaaaa\n</pre>", "<pre>aaaaaaaaa</pre>"]


def test_a_table_is_cut_between_rows_and_its_heading_is_repeated() -> None:
    """SPEC CHAN-3."""
    rows = [f"row {number}" for number in range(40)]
    parts = render("|t|\n|-|\n" + "".join(f"|{row}|\n" for row in rows), 100)
    assert len(parts) > 2
    found = []
    for part in parts:
        head, rule, *body = plain(part).split("\n")
        assert (head, rule) == ("t", "──────")
        found += body
    assert found == rows


def test_a_heading_that_takes_too_much_is_not_repeated() -> None:
    parts = render("|headingheading|\n|-|\n" + "|row|\n" * 12, 40)
    assert [part.count("headingheading") for part in parts] == [1] + [0] * (len(parts) - 1)


def test_a_short_block_goes_to_the_next_part_rather_than_in_two() -> None:
    first, second = render(f"{'*a* ' * 20}\n\n{'b ' * 20}", 60)
    assert (set(plain(first)), set(plain(second))) == ({"a", " "}, {"b", " "})


def test_short_code_goes_to_the_next_part_rather_than_in_two() -> None:
    first, second = render("a" * 40 + "\n```\n" + "b\n" * 15 + "```", 60)
    assert (set(plain(first)), set(plain(second))) == ({"a"}, {"b", "\n"})


def test_a_long_block_fills_what_is_left() -> None:
    parts = render(f"**a**\n\n{'word ' * 30}", 60)
    assert plain(parts[0]).startswith("a\n\nword word")
    assert [len(plain(part)) > 30 for part in parts[:2]] == [True, True]


def test_long_code_fills_what_is_left() -> None:
    parts = render("a\n```\n" + "b\n" * 40 + "```", 60)
    assert plain(parts[0]).startswith("a\n\nb\nb")


def test_a_heading_stays_with_what_follows() -> None:
    first, second = render(f"{'a ' * 45}\n\n# H\n\n{'b ' * 40}", 100)
    assert "H" not in first
    assert second.startswith("<b>H</b>\n\nb")


def test_headings_at_the_end_are_kept() -> None:
    assert [plain(part) for part in render(f"{'*a* ' * 10}\n\n# H\n\n# I", 24)][-1] == "H\n\nI"


def test_many_headings_are_spread_evenly() -> None:
    counts = [part.count("<b>") for part in render("# a\n" * 1000)]
    assert (sum(counts), counts[0], len(counts)) == (1000, 100, 10)


def test_styles_and_quotes_are_closed_and_opened_again_at_a_cut() -> None:
    parts = render("> **" + "word " * 30 + "end**", 60)
    assert len(parts) == 3
    for part in parts:
        assert part.startswith("<blockquote><b>word")
        assert part.endswith("</b></blockquote>")


def test_a_cut_goes_through_no_emoji() -> None:
    family = "👨\u200d👩\u200d👧"
    parts = render(f"*{family * 20}*", 20)
    assert {plain(part).replace(family, "") for part in parts} == {""}


def test_a_part_has_no_more_entities_than_the_server_keeps() -> None:
    parts = render("".join(f"- **a{number}** `b`\n" for number in range(250)))
    assert [len(kinds(part)) for part in parts] == [100] * 5
    assert kinds(parts[0]) == ["bold", "code"] * 50


def test_a_paragraph_of_emphasis_loses_it_but_keeps_links() -> None:
    (part,) = render("**a** _b_ " * 60 + "[c](http://d.e)")
    assert kinds(part) == ["text_link"]


def test_links_are_spread_over_parts_rather_than_lost() -> None:
    parts = render(" ".join(f"[a{number}](http://b.c/{number})" for number in range(250)))
    assert [len(kinds(part)) for part in parts] == [100, 100, 50]


def test_addresses_in_a_part_are_not_more_than_the_server_takes() -> None:
    """Its limit for all entities of a message is 9500 bytes."""
    parts = render(" ".join(f"[a](http://b.c/{number:0900})" for number in range(30)))
    assert sum(len(kinds(part)) for part in parts) == 30


def test_plain_shows_addresses_in_brackets() -> None:
    html = '<b>a</b> <a href="http://b.c/?d&amp;e">f</a> <a href="http://g.h">http://g.h</a> &lt;'
    assert plain(html) == "a f (http://b.c/?d&e) http://g.h <"


def test_plain_leaves_addresses_out_where_they_would_be_too_much() -> None:
    (part,) = render("x" * 4000 + "[a](http://b.c/" + "d" * 200 + ")")
    assert plain(part) == "x" * 4000 + "a"


def test_plain_keeps_what_was_escaped() -> None:
    assert plain(render("`&lt;` *x*")[0]) == "&lt; x"


def test_a_text_too_long_to_be_read_is_shown_as_it_stands() -> None:
    parts = render("**a** " * 10_000)
    assert "".join(parts).startswith("**a** **a**")
    assert sum(part.count("**a**") for part in parts) == 10_000


def test_a_table_of_very_many_cells_is_shown_as_it_stands() -> None:
    table = "|a" * 100 + "|\n" + "|-" * 100 + "|\n" + "|x|\n" * 300
    assert "".join(render(table)).startswith("|a|a|")


def test_a_text_that_the_parser_fails_on_is_shown_as_it_stands(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def parse(self, text: str) -> list[object]:
            raise RecursionError

    monkeypatch.setattr(reader, "_parser", Broken())
    with caplog.at_level(logging.ERROR):
        assert render("*a*") == ["*a*"]
    assert [record.exc_info is not None for record in caplog.records] == [True]
