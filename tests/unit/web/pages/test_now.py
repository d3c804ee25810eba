"""What happens at this moment, and what stops it (SPEC OPS-3, LANE-7)."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from goclaw_py.model.ids import LaneName, NodeId, RunId
from goclaw_py.scheduler.views import LaneView, PeerView
from goclaw_py.web.pages.rendering import pages_of
from tests.unit.web import fakes
from tests.unit.web.fakes import FakeControl
from tests.unit.web.pages.conftest import Browser

MAIN = LaneView(LaneName("main"), 1, 1, 1, 5, 3, 1, 0)


async def test_now_shows_who_works_and_who_waits_for_what(
    browser: Browser, control: FakeControl
) -> None:
    runs = (fakes.RUNNING, fakes.WAITING)
    control.snapshot = replace(fakes.STATUS, lanes=(MAIN,), runs=runs)
    text = (await browser.get("/")).text
    assert "disk is nearly full" in text
    assert 'aria-label="1 of 1 slots in use"' in text
    assert "a slot of its lane" in text
    assert "2 messages" in text
    assert text.count('href="/runs/0190-aaaa"') == 2
    assert 'href="/runs/0190-cccc"' not in text
    assert control.calls == [("status",)]


async def test_now_shows_what_other_gateways_do(browser: Browser, control: FakeControl) -> None:
    """SPEC NODE-1, NODE-2."""
    peer = PeerView(NodeId("n2"), "beta", 42, "1.0", "draining", 3, 4, ("telegram/<b>",))
    lane = replace(MAIN, concurrency=4, shared=True, elsewhere=2)
    control.snapshot = replace(fakes.STATUS, lanes=(lane,), peers=(peer,))
    text = (await browser.get("/")).text
    assert 'aria-label="3 of 4 slots in use"' in text
    assert "1 of 4 in use here, 2 on other nodes" in text
    (row,) = re.findall(r'<tr id="peer-n2">.*?</tr>', text, re.DOTALL)
    for words in ("beta, pid 42", "draining", ">3<", ">4<", "telegram/&lt;b&gt;"):
        assert words in row


async def test_who_is_alone_sees_no_others(browser: Browser, control: FakeControl) -> None:
    control.snapshot = fakes.STATUS
    assert "Other gateways" not in (await browser.get("/")).text


async def test_a_lane_names_its_first_runs_and_how_many_more_there_are(
    browser: Browser, control: FakeControl
) -> None:
    runs = tuple(replace(fakes.RUNNING, id=RunId(f"run-{n:03}")) for n in range(107))
    control.snapshot = replace(fakes.STATUS, runs=runs)
    text = (await browser.get("/")).text
    assert text.count('href="/runs/run-003"') == 2
    assert text.count('href="/runs/run-004"') == 1
    assert "and 103 more" in text
    assert "7 more are not shown" in text


async def test_where_nothing_happens_a_newcomer_is_told_what_to_do(
    browser: Browser, control: FakeControl
) -> None:
    control.snapshot = replace(fakes.STATUS, runs=())
    text = (await browser.get("/")).text
    assert "Nothing is running." in text
    assert "goclaw chat" in text


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({}, "/?notice=stopped"),
        ({"run": "0190-aaaa"}, "/runs/0190-aaaa?notice=stopped"),
        ({"run": "/evil.example"}, "/runs/%2Fevil.example?notice=stopped"),
        ({"key": "a:b&c"}, "/sessions/view?key=a%3Ab%26c&notice=stopped"),
    ],
)
async def test_a_stop_leads_back_to_the_page_of_its_button(
    browser: Browser, fields: dict[str, str], place: str
) -> None:
    answer = await browser.send_form("/stop", session="s", **fields)
    assert answer.headers["location"] == place


@pytest.mark.parametrize(
    ("warning", "pages"),
    [
        ("1 group waits for your decision; see: goclaw groups list", [("/people", "People")]),
        ("2 messages; see: goclaw outbox list --state dead", [("/deliveries", "Deliveries")]),
        ("heartbeat of a_1: away; see: goclaw heartbeat why a_1", [("/heartbeats", "Heartbeats")]),
        ("the disk is full; see: goclaw doctor", []),
        ("telegram: see: goclaw groups list <b>", []),
        ("the disk is full", []),
    ],
)
async def test_a_warning_leads_to_the_page_of_its_command(
    browser: Browser, control: FakeControl, warning: str, pages: list[tuple[str, str]]
) -> None:
    assert pages_of(warning) == pages
    control.snapshot = replace(fakes.STATUS, warnings=(warning,))
    for path in ("/", "/health"):
        text = (await browser.get(path)).text
        for target, name in pages:
            assert f', or <a href="{target}">{name}</a></li>' in text
