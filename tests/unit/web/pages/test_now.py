"""What happens at this moment, and what stops it (SPEC OPS-3, LANE-7)."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.ids import AgentName, LaneName, NodeId, RunId, SessionKey
from goclaw_py.scheduler.views import LaneView, PeerView, RunProgress
from goclaw_py.web.pages.rendering import page_of
from tests.unit.web import fake_nodes, fakes
from tests.unit.web.fakes import FakeControl
from tests.unit.web.pages.conftest import Browser

MAIN = LaneView(LaneName("main"), 1, 1, 1, 5, 3, 1, 0)


async def test_now_shows_who_works_and_who_waits(browser: Browser, control: FakeControl) -> None:
    runs = (fakes.RUNNING, fakes.WAITING)
    control.snapshot = replace(fakes.STATUS, lanes=(MAIN,), runs=runs)
    lane = 'aria-label="1 of 1 slots in use"'
    said = await browser.says("/", "disk is nearly full", lane, "a slot of its lane", "2 messages")
    assert said.count('href="/runs/0190-aaaa"') == 2
    assert 'href="/runs/0190-cccc"' not in said
    assert control.calls == [("status",)]
    control.snapshot = replace(fakes.STATUS, runs=())
    said = await browser.says("/", "Nothing is running.", "goclaw chat")
    assert "Other gateways" not in said


async def test_now_shows_what_other_gateways_do(browser: Browser, control: FakeControl) -> None:
    """SPEC NODE-1, NODE-2."""
    peer = PeerView(NodeId("n2"), "beta", 42, "1.0", "draining", 3, 4, ("telegram/<b>",))
    lane = replace(MAIN, concurrency=4, shared=True, elsewhere=2)
    control.snapshot = replace(fakes.STATUS, lanes=(lane,), peers=(peer,))
    use = ('aria-label="3 of 4 slots in use"', "1 of 4 in use here, 2 on other nodes")
    await browser.says("/", *use)
    (row,) = re.findall(r'<tr id="peer-n2">.*?</tr>', (await browser.get("/")).text, re.DOTALL)
    for words in ("beta, pid 42", "draining", ">3<", ">4<", "telegram/&lt;b&gt;"):
        assert words in row


async def test_health_tells_how_each_gateway_is(browser: Browser, control: FakeControl) -> None:
    """SPEC OPS-2, NODE-1: one alone is not worth a table."""
    said = await browser.says("/health", "telegram/default")
    for node, state in (("0190-here", "live"), ("0191-drains", "draining"), ("0192-dead", "dead")):
        assert state in said.partition(f'id="node-{node}"')[2].partition("</tr>")[0]
    control.cluster.found = [fake_nodes.HERE]
    assert 'id="nodes"' not in await browser.says("/health")


async def test_a_lane_names_its_first_runs_only(browser: Browser, control: FakeControl) -> None:
    runs = tuple(replace(fakes.RUNNING, id=RunId(f"run-{n:03}")) for n in range(107))
    control.snapshot = replace(fakes.STATUS, runs=runs)
    said = await browser.says("/", "and 103 more", "7 more are not shown")
    assert [said.count(f'href="/runs/run-00{n}"') for n in (3, 4)] == [2, 1]


@pytest.mark.parametrize(("fields", "place"), [
    ({}, "/?notice=stopped"),
    ({"run": "0190-aaaa"}, "/runs/0190-aaaa?notice=stopped"),
    ({"run": "/evil.example"}, "/runs/%2Fevil.example?notice=stopped"),
    ({"key": "a:b&c"}, "/sessions/view?key=a%3Ab%26c&notice=stopped"),
])  # fmt: skip
async def test_a_stop_leads_back(browser: Browser, fields: dict[str, str], place: str) -> None:
    await browser.leads("/stop", place, session="s", **fields)


@pytest.mark.parametrize(("warning", "page"), [
    ("1 group waits for your decision; see: goclaw groups list", "/people#groups"),
    ("2 messages; see: goclaw outbox list --state dead", "/deliveries"),
    ("2 messages got no answer; see: goclaw inbox list", "/deliveries"),
    ("1 tool call waits for an approval; see: goclaw approvals list", "/approvals"),
    ("heartbeat of a_1: away; see: goclaw heartbeat why a_1", "/heartbeats/a_1"),
    ("the result of a-b; see: goclaw cron runs --job a-b.2", "/jobs/a-b.2"),
    ("lane main is full (1 of 1); see: goclaw lanes", "/settings"),
    ("telegram/default: the token is refused", "/health#channels"),
    ("node n-2 (m, pid 7) runs release 1, this one 2", "/health#nodes"),
    ("node n-2 (m, pid 7) has other settings here: [lanes]", "/health#nodes"),
    ("the edit of 'a.b' has no effect: x; see: goclaw config history", "/settings"),
    ("jobs are turned off (scheduler.enabled), so no job runs", "/settings"),
    # The page names the command of each cure.
    ("the clock of this machine is 7 s ahead of the database's", "/why"),
    ("agent main: its provider has been down for 7 minutes, 1 message kept: x", "/why"),
    ("telegram: see: goclaw groups list <b>", "/why"),
    ("the disk is full", "/why"),
])  # fmt: skip
async def test_a_warning_leads_to_the_page_that_cures_it(
    browser: Browser, control: FakeControl, warning: str, page: str
) -> None:
    target, name = page_of(warning)
    assert target == page
    control.snapshot = replace(fakes.STATUS, warnings=(warning,))
    for path in ("/", "/health"):
        text = (await browser.get(path)).text
        assert f'→ <a href="{target}">{name}</a></li>' in text


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", ["a", "b"]), ("agent=helper", ["b"]), ("search=DISK", ["a"]), ("search=ann", ["a"]),
        ("search=%25", []), ("search=agent:helper", ["b"]), ("agent=main&search=helper", []),
        ("agent=x&search=%00", ["a", "b"]),
    ],
)  # fmt: skip
async def test_runs_are_found_by_agent_and_text(
    browser: Browser, control: FakeControl, query: str, shown: list[str]
) -> None:
    control.named = KnownNames({fakes.LOCAL: "Ann"})
    activity = RunProgress("the Disk is full")
    one = replace(fakes.RUNNING, id=RunId("a"), activity=activity)
    key = SessionKey("agent:helper:api:x")
    other = replace(one, id=RunId("b"), agent=AgentName("helper"), session=key, activity=None)
    control.snapshot = replace(fakes.STATUS, runs=(one, other))
    said = await browser.says(f"/?{query}")
    assert [name for name in "ab" if f'<tr id="run-{name}">' in said] == shown
    assert ("No run matches." in said) is (not shown)
    assert ('role="search"' in said) is (query not in ("", "agent=x&search=%00"))


async def test_a_stop_leads_back_to_the_same_runs(browser: Browser) -> None:
    place = "/?agent=main&search=a+b&notice=stopped"
    fields = {"session": fakes.SESSION, "everything": "yes"}
    await browser.leads("/stop", place, rows="agent=main&search=a+b&x=y", **fields)
