"""The chat in the browser: answers, what they lack, other conversations (CHAN-9, SEC-1)."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Collection
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from goclaw_py.chat.outbound import texts
from goclaw_py.core.approvals import Decision
from goclaw_py.core.ids import AgentName, ApprovalId, RunId
from goclaw_py.core.messages import FileKind, HistoryEntry, OutFile, Role
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_events import NOT_MADE
from goclaw_py.operations.sessions.operations import QueueView
from goclaw_py.records import Aside, SessionQuery, StoredEntry, ToolCall, Unanswered
from goclaw_py.web.front import WebAccess
from goclaw_py.web.pages import SiteParts, make_site
from goclaw_py.web.pages.chat.conversations import LISTED, StoredConversation, by_day, words_around
from goclaw_py.web.pages.chat.lines import AFRESH, lines_of
from goclaw_py.web.pages.chat.markdown import html_of
from goclaw_py.web.pages.chat.page import waiting_places
from tests.support.apps import lend_api
from tests.unit.web import fakes
from tests.unit.web.fake_approvals import PAY, WIPE
from tests.unit.web.fake_terminals import FakeUploads
from tests.unit.web.fakes import ENDED, NOW, QUEUE, RUN_ID, FakeControl, FakeSessions, said
from tests.unit.web.pages.conftest import ORIGIN, Browser

LINK = '<a href="{}" rel="noopener noreferrer" target="_blank">{}</a>'
AS_IT_IS = '<p dir="auto">{}</p>'
PYTHON = (
    '<pre><code class="language-py"><span class="k">if</span> '
    '<span class="n">x</span>\n</code></pre>'
)

NEWLINES = "\n" * 6000


HEADINGS = "\n".join(
    f'<h{level} dir="auto">{text}</h{level}>'
    for level, text in zip((3, 4, 5, 6, 6), "ABCDE", strict=True)
)
HOUR = timedelta(hours=1)
TASKS = '<ul dir="auto">\n<li class="task">☐ a</li>\n<li class="task">☑ b</li>\n</ul>'


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("**a** *b*", AS_IT_IS.format("<strong>a</strong> <em>b</em>")),
        ("# A", '<h3 dir="auto">A</h3>'),
        (
            "### A\n###### B\n# C\n> # D",
            (
                '<h3 dir="auto">A</h3>\n<h4 dir="auto">B</h4>\n<h3 dir="auto">C</h3>\n'
                '<blockquote dir="auto">\n<h3>D</h3>\n</blockquote>'
            ),
        ),
        ("# A\n## B\n### C\n#### D\n##### E", HEADINGS),
        ("- [ ] a\n- [x] b", TASKS),
        ("```x\n<b>\n```", '<pre><code class="language-x">&lt;b&gt;\n</code></pre>'),
        ("```py\nif x\n```", PYTHON),
        ("```ahk\nif x\n```", '<pre><code class="language-ahk">if x\n</code></pre>'),
        (f"```py\n{NEWLINES}x\n```", f"<pre><code>{NEWLINES}x\n</code></pre>"),
        ("<script>1</script>", AS_IT_IS.format("&lt;script&gt;1&lt;/script&gt;")),
        ("[a](https://e.org/?a&b)", AS_IT_IS.format(LINK.format("https://e.org/?a&amp;b", "a"))),
        ("<mailto:a@e.org>", AS_IT_IS.format(LINK.format("mailto:a@e.org", "mailto:a@e.org"))),
        *((text, AS_IT_IS.format(text)) for text in (
            "[a](javascript:x)", "[a](JavaScript:x)", "[a](data:text/html,x)", "[a](//e.org)",
            "[a](/logout)", "![a](data:image/png;base64,x)",
        )),
        ("![a](https://e.org)", AS_IT_IS.format(LINK.format("https://e.org", "a"))),
        ("[a]: https://e.org", AS_IT_IS.format("[a]: " + LINK.format(*2 * ["https://e.org"]))),
        ("see HTTP://e.org/_x_.", AS_IT_IS.format(f"see {LINK.format(*2 * ['HTTP://e.org/_x_'])}.")),
        ("(https://e.org/a_(b))", AS_IT_IS.format(f"({LINK.format(*2 * ['https://e.org/a_(b)'])})")),
        ("`https://e.org`", AS_IT_IS.format("<code>https://e.org</code>")),
        *((text, AS_IT_IS.format(text)) for text in (
            "javascript://e.org/%0ax", "ftp://e.org", "https://", "xhttps://e.org",
        )),
        ("<a>" * 20_000, f"<pre>{'&lt;a&gt;' * 20_000}</pre>"),
    ],
)  # fmt: skip
def test_markdown_becomes_harmless_html(markdown: str, html: str) -> None:
    assert str(html_of(markdown)) == html


def test_a_table_scrolls_and_has_no_styles() -> None:
    html = html_of("|a|b|c|d|\n|:-:|--:|:--|---|\n|1|2|3|4|")
    for kind, cells in (("th", "abcd"), ("td", "1234")):
        names = (' class="center"', ' class="right"', ' class="left"', "")
        row = zip(names, cells, strict=True)
        assert "\n".join(f"<{kind}{name}>{cell}</{kind}>" for name, cell in row) in html
    assert html.startswith(
        '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>'
    )
    assert html.endswith("</table></div>")
    assert "style" not in html


def test_a_text_that_the_parser_fails_on_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def parse(self, text: str) -> list[object]:
            raise RecursionError

    monkeypatch.setattr("goclaw_py.web.pages.chat.markdown._parser", Broken())
    assert html_of("*<a>*") == "<pre>*&lt;a&gt;*</pre>"


async def test_the_page_asks_for_the_html_of_an_answer(browser: Browser) -> None:
    answer = await browser.send_form("/chat/markdown", text="*a* <b>")
    assert answer.text == AS_IT_IS.format("<em>a</em> &lt;b&gt;")


def entry(role: Role, text: str, after_s: int, run: RunId = RUN_ID) -> StoredEntry:
    return StoredEntry(HistoryEntry(role, text), NOW + timedelta(seconds=after_s), run)


def test_a_conversation_has_its_messages_without_an_answer_in_their_places() -> None:
    """Each once: those of a run that left entries are in the history already."""
    history = [entry(Role.USER, "ask", 1), entry(Role.ASSISTANT, "(failed)", 2)]
    failed = replace(ENDED, outcome=Outcome.FAILED, reason=None, error="boom_1")
    lost = Unanswered(5, said(5, "lost"), RunId("r2"), NOW + timedelta(seconds=3))
    lost = replace(lost, outcome=Outcome.LOST, reason=Reason.CRASHED, finished_at=NOW)
    known = replace(lost, message=said(7, "ask"), run_id=RUN_ID)
    waits = Unanswered(8, said(8, "waits"), None, NOW + timedelta(seconds=9))
    queue = replace(QUEUE, unanswered=(lost, known), messages=(waits,))
    lines = lines_of(history, [failed, replace(failed, id=RunId("r2"))], queue)
    lines = [line for line in lines if line.is_end]
    assert [(line.entry.entry.text, line.problem) for line in lines] == [
        ("ask", ""), ("(failed)", texts.FAILED), ("lost", texts.LOST), ("waits", ""),
    ]  # fmt: skip
    assert [line.run is None for line in lines] == [True, False, False, True]


def test_a_message_that_waits_has_its_place_in_line() -> None:
    waits = [Unanswered(n, said(n, "more"), None, NOW) for n in range(1, 114)]
    asked = replace(waits[0], asking_run=RUN_ID)
    running = replace(waits[0], run_id=QUEUE.running[0].id)
    places = [*waiting_places(replace(QUEUE, messages=(asked, running, *waits[1:]))).values()]
    assert places[:4] == ["next", "2nd in line", "3rd in line", "4th in line"]
    ends = {number: places[number - 1].split()[0] for number in (11, 12, 13, 21, 101, 111, 112)}
    assert ends == {
        11: "11th", 12: "12th", 13: "13th", 21: "21st", 101: "101st", 111: "111th", 112: "112th"
    }  # fmt: skip
    assert waiting_places(None) == {}


def aside(role: Role, text: str, after_s: int, name: str = "", **more: Any) -> Aside:
    return Aside(NOW + timedelta(seconds=after_s), role, text, name or f"r{after_s}", **more)


def test_commands_and_their_answers_stand_where_they_came() -> None:
    """Found by use: they vanished, or their buttons moved to the end, when the page was loaded."""
    history = [entry(Role.USER, "ask", 1), entry(Role.ASSISTANT, "answer", 2)]
    later = RunId("r2")
    history += [entry(Role.USER, "more", 7, later), entry(Role.ASSISTANT, "yes", 8, later)]
    question = "🔐 May I call this tool?\n\npay\n  to: Bob\n\nFrom: Ann"
    asides = [
        aside(Role.USER, "/queue", 3, "local:id-3"),
        aside(Role.ASSISTANT, "Mode: queue", 4),
        aside(Role.USER, "/stop", 5, "local:stop-5"),
        aside(Role.USER, f"/undo {RUN_ID}{'0' * 32} again", 5, "local:id-5"),
        aside(Role.USER, f"/undo {RUN_ID}{'0' * 32} edit id-1\nother\nwords", 6, "local:id-6"),
        aside(Role.ASSISTANT, "Mode: steer", 9, replaces="r4"),
        aside(Role.ASSISTANT, f"{question}\n\n🚫 Denied by Ann.", 10),
        aside(Role.USER, "/stop", 11, "local:id-11"),
        aside(Role.ASSISTANT, "Stopped.", 12),
    ]
    lines = lines_of(history, [], None, asides)
    assert [(line.text, line.message, line.receipt) for line in lines] == [
        ("ask", "", ""), ("answer", "", ""), ("/queue", "id-3", ""), ("Mode: steer", "", "r9"),
        ("more", "", ""), ("yes", "", ""),
        ("May I call pay (to: Bob)? 🚫 Denied by Ann.", "", "r10"),
        ("/stop", "id-11", ""), ("Stopped.", "", "r12"),
    ]  # fmt: skip
    assert [line.is_remembered for line in lines].count(False) == 5


def test_what_is_said_before_an_answer_stands_above_it() -> None:
    """Found by use: that an approval is needed stood below the answer after a reload."""
    later = RunId("r2")
    history = [entry(Role.USER, "pay", 1), entry(Role.ASSISTANT, "It was denied.", 5)]
    history += [entry(Role.USER, "more", 2, later), entry(Role.ASSISTANT, "yes", 6, later)]
    asides = [
        aside(Role.ASSISTANT, "I need an approval.", 2 - 1),
        aside(Role.USER, "/status", 3, "local:id-3"),
        aside(Role.ASSISTANT, "Busy.", 4),
        aside(Role.ASSISTANT, "A reminder.", 7),
    ]
    assert [line.text for line in lines_of(history, [], None, asides)] == [
        "pay", "I need an approval.", "It was denied.", "more", "yes",
        "/status", "Busy.", "A reminder.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("submitted_s", "order"),
    [
        (1, ["ask", "The job is done.", "answer"]),
        (4, ["ask", "answer", "The job is done."]),
    ],
)
def test_what_a_job_says_stands_below_a_turn_that_is_answered_again(
    submitted_s: int, order: list[str]
) -> None:
    """Found by use: the new answer stood far below its question."""
    run = replace(ENDED, submitted_at=NOW + timedelta(seconds=submitted_s), reason=None)
    run = replace(run, outcome=Outcome.COMPLETED)
    of_a_job = StoredEntry(
        HistoryEntry(Role.ASSISTANT, "[from the job “x”]\nThe job is done."),
        NOW + timedelta(seconds=3),
        None,
    )
    history = [of_a_job, entry(Role.USER, "ask", 1), entry(Role.ASSISTANT, "answer", 5)]
    assert [line.text for line in lines_of(history, [run], None)] == order


def test_a_notice_about_a_job_is_shown_once_though_the_agent_remembers_it() -> None:
    noted = HistoryEntry(Role.ASSISTANT, "[from the job “x”]\nIt could not be delivered.")
    history = [StoredEntry(noted, NOW, None)]
    asides = [aside(Role.ASSISTANT, "It could not be delivered.", 1)]
    (line,) = lines_of(history, [], None, asides)
    assert (line.text, line.origin) == ("It could not be delivered.", "from the job “x”")


def test_the_last_turn_of_the_history_is_marked_wherever_it_stands() -> None:
    """Found by use: a turn that ended late could be undone, and another one offered it."""
    later = RunId("r2")
    history = [entry(Role.USER, "who", 2, later), entry(Role.ASSISTANT, "Ann", 3, later)]
    history += [entry(Role.USER, "save", 1), entry(Role.ASSISTANT, "Saved.", 5)]
    lines = lines_of(history, [], None, [aside(Role.USER, "/status", 9)])
    assert [(line.text, line.is_last) for line in lines] == [
        ("save", True), ("Saved.", True), ("who", False), ("Ann", False), ("/status", False),
    ]  # fmt: skip


def test_an_answered_question_stands_above_the_answer_of_its_run() -> None:
    history = [entry(Role.USER, "write", 1), entry(Role.ASSISTANT, "Wrote it.", 5)]
    question = "🔐 May I call this tool?\n\nwrite_file\n\nFrom: Ann\n\n✅ Allowed once by Ann."
    asides = [aside(Role.ASSISTANT, question, 3), aside(Role.ASSISTANT, "Noted.", 4)]
    lines = lines_of(history, [], None, asides)
    assert [line.text for line in lines] == [
        "write", "May I call write_file? ✅ Allowed once by Ann.", "Noted.", "Wrote it.",
    ]  # fmt: skip
    assert [line.is_markdown for line in lines] == [True, False, False, True]


def test_what_was_said_before_a_new_conversation_stays_above_a_line() -> None:
    later = RunId("r2")
    history = [entry(Role.USER, "ask", 1), entry(Role.ASSISTANT, "answer", 2)]
    asides = [aside(Role.USER, "/status", 3), aside(Role.USER, "/New", 5)]
    asides += [aside(Role.ASSISTANT, "Forgotten.", 6)]
    above = ["ask", "answer", "/status", "dropped 4", "/New", "Forgotten."]
    dropped = replace(QUEUE, messages=(), unanswered=(a_dropped(4, 4),))
    lines = lines_of(history, [], dropped, asides)
    assert [line.text for line in lines] == above
    assert not any(line.is_fresh for line in lines)
    history += [replace(entry(Role.USER, "who", 7, later), resets=1)]
    history += [replace(entry(Role.ASSISTANT, "Ann", 8, later), resets=1)]
    lines = lines_of(history, [], dropped, asides)
    assert [line.text for line in lines] == [*above, "who", "Ann"]
    assert [line.text for line in lines if line.is_fresh] == ["who"]
    assert [line.text for line in lines if line.is_last] == ["who", "Ann"]
    assert not any(line.is_fresh for line in lines_of(history[2:], [], None))
    asides[2] = aside(Role.ASSISTANT, texts.NEW_SESSION, 6)
    assert not any(line.is_fresh for line in lines_of(history, [], dropped, asides)), "said twice"


@pytest.mark.parametrize(
    ("answer", "places", "parts"),
    [
        ("Yes.", [0, 0], [(2, "Yes.")]),
        ("Look:\n\nYes.", [5, 5], [(0, "Look:"), (2, "Yes.")]),
        ("A\n\nB\n\nC", [0, 1, 4], [(1, "A"), (1, "B"), (1, "C")]),
        ("A\n\nB", [4], [(0, "A\n\nB"), (1, "")]),
        (f"A\n\n{texts.interrupted_note(Outcome.CANCELLED)}", [1], [(0, "A"), (1, "")]),
        ("Other words.", [5], [(1, "Other words.")]),
        ("Few.", [99], [(1, "Few.")]),
    ],
)
def test_calls_stand_between_the_words_before_and_after_them(
    answer: str, places: list[int], parts: list[tuple[int, str]]
) -> None:
    calls = [ToolCall("read", "{}", NOW, ok=True, text_before=at) for at in places]
    run = replace(ENDED, outcome=Outcome.COMPLETED, reason=None, tools=tuple(calls))
    history = [entry(Role.USER, "ask", 1), entry(Role.ASSISTANT, answer, 2)]
    lines = lines_of(history, [run], None)[1:]
    assert [(len(line.calls), line.words) for line in lines] == parts
    assert [call for line in lines for call in line.calls] == calls, "each once, in order"
    assert [line.is_first for line in lines] == [not at for at, _ in enumerate(lines)]
    assert [line.is_end for line in lines] == [line is lines[-1] for line in lines]


def _named_calls(*facts: tuple[str, int, int]) -> tuple[ToolCall, ...]:
    """Calls that returned: their names, places in the words, and seconds after ``NOW``."""
    return tuple(
        ToolCall(name, "{}", NOW + timedelta(seconds=at), ok=True, text_before=place)
        for name, place, at in facts
    )


BEFORE = "I look.\n\nI write two."
AFTER = f"{BEFORE}\n\nDone."


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("asks", ["say: write", "I look.", "look", "I write two."]),
        ("half", ["say: write", "I look.", "look", "I write two.", "May I call b? 2"]),
        ("answered", ["say: write", "I look.", "look", "I write two.", "May I call a? 1",
                      "May I call b? 2"]),
        ("goes on", ["say: write", "look", "May I call a? 1", "May I call b? 2", "a b"]),
        ("done", ["say: write", "I look.", "look", "I write two.", "May I call a? 1",
                  "May I call b? 2", "a b", "Done."]),
        ("stopped", ["say: write", "I look.", "look", "I write two."]),
    ],
)  # fmt: skip
def test_words_calls_and_answers_stand_in_the_order_of_the_run(
    state: str, expected: list[str]
) -> None:
    """Found by use: words before a question vanished, and answers stood in the order of clicks."""
    later = RunId("r2")
    asked = replace(
        ENDED, outcome=Outcome.INTERRUPTED, reason=Reason.APPROVAL, error=None,
        tools=_named_calls(("look", 7, 2)),
    )  # fmt: skip
    goes_on = replace(
        asked, id=later, follows=RUN_ID, outcome=None, reason=None,
        started_at=NOW + timedelta(seconds=9),
        tools=_named_calls(("a", len(BEFORE), 10), ("b", len(BEFORE), 11)),
    )  # fmt: skip
    context = replace(PAY.context, said=BEFORE)
    asks = [
        replace(
            PAY, id=ApprovalId(name), run_id=RUN_ID, context=context,
            asked_at=NOW + timedelta(seconds=3),
            request=replace(PAY.request, tool=name),
        )
        for name in "ab"
    ]  # fmt: skip
    asides, history = [], []
    # The second one is answered first.
    for number, at in ((1, 4), (0, 5)) if state not in ("asks", "stopped") else ():
        if (state, number) == ("half", 0):
            continue
        asks[number] = replace(
            asks[number], decision=Decision.ONCE, decided_at=NOW + timedelta(seconds=at)
        )
        text = f"🔐 May I call this tool?\n\n{'ab'[number]}\n\n✅ Allowed once by {number + 1}."
        asides.append(aside(Role.ASSISTANT, text, at))
    waits = Unanswered(5, said(5, "write"), None, NOW + timedelta(seconds=1))
    if state in ("asks", "half"):
        waits = replace(waits, asking_run=RUN_ID)
    elif state == "goes on":
        waits = replace(waits, run_id=later)
    runs = [goes_on, asked] if state in ("goes on", "done") else [asked]
    if state in ("done", "stopped"):
        words = AFTER if state == "done" else texts.interrupted_reply(BEFORE, Outcome.CANCELLED)
        run = later if state == "done" else RUN_ID
        history = [entry(Role.USER, "write", 1, run), entry(Role.ASSISTANT, words, 12, run)]
        runs[0] = replace(runs[0], outcome=Outcome.COMPLETED) if state == "done" else runs[0]
    queue = replace(QUEUE, messages=() if history else (waits,), unanswered=())
    lines = lines_of(history, runs, queue, asides, approvals=asks[::-1])
    shown: list[str] = []
    for line in lines:
        shown += filter(None, [" ".join(call.name for call in line.calls)])
        by = "say: " if line.entry.entry.role is Role.USER else ""
        words = line.words.replace("✅ Allowed once by ", "").rstrip(".") + "."
        shown += (
            [by + (words.rstrip(".") if line.is_answered or by else words)] if line.words else []
        )
    assert shown == expected
    assert len({line.id for line in lines}) == len(lines)
    assert [line.place for line in lines if line.is_answered] == [len(BEFORE)] * len(asides)


def test_a_run_that_asks_without_a_word_has_no_line_of_its_own() -> None:
    """Found by reading: the page of a conversation failed until the question was answered."""
    asked = replace(ENDED, outcome=Outcome.INTERRUPTED, reason=Reason.APPROVAL, tools=())
    question = replace(PAY, run_id=RUN_ID, asked_at=NOW + timedelta(seconds=3))
    waits = replace(a_dropped(5, 1), outcome=None, asking_run=RUN_ID)
    queue = replace(QUEUE, messages=(waits,), unanswered=())
    lines = lines_of([], [asked], queue, approvals=[question])
    assert [(line.words, line.is_end) for line in lines] == [(waits.message.text, True)]


def a_dropped(number: int, after_s: int, reason: Reason | None = Reason.STOPPED) -> Unanswered:
    """A message that was stopped before a run began with it."""
    came_at = NOW + timedelta(seconds=after_s)
    waited = Unanswered(number, said(number, f"dropped {number}"), None, came_at)
    outcome = Outcome.CANCELLED if reason is Reason.STOPPED else Outcome.DROPPED
    return replace(waited, outcome=outcome, reason=reason, finished_at=came_at)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (Reason.STOPPED, "Dropped: stopped while it waited."),
        (Reason.NEWER_MESSAGE, "Dropped: a newer message replaced it."),
        (Reason.TOO_DEEP, "Dropped: too deep."),
        (None, "Dropped."),
    ],
)
@pytest.mark.parametrize("is_answered_later", [False, True])
def test_a_dropped_message_stays_where_it_came(
    reason: Reason | None, words: str, *, is_answered_later: bool
) -> None:
    """Found by use: a message that was stopped while it waited was gone after a reload."""
    history = [entry(Role.USER, "ask", 2), entry(Role.ASSISTANT, "answer", 3)]
    dropped = replace(QUEUE, messages=(), unanswered=(a_dropped(1, 1, reason),))
    first, *others = lines_of(history if is_answered_later else [], [], dropped)
    assert (first.text, first.problem, first.message) == ("dropped 1", words, "1")
    assert (first.is_dropped, first.is_quiet) == (True, True)
    assert [line.text for line in others] == (["ask", "answer"] if is_answered_later else [])
    marked = replace(QUEUE, messages=(replace(a_dropped(1, 1, reason), finished_at=None),))
    assert lines_of([], [], replace(marked, unanswered=()))[0].problem == "", "it has not ended"
    begun = replace(a_dropped(1, 1, reason), run_id=RUN_ID)
    working = replace(ENDED, outcome=None, finished_at=None)
    lines = lines_of([], [working], replace(QUEUE, messages=(), unanswered=(begun,)))
    assert [line.problem for line in lines if line.is_end] == [""], "its run says how it ended"
    assert not any(line.is_dropped for line in lines_of(history, [], dropped, has_earlier=True))


def test_a_turn_that_was_stopped_while_it_asked_is_one_question_at_its_place() -> None:
    """Found by use: it stood there twice, the second time as if it had just come."""
    later = RunId("r2")
    asked = replace(ENDED, outcome=Outcome.INTERRUPTED, reason=Reason.APPROVAL)
    note = texts.interrupted_note(Outcome.CANCELLED)
    history = [entry(Role.USER, "who", 2, later), entry(Role.ASSISTANT, "Ann", 3, later)]
    history += [entry(Role.USER, "save", 1), entry(Role.ASSISTANT, note, 5)]
    waited = replace(a_dropped(1, 1), message=said(1, "save"), run_id=RUN_ID)
    question = "🔐 May I call this tool?\n\nwrite_file\n\nFrom: Ann\n\n⏹ Stopped."
    beside = [aside(Role.ASSISTANT, question, 5)]
    queue = replace(QUEUE, messages=(), unanswered=(waited,))
    lines = lines_of(history, [asked], queue, beside)
    assert [(line.text, line.problem) for line in lines] == [
        ("save", ""), ("", "Stopped. It had asked: May I call write_file?"),
        ("who", ""), ("Ann", ""),
    ]  # fmt: skip
    of_a_job = [aside(Role.ASSISTANT, question, 6)]
    assert (
        lines_of(history, [asked], queue, of_a_job)[-1].text == "May I call write_file? ⏹ Stopped."
    )


@pytest.mark.parametrize(
    ("answered", "told", "lines"),
    [
        ("", ["Overloaded."], [("", "Overloaded.")]),
        ("half", ["Overloaded."], [("half", "Overloaded.")]),
        ("half", ["half\n\nThe limit is reached."], [("half", "The limit is reached.")]),
        ("half", ["(Not sent.)", "Overloaded."], [("half", "Overloaded."), ("(Not sent.)", "")]),
        ("half", [], [("half", texts.FAILED)]),
        (None, ["Overloaded."], [("", "Overloaded.")]),
    ],
    ids=["no answer", "half", "repeated", "two", "no message", "no entry"],
)
def test_a_run_that_failed_is_explained_once_below_what_it_has_answered(
    answered: str | None, told: list[str], lines: list[tuple[str, str]]
) -> None:
    """Found by use: two bubbles, each with the raw error, for a model that broke off."""
    failed = replace(ENDED, outcome=Outcome.FAILED, reason=None, error="status_code: 503, body: {")
    history = [entry(Role.USER, "ask", 1)]
    if answered is not None:
        whole = texts.interrupted_reply(answered, Outcome.FAILED)
        history.append(entry(Role.ASSISTANT, whole, 2))
    beside = [
        aside(Role.ASSISTANT, text, 3 + number, f"m{number}", run_id=RUN_ID)
        for number, text in enumerate(told)
    ]
    found = [line for line in lines_of(history, [failed], None, beside) if line.is_end]
    assert [(line.text, line.problem) for line in found] == [("ask", ""), *lines]
    assert found[1].run == failed, "its tool calls are shown"
    explained = next(line for line in found if line.problem)
    assert explained.receipt == (beside[-1].id if beside else ""), "its buttons are there"
    assert lines_of([], [failed], None, beside) == [], "it was undone"


def test_a_copy_says_of_a_stopped_run_what_its_original_does() -> None:
    """The note is for the agent; the run of a copied entry is not known."""
    stopped = entry(Role.ASSISTANT, "1 2\n[cancelled]", 2)
    run = replace(ENDED, outcome=Outcome.CANCELLED, reason=Reason.STOPPED)
    for runs in ([run], []):
        _, line = lines_of([entry(Role.USER, "count", 1), stopped], runs, None)
        assert (line.text, line.problem, line.is_quiet) == ("1 2", "Stopped.", True)


DENIED = {"ok": False, "result": f"{NOT_MADE}a person has denied it."}


@pytest.mark.parametrize(
    ("end", "badge"),
    [
        ({"ok": True}, "good>ok"),
        ({"ok": False, "result": "no such file"}, "bad>failed"),
        (DENIED, "idle>denied"),
        ({"ok": False, "uncertain": True}, "busy>uncertain"),
        ({}, "idle>no result"),
    ],
)
async def test_only_a_call_that_failed_looks_like_a_fault(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, end: dict[str, Any], badge: str
) -> None:
    """Found by use: a call that its person had denied was red, as one that failed."""
    call = ToolCall("pay", "{}", NOW, **end)
    monkeypatch.setattr(fakes, "ENDED", replace(ENDED, tools=(call,)))
    meaning, _, word = badge.partition(">")
    await browser.says("/chat?name=local", f'<span class="badge {meaning}">{word}</span>')


def test_a_run_that_asked_a_person_is_no_line_of_its_own() -> None:
    asked = replace(ENDED, outcome=Outcome.INTERRUPTED, reason=Reason.APPROVAL)
    later = RunId("r2")
    history = [entry(Role.USER, "write", 1), entry(Role.ASSISTANT, "[interrupted]", 2)]
    history += [entry(Role.ASSISTANT, "Wrote it.", 3, later)]
    done = replace(ENDED, id=later, outcome=Outcome.COMPLETED, reason=None)
    lines = lines_of(history, [asked, done], None)
    assert [(line.text, line.problem) for line in lines] == [("write", ""), ("Wrote it.", "")]


async def test_the_page_shows_tools_problems_and_what_waits(browser: Browser) -> None:
    dropped = "Dropped: the queue was full, and it was the oldest."
    told = ("read_file", "no result", "Stopped.", dropped, "too much")
    text = await browser.says("/chat?name=local", *told)
    assert text.count('<li class="user waits"') == 1, "a run answers the other one"
    assert '<small class="place">next: others are answered first</small>' in text
    assert 'href="/chat?name=local" title="local" aria-current="true"' in text
    live = await browser.says("/chat?name=local", "data-busy")
    assert 'href="/sessions/view?key=agent%3Amain%3Aconsole%3Adirect%3Alocal"' in live


async def test_a_message_that_is_answered_while_the_page_is_made_stands_there_once(
    settled: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = Unanswered(8, said(8, "quick one"), None, NOW)
    answered = [entry(Role.USER, "quick one", 1), entry(Role.ASSISTANT, "done", 2)]
    # Read for what waits, and for the lines.
    queues = 2 * [replace(QUEUE, messages=(waits,), unanswered=())]
    queues += 9 * [replace(QUEUE, messages=(), unanswered=())]

    async def queue(_: FakeSessions, __: str) -> QueueView:
        return queues.pop(0)

    async def history(_: FakeSessions, __: str, *, limit: int, whole: bool) -> list[StoredEntry]:
        assert whole
        return answered[-limit:]

    monkeypatch.setattr(FakeSessions, "queue", queue)
    monkeypatch.setattr(FakeSessions, "history", history)
    text = await settled.says("/chat?name=local", "done")
    assert text.count("quick one</pre>") == 1


@pytest.mark.parametrize("entries", [2, 0])
async def test_no_turn_from_before_a_reset_can_be_undone(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, entries: int
) -> None:
    monkeypatch.setattr(fakes, "FULL", replace(fakes.FULL, entries=entries))
    talk = (await browser.get("/chat/talk?name=local")).text
    assert ("data-last" in talk) == bool(entries)


async def test_a_new_conversation_is_empty_and_lists_the_others(browser: Browser) -> None:
    text = await browser.says(
        "/chat?name=fresh", "What can main do for you?", "New conversation</a>"
    )
    assert 'href="/chat?name=local"' in text
    assert "/chat/export" not in text
    assert text.count("data-fill") == 3
    assert "data-busy" not in text


@pytest.mark.parametrize(("waiting", "running"), [(1, 0), (0, 1), (0, 0)])
async def test_the_list_marks_conversations_in_progress(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, waiting: int, running: int
) -> None:
    """Also while a run answers, when nothing waits any more."""
    monkeypatch.setattr(fakes, "FULL", replace(fakes.FULL, waiting=waiting, running=running))
    listed = (await browser.get("/chat?name=fresh")).text
    assert ('aria-label="in progress"' in listed) == bool(waiting or running)


async def test_the_list_marks_conversations_that_ask(
    browser: Browser, control: FakeControl
) -> None:
    control.questions.asked = [WIPE]
    await browser.says("/chat?name=fresh", 'aria-label="in progress"')
    control.questions.asked = [replace(PAY, session=fakes.SESSION)]
    listed = await browser.says("/chat?name=fresh", 'aria-label="asks you"')
    assert "May the agent do this?" not in listed


async def test_a_question_shows_all_of_a_long_value(browser: Browser, control: FakeControl) -> None:
    value = "x" * 200 + "y" * 5_000
    request = replace(PAY.request, arguments=json.dumps({"to": value}))
    control.questions.asked = [replace(PAY, session=fakes.SESSION, request=request)]
    page = await browser.says("/chat?name=local", "Show all: 5,000 more characters")
    dd = page.partition("panel ask")[2].partition("<dd>")[2].partition("</dd>")[0]
    assert re.sub(r"<summary>.*</summary>|<.*?>", "", dd) == value


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('{"path": "notes.txt"}', "notes.txt"),
        (json.dumps({"path": "a.txt", "content": "two\nlines"}), "a.txt"),
        (json.dumps({"path": "a.txt", "content": "x" * 81}), "a.txt"),
        ('{"to": "ann", "amount": 5}', "to: ann, amount: 5"),
        ("{}", ""),
        ('{"path": ""}', ""),
    ],
)
async def test_a_tool_call_is_shown_with_its_short_arguments(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, arguments: str, words: str
) -> None:
    run = replace(ENDED, tools=(ToolCall("look", arguments, NOW, ok=True),))
    monkeypatch.setattr(fakes, "ENDED", run)
    await browser.says("/chat/talk?name=local", f"<strong>look</strong> <bdi>{words}</bdi>")


async def test_without_a_name_the_newest_conversation_is_shown(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    await browser.says("/chat", 'data-chat="local"', 'data-live="/live/chat?name=local"')

    async def none(*_: object) -> list[object]:
        return []

    monkeypatch.setattr(FakeSessions, "list", none)
    await browser.says("/chat", 'data-chat="browser"')


async def test_a_conversation_is_exported(browser: Browser, control: FakeControl) -> None:
    answer = await browser.get("/chat/export?name=local")
    assert answer.headers["content-disposition"] == 'attachment; filename="local.md"'
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    at = "2026-01-02 03:04:05 UTC"
    asked = fakes.HISTORY[0].entry.text
    assert answer.text == (f"# Chat local\n\n## You, {at}\n\n{asked}\n\n## main, {at}\n\nyes\n")
    await browser.says("/chat/export?name=none", "there is no conversation none", status=404)
    await browser.says("/chat/export?name=%2F", "Conversation: “/” is not a name", status=422)


async def test_an_exported_conversation_has_the_words_of_the_page(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by use: "[cancelled]", "user", "assistant", and no line where it was reset."""
    half = texts.interrupted_reply("half", Outcome.CANCELLED)
    told = "[from the job “news”]\nNews."
    later = replace(entry(Role.USER, "who?", 3, RunId("r2")), resets=1)

    async def history(*_: object, **__: object) -> list[StoredEntry]:
        news = replace(entry(Role.ASSISTANT, told, 4, RunId("r3")), resets=1)
        return [entry(Role.USER, "ask", 1), entry(Role.ASSISTANT, half, 2), later, news]

    monkeypatch.setattr(FakeSessions, "history", history)
    lines = (await browser.get("/chat/export?name=local")).text.split("\n\n")
    assert [line.partition(",")[0].strip() for line in lines] == [
        "# Chat local", "## You", "ask", "## main", "half", "*Stopped.*", f"*{AFRESH}*", "## You",
        "who?", "## main (from the job “news”)", "News.",
    ]  # fmt: skip


