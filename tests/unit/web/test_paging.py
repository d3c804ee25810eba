"""Long lists over HTTP, page by page (SPEC OPS-2)."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest

from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.core.pagination import Cursor
from goclaw_py.records import RunQuery, SessionQuery
from tests.unit.web import fake_names, fake_people, fakes
from tests.unit.web.fakes import FakeControl
from tests.unit.web.harness import Api, Gateway

CURSOR = str(Cursor(fakes.NOW, ("x",)))


@pytest.fixture
def control(api: Api) -> FakeControl:
    """With several of everything."""
    control, numbers = api.control, (9, 7, 4)
    control.crowd.approved = [fake_people.ANN, fakes.EVE]
    control.messages.rows = [replace(fakes.DEAD, id=number) for number in numbers]
    mail = [replace(fake_names.LOST.row, id=number) for number in numbers]
    control.messages.mail = [replace(fake_names.LOST, row=row) for row in mail]
    before = replace(fake_names.SPOKE, at=fake_names.SPOKE.at - timedelta(seconds=1))
    control.crowd.spoke = [fake_names.SPOKE, before]
    return control


async def walk(http: httpx.AsyncClient, path: str) -> list[object]:
    """All rows of a list, each page as the one before says."""
    found: list[object] = []
    address: str | httpx.URL = path
    for _ in range(9):
        answer = await http.get(address)
        assert answer.status_code == 200, answer.text
        assert len(answer.json()) == 1
        found += answer.json()
        if "link" not in answer.headers:
            return found
        link = re.fullmatch(r'<(\?[^>]+)>; rel="next"', answer.headers["link"])
        assert link is not None
        address = answer.url.join(link[1])
    raise AssertionError("there is no last page")


@pytest.mark.parametrize("path", [
    "runs", "sessions", "inbox", "outbox", "outbox?state=dead&run=0190-aaaa", "people", "chats",
    "heard", "approvals", "heartbeat-runs", "heartbeats/main/runs",
    "runs/timeline?since=2026-01-01T00:00:00Z&until=2027-01-01T00:00:00%2B02:00",
])  # fmt: skip
@pytest.mark.usefixtures("control")
async def test_pages_follow_each_other_to_the_end(path: str, api: Api) -> None:
    path = f"/api/{path}{'&' if '?' in path else '?'}"
    whole = (await api.client.get(path)).json()
    assert len(whole) > 1
    assert await walk(api.client, f"{path}limit=1") == whole
    assert "link" not in (await api.client.get(f"{path}limit={len(whole)}")).headers


@pytest.mark.usefixtures("control")
async def test_the_next_page_is_asked_for_as_the_first_was(api: Api) -> None:
    answer = await api.client.get("/api/outbox?limit=1&state=dead&before=8")
    assert answer.headers["link"] == '<?limit=1&state=dead&before=7>; rel="next"'


PLACE = "before: this is no place in this list"


@pytest.mark.parametrize(("path", "word"), [
    ("/runs?before=", "before"), ("/runs?before=%00", "before"),
    ("/runs?before=x", PLACE), (f"/chats?before={CURSOR}", PLACE),
    (f"/runs?before={'A' * 9000}", "before"), ("/outbox?before=-1", "before"),
    ("/outbox?before=99999999999999999999", "before"),
    (f"/inbox?before={CURSOR}", "before"), ("/runs?trigger=x", "trigger"),
    ("/runs?outcome=good", "outcome"), ("/runs/timeline", "since"),
    ("/runs/timeline?since=2026-01-01T00:00:00&until=2026-01-02T00:00:00Z", "since"),
    ("/runs/timeline?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", "until"),
    ("/runs/timeline?since=0001-01-01T00:00:00%2B14:00&until=2026-01-01T00:00:00Z", "since"),
    ("/runs/timeline?since=x&until=y", "since"),
])  # fmt: skip
@pytest.mark.usefixtures("control")
async def test_what_cannot_be_meant_is_refused_in_words(path: str, word: str, api: Api) -> None:
    status, answer = await api("GET", path)
    assert (status, answer["error"].startswith(word)) == (422, True)


ENDED = replace(fakes.ENDED, prompt=fakes.HISTORY[0].entry.text)
"""As lists have it."""


async def test_the_client_of_the_socket_reads_on_too(
    made: Gateway, remote: RemoteControl, control: FakeControl
) -> None:
    assert await remote.runs.list(RunQuery(before=fakes.ACTIVE.cursor)) == [ENDED]
    assert await remote.sessions.list(SessionQuery(before=fakes.FULL.cursor)) == [fakes.BARE]
    since, until = fakes.NOW, fakes.NOW + timedelta(hours=1)
    spans = await remote.runs.between(since, until)
    assert spans == [fakes.SPAN, fakes.ACTIVE_SPAN]
    assert await remote.runs.between(since, until, after=spans[0].cursor) == spans[1:]
    record = await remote.runs.record("0190-a")
    assert (record.run, record.entries) == (fakes.ENDED, tuple(fakes.HISTORY))
    assert record.said == (fakes.DEAD,)
