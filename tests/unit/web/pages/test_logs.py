"""The page of log lines, and its stream (SPEC OPS-3, OPS-5)."""

from __future__ import annotations

import asyncio
import html
import re
from dataclasses import replace
from typing import Any

import httpx
import pytest

from goclaw_py.app.log_ring import LogRing
from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.ids import NodeId
from goclaw_py.core.messages import Target
from goclaw_py.observability.log_lines import LogFilter
from goclaw_py.scheduler.views import PeerView
from goclaw_py.web.api.logs import follow
from goclaw_py.web.api.routes import closing_of
from tests.support.apps import lend_api
from tests.unit.web import fakes
from tests.unit.web.fakes import FakeControl
from tests.unit.web.pages.conftest import Browser, World
from tests.unit.web.pages.test_site import ATTACK, check_that_nothing_runs

SESSION = "agent:main:telegram:direct:42"


def add(logs: LogRing, event: str, level: str = "info", **facts: Any) -> None:
    line = {**facts, "event": event, "level": level, "logger": "goclaw_py.test"}
    logs.add(line | {"timestamp": "2026-01-02T03:04:05.123456Z"}, 200)


def events(text: str) -> list[str]:
    return re.findall(r"<strong><bdi>([a-z_]+)</bdi></strong>", text)


async def test_the_newest_lines_come_first_or_last(browser: Browser, logs: LogRing) -> None:
    for number in range(202):
        add(logs, "early" if number < 2 else "middle")
    add(logs, "late", "error")
    text = (await browser.get("/logs")).text
    assert (events(text)[0], events(text)[-1], len(events(text))) == ("late", "middle", 200)
    assert "3 earlier lines not shown" in text
    text = (await browser.get("/logs?order=oldest")).text
    assert (events(text)[0], events(text)[-1]) == ("middle", "late")
    assert text.index("3 earlier lines") < text.index("middle</bdi>")


@pytest.mark.parametrize(("query", "found"), [
    ("", ["bug", "retry", "started"]),
    ("level=warning", ["bug", "retry"]),
    ("search=RETRY", ["retry"]),
    ("search=.*", []),
    ("search=%5B%28", ["bug"]),
    ("search=%5B%5E", []),
    ("search=n%3D%5B%28", ["bug"]),
    ("search=usd%3D0.00009", ["retry"]),
    ("run=01-a", ["started"]),
    (f"session={SESSION}", ["started"]),
    ("agent=main", ["started"]),
    ("person=telegram/default/42", ["started"]),
    ("search=" + "x" * 9000, []),
])  # fmt: skip
async def test_lines_are_filtered_by_the_address(
    browser: Browser, logs: LogRing, query: str, found: list[str]
) -> None:
    add(logs, "started", run_id="01-a", session=SESSION)
    add(logs, "retry", "warning", cost_usd=9.7e-05)
    add(logs, "bug", "critical", n="[(")
    text = (await browser.get(f"/logs?{query}")).text
    assert events(text) == found
    assert 'id="no-lines" hidden' in text or not found


async def test_fields_lead_to_their_pages(browser: Browser, logs: LogRing) -> None:
    key = "agent:main:cron:a/b"
    add(logs, "one", run_id="01a2/?b", session=key, session_name="Ann", job="j1", parent="p1")
    add(logs, "two", outbox=7, inbox=8, agent="main", heartbeat_run="h1", none=None, sender="x/y/z")
    add(logs, "three", job="j2", occurrence=5, approval="a1", occupants=["r1 (s1)", "r2 (s2)"])
    text = html.unescape((await browser.get("/logs")).text)
    assert "r1 (s1), r2 (s2)" in text
    assert '<a href="/jobs/j2"><bdi>5</bdi></a>' in text
    for place in (
        "/approvals#approval-a1",
        "/runs/01a2%2F%3Fb",
        "/runs/p1",
        "/sessions/view?key=agent%3Amain%3Acron%3Aa%2Fb",
        "/jobs/j1",
        "/why?about=delivery:7",
        "/why?about=message:8",
        "/heartbeats/main?heartbeat_run=h1#chosen",
        "/logs?person=x%2Fy%2Fz",
    ):
        assert f'href="{place}"' in text
    assert f'title="{key}"><bdi>Ann</bdi>' in text
    assert "session_name" not in text


