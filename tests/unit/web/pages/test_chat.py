"""The chat in the browser: answers, what they lack, other conversations (CHAN-9, SEC-1)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.model.ids import RunId
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.ports.agent import HistoryEntry, Role
from goclaw_py.ports.store import StoredEntry, Unanswered
from goclaw_py.web.pages.chat_lines import lines_of
from goclaw_py.web.pages.markdown import html_of
from tests.unit.web import fakes
from tests.unit.web.fakes import ENDED, NOW, QUEUE, RUN_ID, FakeControl, said
from tests.unit.web.pages.conftest import Browser

LINK = '<a href="{}" rel="noopener noreferrer" target="_blank">{}</a>'
AS_IT_IS = "<p>{}</p>"
PYTHON = (
    '<pre><code class="language-py"><span class="k">if</span> '
    '<span class="n">x</span>\n</code></pre>'
)


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("**a** *b*", AS_IT_IS.format("<strong>a</strong> <em>b</em>")),
        ("# A", '<p class="heading">A</p>'),
        ("```x\n<b>\n```", '<pre><code class="language-x">&lt;b&gt;\n</code></pre>'),
        ("```py\nif x\n```", PYTHON),
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


def entry(role: Role, text: str, after_s: int, run: RunId = RUN_ID) -> StoredEntry:
    return StoredEntry(HistoryEntry(role, text), NOW + timedelta(seconds=after_s), run)


def test_a_conversation_has_its_messages_without_an_answer_in_their_places() -> None:
    """Each once: those of a run that left entries are in the history already."""
    history = [entry(Role.USER, "ask", 1), entry(Role.ASSISTANT, "(failed)", 2)]
    failed = replace(ENDED, outcome=Outcome.FAILED, reason=None, error="boom_1")
    lost = Unanswered(5, said(5, "lost"), RunId("r2"), NOW + timedelta(seconds=3))
    lost = replace(lost, outcome=Outcome.LOST, reason=Reason.CRASHED)
    old = replace(lost, message=said(6, "before /new"), received_at=NOW)
    known = replace(lost, message=said(7, "ask"), run_id=RUN_ID)
    waits = Unanswered(8, said(8, "waits"), None, NOW + timedelta(seconds=9))
    queue = replace(QUEUE, unanswered=(lost, old, known), messages=(waits,))
    lines = lines_of(history, [failed, replace(failed, id=RunId("r2"))], queue)
    assert [(line.entry.entry.text, line.problem) for line in lines] == [
        ("ask", ""), ("(failed)", "failed: boom_1"), ("lost", "lost: crashed: boom_1"),
        ("waits", ""),
    ]  # fmt: skip
    assert [line.run is None for line in lines] == [True, False, False, True]


async def test_the_page_shows_tools_problems_and_what_waits(browser: Browser) -> None:
    told = ("read_file", "no result", "cancelled: stopped", "dropped: queue dropped", "too much")
    text = await browser.says("/chat?name=local", *told)
    assert "<li>and then?</li>" in text
    assert "<li>count to 30</li>" not in text, "a run answers it"
    assert 'href="/chat?name=local" title="local" aria-current="page"' in text
    live = await browser.says("/chat?name=local", "The first one waits for a slot of its lane.")
    assert 'href="/sessions/view?key=agent%3Amain%3Aconsole%3Adirect%3Alocal"' in live


async def test_a_new_conversation_is_empty_and_lists_the_others(browser: Browser) -> None:
    text = await browser.says("/chat?name=fresh", "Say hello", "<small>new</small>")
    assert 'href="/chat?name=local"' in text
    assert "/chat/export" not in text
    assert "Waiting messages" not in text


async def test_a_conversation_is_exported(browser: Browser, control: FakeControl) -> None:
    answer = await browser.get("/chat/export?name=local")
    assert answer.headers["content-disposition"] == 'attachment; filename="local.md"'
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    at = "2026-01-02 03:04:05 UTC"
    asked = fakes.HISTORY[0].entry.text
    assert answer.text == (
        f"# Chat local\n\n## user, {at}\n\n{asked}\n\n## assistant, {at}\n\nyes\n"
    )
    await browser.says("/chat/export?name=none", "there is no conversation none", status=404)
    await browser.says("/chat/export?name=%2F", "a chat name has", status=422)
