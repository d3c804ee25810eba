"""The chat in the browser: how an answer is formatted (CHAN-9, SEC-1)."""

from __future__ import annotations

import pytest

from goclaw_py.web.pages.markdown import html_of
from tests.unit.web.pages.conftest import Browser

LINK = '<a href="{}" rel="noopener noreferrer" target="_blank">{}</a>'
AS_IT_IS = "<p>{}</p>"


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("**a** *b*", AS_IT_IS.format("<strong>a</strong> <em>b</em>")),
        ("# A", '<p class="heading">A</p>'),
        ("```py\n<b>\n```", '<pre><code class="language-py">&lt;b&gt;\n</code></pre>'),
        ("<script>1</script>", AS_IT_IS.format("&lt;script&gt;1&lt;/script&gt;")),
        ("[a](https://e.org/?a&b)", AS_IT_IS.format(LINK.format("https://e.org/?a&amp;b", "a"))),
        ("<mailto:a@e.org>", AS_IT_IS.format(LINK.format("mailto:a@e.org", "mailto:a@e.org"))),
        *((text, AS_IT_IS.format(text)) for text in (
            "[a](javascript:x)", "[a](JavaScript:x)", "[a](data:text/html,x)", "[a](//e.org)",
            "[a](/logout)", "![a](data:image/png;base64,x)",
        )),
        ("![a](https://e.org)", AS_IT_IS.format("!" + LINK.format("https://e.org", "a"))),
        ("[a]: https://e.org", "<pre>[a]: https://e.org</pre>"),
        ("<a>" * 20_000, f"<pre>{'&lt;a&gt;' * 20_000}</pre>"),
    ],
)  # fmt: skip
def test_markdown_becomes_harmless_html(markdown: str, html: str) -> None:
    assert str(html_of(markdown)) == html


def test_a_table_scrolls_and_has_no_styles() -> None:
    html = html_of("|a|\n|:-:|\n|b|")
    assert html.startswith(
        '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>'
    )
    assert html.endswith("</table></div>")
    assert "style" not in html


def test_a_text_that_the_parser_fails_on_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def parse(self, text: str) -> list[object]:
            raise RecursionError

    monkeypatch.setattr("goclaw_py.web.pages.markdown._parser", Broken())
    assert html_of("*<a>*") == "<pre>*&lt;a&gt;*</pre>"


async def test_the_page_asks_for_the_html_of_an_answer(browser: Browser) -> None:
    answer = await browser.send_form("/chat/markdown", text="*a* <b>")
    assert answer.text == "<p><em>a</em> &lt;b&gt;</p>"
