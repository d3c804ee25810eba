"""The pages of runs (SPEC OPS-3)."""

from __future__ import annotations

import html
import re
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from urllib.parse import urlencode

import pytest

from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.messages import HistoryEntry, Role, Target
from goclaw_py.core.outcomes import FAILURES, Outcome, Reason, Trigger
from goclaw_py.core.run_events import Usage
from goclaw_py.operations.runs.operations import RunRecord
from goclaw_py.operations.runs.steps import step_bars
from goclaw_py.operations.runs.timeline import ROWS, Swim, draw
from goclaw_py.records import (
    OutboxQuery,
    OutboxRow,
    RunFilter,
    RunOrder,
    RunQuery,
    RunSpan,
    StoredEntry,
    StoredRun,
    ToolCall,
)
from goclaw_py.runs.step_views import StepKind, StepView
from tests.support.run_filters import EVERY_FILTER, values
from tests.unit.web import fakes
from tests.unit.web.fakes import FakeControl
from tests.unit.web.pages.conftest import Browser

DAY = fakes.NOW.replace(microsecond=0) - timedelta(days=1)
HOUR = DAY + timedelta(hours=23)
HOURS = timedelta(hours=1)
ONE_PAGE = RunQuery(limit=51)
FIELDS = {one.name for one in fields(RunFilter)}
NOT_ON_THE_TIMELINE = {"sender"}
BY_TAB = {"show" if one == "outcome" else one: text for one, text in values(EVERY_FILTER).items()}


def picked(only: RunFilter) -> set[str]:
    """The fields by which a filter selects."""
    return {name for name in FIELDS if getattr(only, name) is not None}


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("", replace(ONE_PAGE, since=DAY)),
        ("show=failed&range=all", replace(ONE_PAGE, only=RunFilter(outcome=Outcome.FAILED))),
        ("show=running&range=all", replace(ONE_PAGE, active=True)),
        (urlencode(BY_TAB | {"range": "1h"}), replace(ONE_PAGE, only=EVERY_FILTER, since=HOUR)),
        ("from=2026-02-28T12:00:00%2B02:00",
         replace(ONE_PAGE, since=datetime(2026, 2, 28, 10, tzinfo=UTC))),
        ("order=cost&range=all", replace(ONE_PAGE, order=RunOrder.COST)),
        ("order=duration&page=3&before=x&range=all",
         replace(ONE_PAGE, order=RunOrder.DURATION, limit=151)),
        ("order=newest&range=all", ONE_PAGE),
        ("session=agent:main:x&range=all", replace(ONE_PAGE, session=SessionKey("agent:main:x"))),
        ("agent=former&other=1&range=all",
         replace(ONE_PAGE, only=RunFilter(agent=AgentName("former")))),
    ],
)  # fmt: skip
async def test_the_address_selects_runs(
    browser: Browser, control: FakeControl, query: str, wanted: RunQuery
) -> None:
    assert (await browser.get(f"/runs?{query}")).status_code == 200
    asked = {call[0]: call[1] for call in control.calls if call[0] in ("runs", "run_counts")}
    assert asked == {"runs": wanted, "run_counts": wanted}


async def test_the_address_selects_runs_of_the_timeline(
    browser: Browser, control: FakeControl
) -> None:
    query = urlencode(values(EVERY_FILTER))
    assert (await browser.get(f"/timeline?{query}")).status_code == 200
    (*_, only) = next(call for call in control.calls if call[0] == "runs_between")
    assert only == replace(EVERY_FILTER, sender=None)
    assert picked(only) == FIELDS - NOT_ON_THE_TIMELINE


