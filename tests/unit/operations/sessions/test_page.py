"""The page of all sessions (SPEC OPS-3)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.core.ids import AgentName
from goclaw_py.records import NEWEST_SESSIONS, SessionQuery, SessionState
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
        ("show=x&agent=%00&channel=<b>", NEWEST_SESSIONS),
    ],
)  # fmt: skip
async def test_the_address_selects_sessions(
    browser: Browser, control: FakeControl, query: str, wanted: SessionQuery
) -> None:
    assert (await browser.get(f"/sessions?{query}")).status_code == 200
    assert ("sessions", replace(wanted, limit=51)) in control.calls


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