# ---------------------------------------------------------------------------- conversations


async def test_a_conversation_is_renamed(browser: Browser, control: FakeControl) -> None:
    await browser.says("/chat?name=local", '<input id="title" name="title" value="local"')
    place = "/chat?name=local&notice=saved"
    await browser.leads("/chat/rename", place, name="local", title="<b>Plans")
    assert ("rename", fakes.SESSION, "<b>Plans") in control.calls
    long = "a title has at most 80 characters, not 4096"
    await browser.refuses("/chat/rename", 422, long, name="local", title="x" * 4096)
    gone = "there is no conversation none"
    await browser.refuses("/chat/rename", 404, gone, name="none", title="x")


async def test_a_conversation_has_its_title_as_text(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def names(_sessions: object, keys: Collection[str]) -> dict[str, str]:
        return dict.fromkeys(keys, "<b>Plans</b>")

    monkeypatch.setattr(FakeSessions, "names", names)
    answer = await browser.get("/chat?name=local")
    assert answer.text.count("<bdi>&lt;b&gt;Plans&lt;/b&gt;</bdi>") == 2
    export = await browser.get("/chat/export?name=local")
    assert export.text.startswith("# <b>Plans</b>\n")


async def test_a_conversation_is_deleted_after_a_question(
    browser: Browser, control: FakeControl
) -> None:
    told = ("deletes its history", 'href="/chat/export?name=local"', "It cannot be undone.")
    await browser.says("/chat/delete?name=local", *told)
    assert not any(call[0] == "delete" for call in control.calls)
    await browser.leads("/chat/delete", "/chat?notice=deleted", name="local")
    assert ("delete", fakes.SESSION) in control.calls
    await browser.says("/chat/delete?name=none", "there is no conversation none", status=404)


async def test_a_new_conversation_has_an_agent_and_a_name_of_its_own(settled: Browser) -> None:
    agents = '<option value="main" selected>main</option>'
    await settled.says("/chat?name=local", agents, '<option value="coder">coder</option>')
    answer = await settled.get("/chat/new?agent=coder")
    place = answer.headers["location"]
    assert re.fullmatch(r"/chat\?name=20260102-030405-[0-9a-f]{4}&agent=coder", place)
    await settled.says(place, 'data-agent="coder"', "coder · openai:x")
    await settled.says("/chat?name=local&agent=coder", 'data-agent="main"')
    await settled.says("/chat?name=x&agent=none", "there is no agent 'none'", status=404)
    await settled.says("/chat/new?agent=none", "there is no agent 'none'", status=404)


async def test_conversations_are_searched_by_the_store(
    browser: Browser, control: FakeControl
) -> None:
    """It knows their titles, and finds those that are not listed, too."""
    await browser.says("/chat?name=local&search=Trip", 'value="Trip"', "Show all")
    searches = [call[1] for call in control.calls if call[0] == "sessions"]
    assert SessionQuery(channel="console", search="Trip", limit=LISTED) in searches


@pytest.mark.parametrize(("text", "words"), [
    ("What does the Ferry\ncost?", "What does the Ferry cost?"),
    (f"{'far ' * 20}away the ferry {'goes ' * 20}", "…far far far far far away the ferry goes"),
    (f"{'x' * 60}ferry", f"…{'x' * 30}ferry"),
    ("the boat", ""),
])  # fmt: skip
def test_what_a_search_has_found_is_shown_with_the_words_around_it(text: str, words: str) -> None:
    hit = words_around("ferry", text)
    assert hit.startswith(words)
    assert (len(hit) <= 80, bool(hit)) == (True, bool(words))


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("ago", "words"),
    [
        (timedelta(), "Today"),
        (timedelta(hours=4), "Today"),
        (timedelta(hours=5), "Yesterday"),
        (timedelta(days=2), "Previous 7 days"),
        (timedelta(days=7), "Previous 7 days"),
        (timedelta(days=8), "December 2025"),
        (timedelta(days=400), "November 2024"),
    ],
)
def test_conversations_stand_below_the_day_of_their_reader(ago: timedelta, words: str) -> None:
    """It is 04:04 of 2 January in Berlin."""
    session = replace(fakes.FULL, last_active_at=NOW - ago)
    one = StoredConversation("local", AgentName("main"), "", session)
    assert by_day([one], NOW, BERLIN) == [(words, [one])]


