"""The page of all runs (SPEC OPS-3)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.records import ALL_SESSIONS, RunFilter, SessionFilter, SessionState
from tests.unit.web import fakes
from tests.unit.web.fakes import FakeControl
from tests.unit.web.pages.conftest import Browser

DAY = fakes.NOW.replace(microsecond=0) - timedelta(days=1)


@pytest.mark.parametrize(
    ("query", "only", "session", "active"),
    [
        ("", RunFilter(since=DAY), None, False),
        ("show=failed&range=all", RunFilter(outcome=Outcome.FAILED), None, False),
        ("show=running&range=all", RunFilter(), None, True),
        ("agent=main&trigger=cron&range=1h",
         RunFilter(AgentName("main"), Trigger.CRON, since=DAY + timedelta(hours=23)), None, False),
        ("sender=telegram/default/7&session=agent:main:x&range=all",
         RunFilter(sender="telegram/default/7"), SessionKey("agent:main:x"), False),
        ("show=<b>&trigger=x&range=9y&other=1", RunFilter(since=DAY), None, False),
    ],
)  # fmt: skip
async def test_the_address_selects_runs(
    browser: Browser, control: FakeControl, query: str, only: RunFilter, session: str, active: bool
) -> None:
    answer = await browser.get(f"/runs?{query}")
    assert answer.status_code == 200
    asked = next(call for call in control.calls if call[0] == "runs")
    assert asked[2:5] == (session, active, only)


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


@pytest.mark.parametrize("path", ["/runs?before=x", "/sessions?before=x", "/approvals?before=x"])
async def test_a_wrong_place_is_refused(browser: Browser, path: str) -> None:
    assert (await browser.get(path)).status_code == 422


@pytest.mark.parametrize(
    ("query", "only"),
    [
        ("show=running&agent=main&channel=telegram",
         SessionFilter(AgentName("main"), "telegram", SessionState.RUNNING)),
        ("channel=gone-one", SessionFilter(channel="gone-one")),
        ("show=x&agent=%00&channel=<b>", ALL_SESSIONS),
    ],
)  # fmt: skip
async def test_the_address_selects_sessions(
    browser: Browser, control: FakeControl, query: str, only: SessionFilter
) -> None:
    assert (await browser.get(f"/sessions?{query}")).status_code == 200
    asked = next(call for call in control.calls if call[0] == "sessions")
    assert asked[2:] == (() if only == ALL_SESSIONS else (only,))


async def test_sessions_are_searched(browser: Browser, control: FakeControl) -> None:
    text = (await browser.get("/sessions?search=no%20such%22")).text
    assert "No session matches." in text
    assert 'value="no such&#34;"' in text
    assert ("sessions", 51, 'no such"') in control.calls
