"""The page of all sessions (SPEC OPS-3)."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlencode

import pytest

from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.records import NEWEST_SESSIONS, Session, SessionQuery, SessionState
from tests.unit.web import fakes
from tests.unit.web.fakes import FakeControl
from tests.unit.web.pages.conftest import Browser

DAY = fakes.NOW.replace(microsecond=0) - timedelta(days=1)


@pytest.mark.parametrize("path", ["/runs?before=x", "/sessions?before=x", "/approvals?before=x"])
async def test_a_wrong_place_is_refused(browser: Browser, path: str) -> None:
    assert (await browser.get(path)).status_code == 422


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("show=running&agent=main&channel=telegram",
         SessionQuery(agent=AgentName("main"), channel="telegram", state=SessionState.RUNNING)),
        ("channel=gone-one", SessionQuery(channel="gone-one")),
        ("show=&agent=", NEWEST_SESSIONS),
    ],
)  # fmt: skip
async def test_the_address_selects_sessions(
    browser: Browser, control: FakeControl, query: str, wanted: SessionQuery
) -> None:
    assert (await browser.get(f"/sessions?{query}")).status_code == 200
    assert ("sessions", replace(wanted, limit=51)) in control.calls


async def test_unfinished_sessions_are_counted_up_to_a_page(
    browser: Browser, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = {None: 60, SessionState.RUNNING: 2, SessionState.WAITING: 51}

    async def listed(_self: object, query: SessionQuery) -> list[Session]:
        assert query.agent == "main", "the other filters hold for the counts"
        keys = (SessionKey(f"{fakes.SESSION}-{number}") for number in range(numbers[query.state]))
        return [replace(fakes.FULL, key=key) for key in keys]

    monkeypatch.setattr(type(control.sessions), "list", listed)
    said = await browser.says("/sessions?agent=main", "running <small>2<", "waiting <small>50+<")
    assert "all <small>50+<" in said
    assert said.count('<span class="badge busy">running</span>') == numbers[SessionState.RUNNING]


async def test_sessions_are_searched(browser: Browser, control: FakeControl) -> None:
    text = (await browser.get("/sessions?search=no%20such%22")).text
    assert "No session matches." in text
    assert 'value="no such&#34;"' in text
    assert ("sessions", SessionQuery(search='no such"', limit=51)) in control.calls


async def test_a_run_is_forked_into_a_conversation(browser: Browser, control: FakeControl) -> None:
    """Where the console has another agent, the copy is a session without a chat."""
    key = "agent%3Amain%3Aconsole%3Adirect%3Afork-1"
    place = f"/sessions/view?key={key}&notice=forked"
    await browser.leads("/sessions/fork", place, key=fakes.SESSION, run="0190-aaaa")
    assert ("fork", fakes.SESSION, "0190-aaaa") in control.calls


async def test_a_session_shows_the_newest_entries_first(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty at first: a phone shows them on a few screens."""
    entry = fakes.HISTORY[0]
    many = [replace(entry, entry=replace(entry.entry, text=f"text-{n:02}")) for n in range(30)]
    monkeypatch.setattr(fakes, "HISTORY", many)
    said = await browser.says("/sessions/view?key=local", "Newest first", "Show 10 more")
    talk = said[said.index('id="said"') : said.index('id="runs"')]
    assert re.findall(r"text-(\d\d)", talk) == [f"{n}" for n in range(29, 9, -1)]
    said = await browser.says("/sessions/view?key=local&all=yes", "text-00")
    assert "Show 10 more" not in said


async def test_an_answer_stands_at_its_own_time(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by use: an answer after an approval stood with its question, below a later one."""
    asked, answered = fakes.HISTORY
    run = answered.run_id
    lines = [
        replace(
            one, at=asked.at + timedelta(seconds=after_s), run_id=run_id,
            entry=replace(one.entry, text=text),
        )
        for one, after_s, run_id, text in (
            (asked, 0, run, "text-a"), (answered, 9, run, "text-c"), (asked, 5, None, "text-b"),
        )
    ]  # fmt: skip
    monkeypatch.setattr(fakes, "HISTORY", lines)
    said = await browser.says("/sessions/view?key=local")
    talk = said[said.index('id="said"') : said.index('id="runs"')]
    found = re.findall(r"text-(\w)", talk)
    assert list(dict.fromkeys(found)) == ["c", "b", "a"]


async def test_a_session_reads_as_its_chat(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who said it, without what only the agent reads, and Markdown as people see it."""
    asked, answered = fakes.HISTORY
    cut = replace(answered, entry=replace(answered.entry, text="**so** far\n[cancelled]"))
    monkeypatch.setattr(fakes, "HISTORY", [asked, cut])
    said = await browser.says("/sessions/view?key=local")
    talk = said[said.index('id="said"') : said.index('id="runs"')]
    assert "<strong><bdi>You</bdi></strong>" in talk
    assert f"<strong>{fakes.FULL.agent}</strong>" in talk
    assert "<strong>so</strong> far" in talk
    assert "[cancelled]" not in talk


async def test_a_session_of_the_console_leads_to_its_conversation(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "/sessions/view?key=local"
    await browser.says(address, 'href="/chat?name=local">Open in chat</a>')
    other = SessionKey("agent:main:telegram:direct:7")
    monkeypatch.setattr(fakes, "FULL", replace(fakes.FULL, key=other))
    assert "Open in chat" not in (await browser.get(address)).text


async def test_the_message_of_a_run_in_progress_is_not_listed_as_waiting(browser: Browser) -> None:
    said = await browser.says("/sessions/view?key=local")
    queue = said[said.index('id="queue"') : said.index('id="said"')]
    assert queue.count("count to 30") == 1
    running, _, waiting = queue.partition("</li>")
    assert "count to 30" in running
    assert waiting.count("<li>") == 1, "a waiting message and its request are one"
    assert "and then?" in waiting


async def test_a_reset_says_what_becomes_of_the_messages(browser: Browser) -> None:
    await browser.says("/sessions/view?key=local", "The messages so far leave it")
    place = f"/sessions/view?{urlencode({'key': fakes.SESSION})}&notice=reset"
    await browser.leads("/sessions/reset", place, key="local")
    await browser.says("/sessions/view?key=local&notice=reset", "Started a new conversation.")