async def test_a_time_zone_that_is_none_is_utc(browser: Browser) -> None:
    for zone in ("Europe/Berlin", "None/Such", "../../etc/passwd", "x" * 300):
        page = await browser.get("/chat", params={"name": "local", "zone": zone})
        assert (page.status_code, page.text.count("Today</h3>")) == (200, 1)


async def test_a_conversation_is_forked_at_an_answer(
    browser: Browser, control: FakeControl
) -> None:
    answer = await browser.send_form("/chat/fork", name="local", run=RUN_ID)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/chat?name=fork-")
    assert ("fork", fakes.SESSION, RUN_ID) in control.calls
    (renamed,) = [call for call in control.calls if call[0] == "rename"]
    assert renamed[2] == "Fork of local"
    await browser.refuses("/chat/fork", 404, "there is no conversation none", name="none")


# ---------------------------------------------------------------------------- approvals


async def test_a_question_is_answered_in_its_conversation_only(
    browser: Browser, control: FakeControl
) -> None:
    mine = replace(PAY, session=fakes.SESSION)
    control.questions.asked = [mine, WIPE]
    text = await browser.says("/chat?name=local", "May the agent do this?", "<code>pay</code>")
    assert "wipe" not in text
    decide = {"name": "local", "id": mine.id}
    await browser.refuses("/chat/decide", 422, "other answers", decision="again", **decide)
    late = "/chat?name=local&notice=late"
    for other in (WIPE.id, "", "nonsense"):
        await browser.leads("/chat/decide", late, name="local", id=other, decision="deny")
    answered = "/chat?name=local&notice=answered"
    await browser.leads("/chat/decide", answered, decision="once", **decide)
    assert ("decide_approval", mine.id, Decision.ONCE, "") in control.calls
    await browser.leads("/chat/decide", late, decision="once", **decide)