async def test_the_page_has_counts_names_and_filters_that_stay(
    browser: Browser, control: FakeControl
) -> None:
    control.named = KnownNames({Target("telegram", "default", "7"): "Ann <i>"})
    text = (await browser.get("/runs?range=7d&sender=telegram/default/7&show=failed")).text
    assert "all <small>43</small>" in text
    assert "failed <small>2</small>" in text
    assert "Ann &lt;i&gt;" in text
    assert "show=completed" in text
    assert "range=7d&amp;sender=telegram%2Fdefault%2F7&amp;show=completed" in text


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("/runs?agent=main&trigger=cron&show=failed&range=7d",
         "/timeline?agent=main&trigger=cron&outcome=failed"),
        ("/runs?show=any_failure&search=x", "/timeline"),
        ("/timeline?agent=main&trigger=cron&outcome=lost&span=6h",
         "/runs?agent=main&trigger=cron&show=lost"),
        ("/timeline", "/runs"),
        ("/runs?order=cost", "/timeline?order=cost"),
        ("/timeline?order=cost", "/runs?order=cost"),
    ],
)  # fmt: skip
async def test_filters_stay_from_the_list_to_the_timeline_and_back(
    browser: Browser, here: str, there: str
) -> None:
    name = "Timeline" if here.startswith("/runs") else "List"
    assert f'<a href="{there}">{name}</a>' in html.unescape((await browser.get(here)).text)


@pytest.mark.parametrize("path", ["/runs?range=all", "/sessions/view?key=local", "/timeline"])
async def test_a_run_in_progress_lasts_since_its_start(browser: Browser, path: str) -> None:
    said = await browser.says(path)
    row = said[said.index(f'-{fakes.ACTIVE.id}">') :].partition("</tr>")[0]
    assert re.search(r'<td class="number[^>]*><time [^>]*data-lasting', row)


async def test_what_a_stopped_response_used_is_not_said_to_be_nothing(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fakes, "ENDED", replace(fakes.ENDED, usage=Usage(1)))
    said = await browser.says("/runs/0190-aaaa", "<dt>Tokens</dt><dd>unknown")
    assert "0 <small>0 in" not in said


async def test_older_rows_lead_back_to_the_newest(browser: Browser) -> None:
    here = "/runs?agent=main&range=7d"
    assert ">Newest</a>" not in await browser.says(here)
    said = await browser.says(f"{here}&before={fakes.ACTIVE.cursor}")
    link = re.search('<a class="button" href="([^"]*)">Newest</a>', said)
    assert link is not None
    assert html.unescape(link[1]) == "/runs?range=7d&agent=main"


