"""What happens at this moment, and what stops it (SPEC OPS-3, LANE-7)."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.ids import AgentName, ApprovalId, LaneName, NodeId, RunId, SessionKey
from goclaw_py.core.messages import Sender
from goclaw_py.scheduler.operator_warnings import OperatorWarning
from goclaw_py.scheduler.views import Backlog, LaneView, PeerView, ProviderView, RunProgress
from goclaw_py.web.pages.figures import DAYS
from goclaw_py.web.pages.now import SHOWN_RUNS
from goclaw_py.web.pages.rendering import NONE
from tests.unit.web import fake_approvals, fake_nodes, fake_people, fakes
from tests.unit.web.fake_names import NEXT
from tests.unit.web.fakes import FakeControl
from tests.unit.web.pages.conftest import Browser

MAIN = LaneView(LaneName("main"), 1, 1, 1, 5, 3, 1, 0)


def figure(text: str, name: str) -> str:
    """The figure with a name, as HTML."""
    found = re.findall(r'<a id="figure-.*?</a>', text, re.DOTALL)
    (one,) = [each for each in found if f"</strong>{name}" in each]
    return str(one)


async def test_now_shows_who_works_and_who_waits(browser: Browser, control: FakeControl) -> None:
    runs = (fakes.RUNNING, fakes.WAITING)
    control.snapshot = replace(fakes.STATUS, lanes=(MAIN,), runs=runs)
    lane = 'aria-label="1 of 1 slots in use"'
    said = await browser.says("/", "The disk", lane, "a slot of its lane", "2 messages")
    assert said.count('href="/runs/0190-aaaa"') == 1
    assert 'href="/runs/0190-cccc"' not in said
    assert "oldest wait" in said
    control.snapshot = replace(fakes.STATUS, runs=())
    said = await browser.says("/", "Nothing is running.", "goclaw chat")
    # It stays, so that the others do not move.
    assert NONE in figure(said, "oldest wait")


async def test_a_waiting_message_is_named_and_can_be_dropped(
    browser: Browser, control: FakeControl
) -> None:
    waiting = replace(fakes.WAITING, activity=RunProgress("count <b> to 30"))
    control.snapshot = replace(fakes.STATUS, lanes=(MAIN,), runs=(waiting,))
    said = (await browser.get("/")).text
    rows = said[said.index('id="waiting"') :]
    assert "count &lt;b&gt; to 30" in rows
    drop, _, rest = rows.partition(">Drop</button>")
    assert f'name="waiting" value="{waiting.id}"' in drop
    assert ">Stop all</button>" in rest


async def test_the_chats_that_are_offered_are_those_that_are_set_up(
    browser: Browser, control: FakeControl
) -> None:
    channels = [one for one in fakes.STATUS.channels if one.name != "console"]
    control.snapshot = replace(fakes.STATUS, runs=(), channels=tuple(channels))
    await browser.says("/", f"or in {channels[0].name.capitalize()}.")
    control.snapshot = replace(fakes.STATUS, runs=(), channels=())
    await browser.says("/", 'Telegram, once <a href="/health#channels">it is set up</a>')


async def test_the_figures_lead_to_their_lists(browser: Browser, control: FakeControl) -> None:
    """SPEC OPS-3."""
    peer = PeerView(NodeId("n2"), "beta", 42, "1.0", "live", 3, 4, ())
    runs = (fakes.RUNNING, fakes.WAITING)
    control.snapshot = replace(fakes.STATUS, lanes=(MAIN,), runs=runs, peers=(peer,))
    text = (await browser.get("/")).text
    for name, value, link in (
        ("running", "4", "/runs?show=running&amp;range=all"),
        ("runs waiting", "5", "#waiting"),
        ("oldest wait", "2026-01-02T03:04:01.000Z", "#waiting"),
        ("failed today", "100", "/runs?show=any_failure&amp;range=today"),
        ("next job", NONE, "/jobs"),
        ("cost today", "$1.50", "/usage?range=1d"),
    ):
        found = figure(text, name)
        assert ("data-lasting" in found) == (name == "oldest wait")
        assert f'href="{link}"' in found, name
        assert value in found.partition(f"</strong>{name}")[0], name
    assert "3 on other nodes" in figure(text, "running")
    assert '4 more runs on <a href="/health#nodes">other nodes</a>' in text
    assert "yesterday 0" in figure(text, "failed today")
    assert "average of 7 days: &lt; $0.01" in figure(text, "cost today")
    assert figure(text, "cost today").count("<rect") == DAYS


async def test_what_the_database_counts_is_not_read_each_second(
    browser: Browser, control: FakeControl
) -> None:
    await browser.get("/")
    before = len(control.calls)
    await browser.get("/")
    again = [call for call in control.calls[before:] if call[0] != "status"]
    assert again == []


async def test_without_its_database_the_gateway_still_shows_what_runs(
    browser: Browser, control: FakeControl
) -> None:
    control.snapshot = replace(fakes.STATUS, backlog=None)
    said = await browser.says("/", "running", "runs waiting")
    assert "cost today" not in said


async def test_now_lists_what_needs_a_person(browser: Browser, control: FakeControl) -> None:
    """Each tool call and each stranger, with the page that decides."""
    backlog = replace(fakes.STATUS.backlog or Backlog(0, 0, 0), approvals=2)
    listed = OperatorWarning("gateway.approvals", "2 tool calls", "wait", "/approvals")
    control.snapshot = replace(fakes.STATUS, backlog=backlog, warnings=(listed, fakes.DISK))
    said = await browser.says("/", "asks to call", "pay", "Bob", "asks to talk to the agent")
    assert "2 tool calls" not in said
    assert '<a href="/health"><bdi>The disk</bdi></a> <bdi>is nearly full</bdi>' in said
    assert "more people" not in said
    control.crowd.asking = [replace(fake_people.ASKS, sender=Sender(str(n))) for n in range(17)]
    control.questions.asked = [replace(fake_approvals.PAY, id=ApprovalId(str(n))) for n in range(6)]
    control.snapshot = replace(control.snapshot, backlog=replace(backlog, approvals=6))
    said = await browser.says("/", "and 14 more people ask to talk to the agent, the first ")
    assert said.count("to talk to the agent") == 1
    assert "1 more tool call waits" in said


async def test_health_tells_how_each_gateway_is(browser: Browser, control: FakeControl) -> None:
    """SPEC OPS-2, NODE-1: one alone is not worth a table."""
    said = await browser.says("/health", "telegram/default")
    for node, state in (
        ("0190-here", "live"),
        ("0191-drains", "draining"),
        ("0192-dead", "expired"),
    ):
        assert state in said.partition(f'id="node-{node}"')[2].partition("</tr>")[0]
    control.cluster.found = [fake_nodes.HERE]
    assert 'id="nodes"' not in await browser.says("/health")


async def test_health_names_providers_that_are_down(browser: Browser, control: FakeControl) -> None:
    down = ProviderView(AgentName("helper"), 90.0, 2, "timed out")
    control.snapshot = replace(fakes.STATUS, providers=(ProviderView(AgentName("main")), down))
    said = await browser.says("/health", "1 of 2", "timed out")
    assert ">2<" in said.partition('id="provider-helper"')[2].partition("</tr>")[0]
    control.snapshot = replace(fakes.STATUS, providers=(ProviderView(AgentName("main")),))
    await browser.says("/health", "None is down, as far as runs have found: that of agent main.")


async def test_of_a_crowd_the_first_are_shown(browser: Browser, control: FakeControl) -> None:
    runs = tuple(replace(fakes.RUNNING, id=RunId(f"run-{n:03}")) for n in range(107))
    control.snapshot = replace(fakes.STATUS, runs=runs)
    said = await browser.says("/", "7 more runs:", "/runs?show=running&range=all")
    assert said.count('<tr id="run-') == SHOWN_RUNS


async def test_all_waiting_runs_are_found_and_dropped(
    browser: Browser, control: FakeControl
) -> None:
    """Also those of other pages, and only those that match; the last in line first."""
    many = range(SHOWN_RUNS + 7)
    runs = [
        replace(fakes.WAITING, id=RunId(f"run-{n:03}"), for_s=1000 - n, agent=AgentName("main"))
        for n in many
    ]
    other = replace(fakes.WAITING, id=RunId("other"), agent=AgentName("helper"))
    control.snapshot = replace(fakes.STATUS, runs=(fakes.RUNNING, other, *runs))
    said = await browser.says("/?agent=main", "1 to 100 of 107", "Drop all 107 that match")
    assert 'id="run-run-106"' not in said
    assert "goclaw runs" not in said
    for page in (2, 9):
        said = await browser.says(f"/?agent=main&page={page}", "101 to 107 of 107")
        assert 'id="run-run-106"' in said
    place = "/?agent=main&notice=dropped+107+runs"
    control.calls.clear()
    await browser.leads("/stop", place, waiting="all", rows="agent=main")
    stopped = [call[3] for call in control.calls if call[0] == "stop"]
    assert stopped == [run.id for run in reversed(runs)]
    await browser.leads("/stop", "/?search=none&notice=nothing", waiting="all", rows="search=none")


@pytest.mark.parametrize(
    ("fields", "notice", "dismissed", "stopped"),
    [
        # What waits with messages is dropped by them, so that it is listed and can be retried.
        ({"waiting": "w"}, "dropped+2+messages", [(7, 8)], []),
        ({"waiting": "job"}, "dropped+1+run", [], ["job"]),
        ({"waiting": "all"}, "dropped+3+runs", [(7, 8)], ["job"]),
        # It has started since the page was shown, so it goes on.
        ({"waiting": "0190-aaaa"}, "started", [], []),
        ({"waiting": "gone"}, "started", [], []),
        ({"session": "s", "everything": "yes"}, "stopped_dropped+2+messages", [(7, 8)], [None]),
    ],
)
async def test_only_what_waits_is_dropped(
    browser: Browser,
    control: FakeControl,
    fields: dict[str, str],
    notice: str,
    dismissed: list[tuple[int, ...]],
    stopped: list[str | None],
) -> None:
    mail = [replace(NEXT, row=replace(NEXT.row, id=number)) for number in (7, 8)]
    control.messages.mail = mail
    doing = RunProgress("hello", incoming=(7, 8))
    waiting = replace(fakes.WAITING, id=RunId("w"), session=SessionKey("s"), activity=doing)
    job = replace(fakes.WAITING, id=RunId("job"))
    control.snapshot = replace(fakes.STATUS, runs=(fakes.RUNNING, waiting, job))
    await browser.leads("/stop", f"/?notice={notice}", rows="", **fields)
    calls = control.calls
    assert [call[1] for call in calls if call[0] == "dismiss_dead_letters"] == dismissed
    runs = [call[3] if len(call) > 3 else None for call in calls if call[0] == "stop"]
    assert runs == stopped


@pytest.mark.parametrize(("fields", "place"), [
    ({}, "/?notice=stopped"),
    ({"run": "0190-aaaa"}, "/runs/0190-aaaa?notice=stopped"),
    ({"run": "/evil.example"}, "/runs/%2Fevil.example?notice=stopped"),
    ({"key": "a:b&c"}, "/sessions/view?key=a%3Ab%26c&notice=stopped"),
])  # fmt: skip
async def test_a_stop_leads_back(browser: Browser, fields: dict[str, str], place: str) -> None:
    await browser.leads("/stop", place, session="s", **fields)


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", ["a", "b"]), ("agent=helper", ["b"]), ("search=DISK", ["a"]), ("search=ann", ["a"]),
        ("search=%25", []), ("search=agent:helper", ["b"]), ("agent=main&search=helper", []),
        ("search=%00", ["a", "b"]), ("agent=former", []),
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
    assert ('role="search"' in said) is (query not in ("", "search=%00"))


async def test_a_stop_leads_back_to_the_same_runs(browser: Browser) -> None:
    place = "/?agent=main&search=a+b&notice=stopped"
    fields = {"session": fakes.SESSION, "everything": "yes"}
    await browser.leads("/stop", place, rows="agent=main&search=a+b&x=y", **fields)