# ---------------------------------------------------------------------------- files

SAVED = "application/octet-stream", "attachment"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


@pytest.fixture
async def settled(control: FakeControl, tmp_path: Path) -> AsyncIterator[Browser]:
    """A dashboard with two agents and files."""
    main = AgentName("main")
    agents = {main: "offline", AgentName("coder"): "openai:x"}
    parts = SiteParts(agents=agents, workspaces={main: tmp_path}, uploads=FakeUploads())
    site = make_site(
        control, lend_api(control), WebAccess("127.0.0.1", now_s=NOW.timestamp), parts=parts
    )
    async with Browser(site) as made:
        yield made


async def test_a_file_is_uploaded(settled: Browser, browser: Browser) -> None:
    await settled.says("/chat?name=local", 'data-max-files="3" data-max-bytes="100"')
    json = {"accept": "application/json"}
    for content, name, status, answer in (
        (b"abc", "../a.txt", 200, {"ref": "3", "name": "../a.txt", "kind": "document"}),
        (b"", "a", 422, {"error": "the file is empty"}),
        (bytes(101), "a", 413, {"error": "the file is larger than 0 MB"}),
        (b"abc", "x" * 1025, 422, {"error": "the name has more than 1024 characters"}),
    ):
        got = await settled.post(
            "/chat/files", params={"name": name}, content=content, headers=json
        )
        assert (got.status_code, got.json()) == (status, answer)
    assert (await browser.post("/chat/files", content=b"x", headers=ORIGIN)).status_code == 422
    assert 'id="attach"' not in await browser.says("/chat?name=local")


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (PNG, ("image/png", "inline")),
        (b"<script>1</script>", SAVED),
        (b"<svg onload='1'/>", SAVED),
        (b"", SAVED),
    ],
)
async def test_only_pictures_are_shown_and_nothing_in_them_runs(
    settled: Browser,
    control: FakeControl,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    content: bytes,
    expected: tuple[str, str],
) -> None:
    (tmp_path / "a.png").write_bytes(content)
    file = OutFile(FileKind.PHOTO, str(tmp_path / "a.png"), 'a"\r\nX: 1\u202e.png', "image/png")
    give(monkeypatch, control, file)
    got = await settled.get("/chat/file", params={"run": RUN_ID, "path": file.path})
    assert (got.status_code, got.content) == (200, content)
    kind, shown = expected
    assert got.headers["content-type"] == kind
    name = "filename*=UTF-8''a%22%0D%0AX%3A%201%E2%80%AE.png"
    assert got.headers["content-disposition"] == f"{shown}; {name}"
    assert "default-src 'none'; sandbox" in got.headers["content-security-policy"]
    assert got.headers["x-content-type-options"] == "nosniff"