async def test_the_slow_and_the_dear_come_first_on_all_pages_of_a_list(
    browser: Browser, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = [
        replace(fakes.ENDED, id=RunId(f"r{n:03}"), finished_at=fakes.ENDED.started_at + n * HOURS)
        for n in range(1, 61)
    ]

    async def listed(query: RunQuery) -> list[StoredRun]:
        return begun[::-1][: query.limit]

    async def counts(query: RunQuery) -> dict[Outcome | None, int]:
        return {Outcome.COMPLETED: len(begun)}

    monkeypatch.setattr(control.stored_runs, "runs", listed)
    monkeypatch.setattr(control.stored_runs, "run_counts", counts)
    said = await browser.says("/runs?order=duration&agent=main&range=all")
    assert re.findall("run-r([0-9]+)", said) == [f"{n:03}" for n in range(60, 10, -1)]
    assert re.findall(r'aria-sort="descending"><a href="([^"]*)"', said) == [
        "/runs?range=all&agent=main&order=duration"
    ]
    assert '<a href="/runs?range=all&agent=main&order=cost" data-sort' in said
    assert '<a href="/runs?range=all&agent=main" data-sort' in said, "by time again"
    assert '<option value="duration" selected>longest first</option>' in said
    assert "<small>longest first</small></summary>" in said, "where a phone folds the filters"
    assert 'class="number" data-label="lasted"' in said, "also on a phone"
    more = re.search('<a class="button" href="([^"]*)">Next</a>', said)
    assert more is not None
    second = await browser.says(more[1])
    assert re.findall("run-r([0-9]+)", second) == [f"{n:03}" for n in range(10, 0, -1)]
    assert ">Previous</a>" in second


@pytest.mark.parametrize(
    ("query", "of"),
    [
        ("", "451 to 500 of the first 500 of 2,111 in this order"),
        ("&search=x", "451 to 500 of 500"),
    ],
)
async def test_a_list_in_another_order_says_where_it_ends(
    browser: Browser,
    control: FakeControl,
    monkeypatch: pytest.MonkeyPatch,
    query: str,
    of: str,
) -> None:
    async def listed(query: RunQuery) -> list[StoredRun]:
        return [replace(fakes.ENDED, id=RunId(f"r{n:04}")) for n in range(2111, 0, -1)][
            : query.limit
        ]

    async def counts(query: RunQuery) -> dict[Outcome | None, int]:
        return {Outcome.COMPLETED: 2111}

    monkeypatch.setattr(control.stored_runs, "runs", listed)
    monkeypatch.setattr(control.stored_runs, "run_counts", counts)
    for number in (10, 11):
        said = await browser.says(f"/runs?order=cost&page={number}{query}")
        assert said.count('id="run-') == 50
        assert of in said
        assert ">Next</a>" not in said


async def test_the_table_of_the_timeline_says_how_many_of_the_drawn_runs_it_has(
    browser: Browser, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def between(*_: object, **__: object) -> list[RunSpan]:
        return [replace(fakes.SPAN, id=RunId(f"r{n}")) for n in range(runs)]

    monkeypatch.setattr(control.stored_runs, "runs_between", between)
    for runs, words in ((100, "The same as a table (100 runs)"), (101, "newest 100 of 101 runs")):
        said = await browser.says(f"/timeline?agent=a{runs}", words)
        assert said.count('<tr id="row-') == 100


async def test_what_is_shown_up_to_now_has_no_later_time(browser: Browser) -> None:
    assert ">Later</a>" not in await browser.says("/timeline", ">Earlier</a>")
    past = "/timeline?from=2025-01-01&to=2025-01-02"
    await browser.says(past, ">Later</a>")


async def test_any_failure_lists_exactly_the_outcomes_that_the_first_page_counts(
    browser: Browser, control: FakeControl
) -> None:
    """The figure of today leads there; a page of it is the newest of all of these."""
    address = "/runs?show=any_failure&range=today"
    text = (await browser.get(address)).text
    asked: list[Any] = [call[1] for call in control.calls if call[0] == "runs"]
    assert {query.only.outcome for query in asked} == FAILURES
    assert {query.since for query in asked} == {fakes.NOW.replace(hour=0, minute=0, second=0)}
    assert 'aria-current="true">any failure <small>2</small>' in text


# ---------------------------------------------------------------------------- one run


async def test_a_run_explains_itself_and_shows_what_was_sent_and_each_step(
    browser: Browser,
) -> None:
    """SPEC OPS-3, OPS-4."""
    said = await browser.says("/runs/0190-aaaa", "<h1><bdi>Grüße")
    assert "Run 0190-aaaa failed: no such model." in said
    assert "goclaw deliveries incoming retry 7" in said
    answer = said[said.index('id="answer"') : said.index('id="why"')]
    assert "hello" in answer
    assert "chat not found" in answer
    assert '"path": "ä"' in said
    steps = said[said.index('id="steps"') :]
    assert steps.count("<details") == 5
    assert "no money" in steps


async def test_the_answer_of_a_run_is_shown_as_in_its_chat_with_its_source(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where people read it as Markdown; another channel has markup of its own."""
    message = replace(fakes.DEAD.message, text="**done** <b>", rich=True)
    telegram = replace(message, target=Target("telegram", "default", "7"))
    for sent, words in ((message, "<strong>done</strong> &lt;b&gt;"), (telegram, "<pre>**done**")):
        monkeypatch.setattr(fakes, "DEAD", replace(fakes.DEAD, message=sent))
        text = (await browser.get("/runs/0190-aaaa")).text
        answer = text[text.index('id="answer"') : text.index('id="why"')]
        assert words in answer
        assert "<pre>**done** &lt;b&gt;</pre>" in answer


async def test_a_run_that_asked_a_person_is_called_as_the_filter_calls_it(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = replace(fakes.ENDED, outcome=Outcome.INTERRUPTED, reason=Reason.APPROVAL)
    done = replace(fakes.ENDED, outcome=Outcome.COMPLETED, reason=None)
    for run, badge in (
        (asked, '<span class="badge idle">interrupted</span> <small>asked for an approval</small>'),
        (done, '<span class="badge good">completed</span>'),
    ):
        monkeypatch.setattr(fakes, "ENDED", run)
        assert badge in (await browser.get("/runs?show=&range=all")).text


async def test_a_run_is_retried_by_the_messages_that_it_did_not_answer(
    browser: Browser, control: FakeControl
) -> None:
    assert 'action="/runs/retry"' in (await browser.get("/runs/0190-aaaa")).text
    letter = (await control.stored_runs.letters_of(fakes.ENDED.id))[0]
    control.messages.mail = [letter]
    place = "/runs/view?id=0190-aaaa&retried=2"
    await browser.leads("/runs/retry", place, run="0190-aaaa")
    assert ("retry_dead_letters", (2,)) in control.calls
    running = (await browser.get("/runs/0190-bbbb")).text
    assert 'action="/runs/retry"' not in running
    assert 'action="/stop"' in running
    nothing = "/runs/view?id=0190-bbbb&notice=nothing"
    await browser.leads("/runs/retry", nothing, run="0190-bbbb")


async def test_a_retried_run_leads_to_the_run_that_follows(
    browser: Browser, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence, not that it will be retried and cannot be."""
    monkeypatch.setattr(fakes, "QUEUE", replace(fakes.QUEUE, unanswered=()))
    (letter,) = control.messages.mail = control.messages.mail[:1]
    place = f"/runs/view?id=0190-aaaa&retried={letter.row.id}"
    row = replace(letter.row, run_id=None, outcome=None)
    control.messages.mail = [replace(letter, row=row)]
    said = await browser.says(place, "Retried: its message waits for a run.")
    assert "cannot be retried" not in said
    control.messages.mail = [replace(letter, row=replace(row, run_id=RunId("0190-bbbb")))]
    said = await browser.says(place, 'Retried by run <a class="id" href="/runs/0190-bbbb">')
    assert "cannot be retried" not in said
    for other in ("77", "x", "9" * 30):
        await browser.says(f"/runs/view?id=0190-aaaa&retried={other}", "It cannot be retried here")


async def test_of_a_run_in_progress_the_chat_has_the_text(
    browser: Browser, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record of a run has its text when that is sent."""

    async def none(_query: OutboxQuery) -> list[OutboxRow]:
        return []

    monkeypatch.setattr(control.stored_runs, "outbox", none)
    monkeypatch.setattr(fakes, "ACTIVE", replace(fakes.ACTIVE, session=fakes.SESSION))
    said = await browser.says("/runs/0190-bbbb", "The answer is being written.")
    assert 'href="/chat?name=local"' in said
    other = SessionKey("agent:main:telegram:direct:7")
    monkeypatch.setattr(fakes, "ACTIVE", replace(fakes.ACTIVE, session=other))
    said = await browser.says("/runs/0190-bbbb", "It will be sent to")
    assert "/chat?" not in said


async def test_a_list_names_the_sender_only_where_others_write_too(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = SessionKey("agent:main:telegram:group:-100")
    for session, times in ((fakes.SESSION, 0), (group, 1)):
        run = replace(fakes.ENDED, session=session, sender="telegram/default/7")
        monkeypatch.setattr(fakes, "ENDED", run)
        text = (await browser.get("/runs?range=all")).text
        assert text.count("Only runs of telegram/default/7") == times


async def test_an_interrupted_run_is_not_said_to_be_retried(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run continues it, for example after an approval: its explanation names that."""
    monkeypatch.setattr(fakes, "QUEUE", replace(fakes.QUEUE, unanswered=()))
    monkeypatch.setattr(fakes, "ENDED", replace(fakes.ENDED, outcome=Outcome.INTERRUPTED))
    assert "cannot be retried" not in await browser.says("/runs/0190-aaaa", "interrupted")


async def test_a_stopped_run_shows_the_beginning_of_its_answer(
    browser: Browser, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its chat has it, too."""
    monkeypatch.setattr(fakes, "ENDED", replace(fakes.ENDED, outcome=Outcome.CANCELLED))
    entry = HistoryEntry(Role.ASSISTANT, "1 2 3\n[cancelled]")
    stored = StoredEntry(entry, fakes.NOW, fakes.ENDED.id)
    record = RunRecord(fakes.ENDED, (stored,), ())

    async def shown(_self: object, _prefix: str) -> RunRecord:
        return record

    monkeypatch.setattr(type(control.runs), "record", shown)
    said = await browser.says("/runs/0190-aaaa", "1 2 3")
    assert "It has sent no message" not in said


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "its message is no longer stored"),
        ({"session": SessionKey("agent:main:cron:job-1")}, '<a href="/jobs/job-1">its job</a>'),
        ({"parent": fakes.ACTIVE.id}, "started it"),
        ({"trigger": Trigger.HEARTBEAT}, '<a href="/heartbeats/main">'),
    ],
)
async def test_a_run_that_cannot_be_retried_says_why(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], words: str
) -> None:
    monkeypatch.setattr(fakes, "QUEUE", replace(fakes.QUEUE, unanswered=()))
    monkeypatch.setattr(fakes, "ENDED", replace(fakes.ENDED, **changes))  # type: ignore[arg-type]
    said = await browser.says("/runs/0190-aaaa", "It cannot be retried here:", words)
    assert 'action="/runs/retry"' not in said


@pytest.mark.parametrize(
    ("reason", "changes", "words"),
    [
        (Reason.APPROVAL, {"waits": True}, 'It waits for <a href="/approvals">an answer</a>'),
        (Reason.APPROVAL, {"later": fakes.ACTIVE.id}, "Continued in run"),
        (Reason.SHUTDOWN, {"waits": True}, "Its message waits for a run."),
        (Reason.CRASHED, {"waits": True}, "its message was retried, and waits for a run."),
        (Reason.CRASHED, {"later": fakes.ACTIVE.id}, "its message was retried by run"),
    ],
)
async def test_a_run_says_what_became_of_its_message(
    browser: Browser,
    control: FakeControl,
    monkeypatch: pytest.MonkeyPatch,
    reason: Reason,
    changes: dict[str, Any],
    words: str,
) -> None:
    """One that asked a person has not failed: for a reader it is one run that waited."""
    outcome = Outcome.LOST if reason is Reason.CRASHED else Outcome.INTERRUPTED
    run = replace(fakes.ENDED, outcome=outcome, reason=reason)
    record = RunRecord(run, (), (), **changes)

    async def shown(_self: object, _prefix: str) -> RunRecord:
        return record

    monkeypatch.setattr(type(control.runs), "record", shown)
    said = await browser.says("/runs/0190-aaaa", words)
    assert ("asked for an approval" in said) == (reason is Reason.APPROVAL)


def test_steps_are_bars_on_the_time_of_the_run() -> None:
    """Of a model only what other steps say is known: it works while no tool does."""
    start = fakes.NOW
    end = start + timedelta(seconds=10)
    tool = ToolCall("pay", "{}", start + timedelta(seconds=2), True, 3.0, True, "done")
    run = replace(fakes.ENDED, started_at=start, finished_at=end, tools=(tool,))
    views = (
        StepView(1, StepKind.RESPONSE),
        StepView(2, StepKind.CALL, "pay"),
        StepView(3, StepKind.RESULT, "pay", "done", True),
        StepView(4, StepKind.RESPONSE),
        StepView(5, StepKind.CALL, "gone"),
    )
    bars = step_bars(RunRecord(run, (), (), views), end)
    found = [(bar.view and bar.view.number, bar.x, bar.width, bar.is_estimated) for bar in bars]
    assert found == [
        (1, 0, 200, True), (2, 200, 300, False), (4, 500, 500, True), (5, 0, 0, False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lasted_s", "seconds", "finished", "expected"),
    [
        # The last response is not stored: it is the answer, is being made, or was cut short.
        (10, 1.0, True, [(0, 200), (200, 100), (300, 700)]),
        (10, 1.0, False, [(0, 200), (200, 100), (300, 700)]),
        (10, None, False, [(0, 200), (200, 800)]),  # the tool is running
        (3.01, 1.0, True, [(0, 664.5), (664.5, 332.2)]),
        (10, 0.0, False, [(0, 1000)]),  # no step yet
        (10, 0.0, True, []),
    ],
)
def test_the_last_response_has_a_bar(
    lasted_s: float, seconds: float | None, finished: bool, expected: list[tuple[float, float]]
) -> None:
    start, end = fakes.NOW, fakes.NOW + timedelta(seconds=lasted_s)
    tool = ToolCall("pay", "{}", start + timedelta(seconds=2), True, seconds, True, "done")
    views = (StepView(1, StepKind.RESPONSE), StepView(2, StepKind.CALL, "pay"))
    run = replace(fakes.ENDED, started_at=start, finished_at=end if finished else None)
    run = replace(run, tools=() if seconds == 0.0 else (tool,))
    bars = step_bars(RunRecord(run, (), (), views if seconds != 0.0 else ()), end)
    assert [(bar.x, bar.width) for bar in bars] == expected


async def test_the_timeline_says_which_time_it_shows_and_what_its_colours_mean(
    browser: Browser,
) -> None:
    said = await browser.says("/timeline?span=24h", "</time> to now</small>", 'data-clock="dated"')
    legend = said[said.index("<output") : said.index("Drag over")]
    assert all(one.value.replace("_", " ") in legend for one in Outcome)
    past = "/timeline?from=2025-01-30T12:00Z&to=2025-01-31T12:00Z"
    until = 'to <time datetime="2025-01-31T12:00:00.000Z" data-clock="dated">'
    await browser.says(past, until)


async def test_there_is_a_way_to_all_only_where_a_filter_is_set(browser: Browser) -> None:
    """Found by use: the tab of a time span counted as a filter."""
    assert ">show all</a>" not in await browser.says("/timeline?span=24h")
    said = await browser.says("/timeline?span=24h&agent=main")
    assert '<a href="/timeline?span=24h">show all</a>' in said


async def test_an_unknown_run_is_not_answered_with_commands(browser: Browser) -> None:
    """A page leads on by its links; commands are for terminals."""
    answer = await browser.get("/runs/none", headers={"accept": "text/html"})
    assert answer.status_code == 404
    assert "There is no run" in html.unescape(answer.text).replace("there is", "There is")
    assert "goclaw runs list" not in answer.text


async def test_runs_that_do_not_fit_below_each_other_are_counted(
    browser: Browser, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are drawn in the last row, where some cover others."""
    at = fakes.NOW - timedelta(minutes=10)
    begun = replace(fakes.SPAN, started_at=at, finished_at=at + timedelta(minutes=5))

    async def between(_self: object, *_span: object, **_only: object) -> list[RunSpan]:
        return [replace(begun, id=RunId(f"run-{number}")) for number in range(ROWS + 48)]

    monkeypatch.setattr(type(control.runs), "between", between)
    text = await browser.says("/timeline?span=1h", "main (+48 in the last row)")
    picture = text[text.index('id="picture"') : text.index("<output", text.index('id="picture"'))]
    assert picture.count('<a href="/runs/run-') == ROWS + 48
    assert 'href="/timeline?whole=main"' in picture
    whole = await browser.says("/timeline?whole=main", "Show fewer rows")
    assert "in the last row" not in whole
    few = replace(begun, id=RunId("one"))

    async def one(_self: object, *_span: object, **_only: object) -> list[RunSpan]:
        return [few]

    monkeypatch.setattr(type(control.runs), "between", one)
    assert "in the last row" not in await browser.says("/timeline?span=1h", "main")


def test_runs_one_after_the_other_share_a_row_of_the_timeline() -> None:
    """Short ones are drawn longer than they were: no lane looks fuller than it ever was."""
    since = fakes.NOW - timedelta(days=1)
    second = timedelta(seconds=1)
    spans = [
        replace(fakes.SPAN, started_at=at, finished_at=at + lasts)
        for at, lasts in (
            *((since + n * 2 * second, second) for n in range(20)),
            (since + timedelta(hours=1), timedelta(hours=2)),
            (since + timedelta(hours=2), second),
        )
    ]
    (swim,) = cast("list[Swim]", draw(spans, since, fakes.NOW)["swims"])
    rows = sorted({one.y for one in swim.strokes})
    assert [rows.index(one.y) for one in swim.strokes] == [0] * 21 + [1]