async def test_people_and_sessions_have_their_names_of_today(
    browser: Browser, logs: LogRing, control: FakeControl
) -> None:
    """SPEC OPS-9: also those that nobody knew when the line was written."""
    chat = Target("telegram", "default", "42")
    add(logs, "one", session=SESSION, sender="telegram/default/42")
    add(logs, "two", session=SESSION, session_name="Old")
    control.named = KnownNames({chat: "Ann"})
    text = html.unescape((await browser.get("/logs")).text)
    assert text.count("<bdi>Ann</bdi>") == 3
    for search in ("session=ann", "sender=Ann", "ann", "sender=telegram/default/42"):
        assert "one" in events((await browser.get(f"/logs?search={search}")).text), search
    assert events((await browser.get("/logs?search=session=bob")).text) == []
    control.named = KnownNames()
    text = html.unescape((await browser.get("/logs")).text)
    assert [text.count(f"<bdi>{name}</bdi>") for name in ("Ann", "Old", "telegram 42")] == [0, 1, 2]


async def test_what_a_line_has_in_it_stays_text(browser: Browser, logs: LogRing) -> None:
    """SEC-1: HTML, ANSI escapes, control characters, marks of direction, very long texts."""
    strange = f"{ATTACK}\x1b[2J\x00\x85\u202egnp.exe\u2066\u2028"
    add(logs, strange, session=strange, run_id=strange, **{f"x{strange}": strange})
    add(logs, "y" * 100_000, "<b>", text="z" * 100_000, nested={"a": [strange]}, many="1\n2")
    logs.add({"event": 5, "timestamp": "never"}, 10)
    answer = await browser.get("/logs")
    check_that_nothing_runs(answer.text)
    assert "\\x1b[2J\\x00\\x85\\u202egnp.exe\\u2066\\u2028" in answer.text
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", answer.text) is None
    assert len(answer.content) < 30_000
    assert "96,000 characters more" in answer.text


async def test_in_a_cluster_the_page_names_its_node(browser: Browser, control: FakeControl) -> None:
    assert "Lines of this node" not in (await browser.get("/logs")).text
    peer = PeerView(NodeId("node-2"), "m", 7, "0.1.0", "live", 0, 0, ())
    control.snapshot = replace(fakes.STATUS, peers=(peer,))
    await browser.says("/logs", "Lines of this node, node-1.", "node-2")


async def test_new_lines_follow_until_the_gateway_shuts_down(logs: LogRing) -> None:
    closing = asyncio.Event()
    add(logs, "early")
    tails = follow(logs, LogFilter(level="error"), limit=9, after="", closing=closing)
    waiting = asyncio.ensure_future(anext(tails))
    await asyncio.sleep(3)
    assert not waiting.done()
    add(logs, "late", "error")
    tail = await waiting
    assert tail is not None
    assert [line["event"] for line in tail.lines] == ["late"]
    # Nothing new: a sign of life, so that proxies keep the connection.
    assert await anext(tails) is None
    closing.set()
    with pytest.raises(StopAsyncIteration):
        await anext(tails)


async def test_the_stream_of_the_page_has_what_comes_after_a_place(
    browser: Browser, world: World
) -> None:
    add(world.logs, "early")
    page = (await browser.get("/logs?order=oldest")).text
    assert 'data-log="/live/logs?order=oldest"' in page
    place = re.search('data-place="([^"]+)"', page)
    assert place is not None
    add(world.logs, "late", text="a\r\nb <b>")
    async with asyncio.timeout(1):
        asyncio.get_running_loop().call_later(0.7, world.closing.set)
        told = (await browser.get(f"/live/logs?order=oldest&after={place[1]}")).text
    assert (told.count("event: lines"), events(told)) == (1, ["late"])
    assert "a\\r" in told
    assert world.logs.tail(LogFilter(), limit=0).place in told


async def test_programs_get_lines_as_in_the_log(logs: LogRing) -> None:
    add(logs, "early", n=1)
    lend = lend_api(FakeControl(), logs=logs)
    transport = httpx.ASGITransport(lend)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        listed = (await client.get("/api/logs", params={"limit": 1})).json()
        assert (listed["lines"][0]["event"], listed["lines"][0]["n"]) == ("early", 1)
        add(logs, "late")
        new = (await client.get("/api/logs", params={"after": listed["place"]})).json()
        assert ([one["event"] for one in new["lines"]], new["left_out"]) == (["late"], 0)
        for wrong in ({"level": "loud"}, {"limit": -1}, {"limit": 5000}, {"search": "x" * 513}):
            assert (await client.get("/api/logs", params=wrong)).status_code == 422
        closing = closing_of(lend)
        asyncio.get_running_loop().call_later(0.7, closing.set)
        told = (await client.get("/api/logs/events", params={"limit": 1})).text
    assert told.count("event: lines") == 1
    assert '"event":"late"' in told