@pytest.mark.real_time
async def test_only_files_of_a_run_that_are_in_the_workspace_are_given(
    settled: Browser, control: FakeControl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "a.txt").write_text("a")
    paths = [str(tmp_path / name) for name in ("a.txt", "link", "gone", "..")]
    give(
        monkeypatch,
        control,
        *(OutFile(FileKind.DOCUMENT, path, "x") for path in (*paths, "/etc/passwd")),
    )
    statuses = {}
    for path in (*paths, "/etc/passwd", str(tmp_path / "secret"), "", "\0"):
        got = await settled.get("/chat/file", params={"run": RUN_ID, "path": path})
        statuses[path.removeprefix(str(tmp_path))] = got.status_code
    assert statuses.pop("/a.txt") == 200
    assert set(statuses.values()) == {404}


def give(patch: pytest.MonkeyPatch, control: FakeControl, *files: OutFile) -> None:
    """Let the run of the fakes have sent files."""

    async def run_history(run: RunId) -> list[StoredEntry]:
        assert run == RUN_ID
        said = HistoryEntry(Role.ASSISTANT, "here", files=files)
        return [StoredEntry(said, NOW, RUN_ID)]

    patch.setattr(control.stored_runs, "run_history", run_history)


def test_an_answer_stands_below_what_it_answers_though_more_was_said_meanwhile() -> None:
    first, second = RunId("r1"), RunId("r2")
    history = [
        entry(Role.USER, "one?", 1, first), entry(Role.USER, "two?", 2, second),
        entry(Role.ASSISTANT, "one.", 3, first), entry(Role.ASSISTANT, "two.", 4, second),
        entry(Role.USER, "three?", 5), entry(Role.ASSISTANT, "three.", 6),
    ]  # fmt: skip
    said = [line.text for line in lines_of(history, [], None)]
    assert said == ["one?", "one.", "two?", "two.", "three?", "three."]


async def test_files_stand_beside_the_text_of_a_message(
    settled: Browser, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    photo = OutFile(FileKind.PHOTO, "/w/1-<b>.png", "<b>.png", "image/png")
    paper = OutFile(FileKind.DOCUMENT, "/w/2.pdf", "a b.pdf")
    text = "look\n[photo “<b>.png”]\n[document “a b.pdf”]"
    said = StoredEntry(HistoryEntry(Role.USER, text, files=(photo, paper)), NOW, RUN_ID)
    monkeypatch.setattr(fakes, "HISTORY", [said])
    page = (await settled.get("/chat?name=local")).text
    assert "<pre>look</pre>" in page
    assert f'<img src="/chat/file?run={RUN_ID}&amp;path=%2Fw%2F1-%3Cb%3E.png"' in page
    assert "<bdi>&lt;b&gt;.png</bdi>" in page
    assert "download><bdi>a b.pdf</bdi>" in page


async def test_the_lines_that_are_read_anew_are_those_of_the_whole_page(browser: Browser) -> None:
    whole = (await browser.get("/chat?name=local")).text
    lines = (await browser.get("/chat/talk?name=local")).text
    assert lines.count("<li class=") > 2
    assert lines.strip() in whole


def test_a_run_that_goes_on_has_the_calls_that_returned_before() -> None:
    """Found by use: of three calls that a person allowed one by one only the last was shown."""
    ids = [RunId(f"r{number}") for number in range(4)]
    calls = [ToolCall(f"write_{number}", "{}", NOW) for number in range(3)]
    made = [replace(call, ok=True) for call in calls]
    tools = [(calls[0],), (made[0], calls[1]), (made[1], calls[2]), (made[2],)]
    runs = [
        replace(
            ENDED,
            id=one,
            started_at=NOW + timedelta(seconds=at),
            prompt="write",
            tools=tools[at],
            follows=ids[at - 1] if at else None,
        )
        for at, one in enumerate(ids)
    ]
    asked = [replace(one, outcome=Outcome.INTERRUPTED) for one in runs[:3]]
    # Somebody wrote the same once more.
    other = replace(runs[3], id=RunId("other"), started_at=runs[2].started_at, tools=())
    other = replace(other, follows=None)
    done = replace(runs[3], outcome=Outcome.COMPLETED, reason=None)
    history = [entry(Role.USER, "write", 1, ids[0]), entry(Role.ASSISTANT, "Done.", 9, ids[3])]
    history += [entry(Role.ASSISTANT, "Else.", 10, other.id)]
    lines = lines_of(history, [done, *reversed(asked), other], None)
    found = {line.text: line.run.tools for line in lines if line.run}
    assert found["Done."] == tuple(made)
    assert found["Else."] == ()


def test_each_line_keeps_its_own_name_when_others_come_before_it() -> None:
    first, second = RunId("r1"), RunId("r2")
    history = [
        entry(role, role.value, at, run)
        for at, (role, run) in enumerate(product(Role, (first, second)))
    ]
    history += [entry(Role.USER, "twice", 9, second)]
    names = [line.id for line in lines_of(history, [], None)]
    assert len(set(names)) == len(names) == 5
    assert {line.id for line in lines_of(history[1:], [], None)} < set(names)


@pytest.mark.parametrize("most", ["1", "2", "3", "0", "x", "999999999999"])
async def test_it_is_said_whether_there_are_earlier_lines(browser: Browser, most: str) -> None:
    answer = await browser.get(f"/chat/talk?name=local&most={most}")
    assert answer.status_code == 200
    assert ("x-earlier" in answer.headers) is (most in "012")


async def test_a_long_message_is_copied_and_edited_whole(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by use: the page cut it at 20,000 characters, and an edit sent what was left."""
    text = "x" * 50_000
    monkeypatch.setattr(fakes, "HISTORY", [entry(Role.USER, text, 1)])
    await browser.says("/chat?name=local", f'data-text="{text}"')
