"""The HTTP API and its client, over a real unix socket: what goes in comes out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.model.errors import GoclawError, NodeSilent, NoGateway, NotFound, StoreUnavailable
from goclaw_py.model.ids import AgentName, LaneName, SessionKey
from goclaw_py.model.outcomes import Outcome, Trigger
from goclaw_py.ports.control import NodesView
from goclaw_py.ports.store import ALL_RUNS, OutboxState, RunFilter, Standing
from goclaw_py.scheduler.views import StopReport
from goclaw_py.web.api import wire
from goclaw_py.web.api.error_json import Refused
from tests.support.apps import lend_api
from tests.unit.web import fake_nodes, fake_post, fakes
from tests.unit.web.fake_terminals import FakeTerminals
from tests.unit.web.fakes import FakeControl
from tests.unit.web.harness import connected

pytestmark = pytest.mark.real_time


def http(control: FakeControl | None = None) -> httpx.AsyncClient:
    """A client of the app itself, without a server in between."""
    app = lend_api(control or FakeControl(), FakeTerminals())
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://x")


async def test_everything_that_can_be_asked_comes_back_as_it_was(tmp_path: Path) -> None:
    few = RunFilter(AgentName("a b&c"), Trigger.CRON, Outcome.TIMED_OUT)
    async with connected(tmp_path) as (made, remote):
        assert await remote.status() == fakes.STATUS
        assert await remote.lanes() == fakes.LANES
        assert await remote.active() == fakes.ACTIVE_RUNS
        assert await remote.queue("console") == fakes.QUEUE
        assert await remote.sessions(limit=7) == [fakes.FULL, fakes.BARE]
        assert await remote.runs() == [fakes.ACTIVE, fakes.ENDED]
        assert await remote.runs(limit=3, session=fakes.SESSION, active=True) == [fakes.ACTIVE]
        assert await remote.runs(only=few) == [fakes.ACTIVE, fakes.ENDED]
        assert await remote.run("0190-a") == fakes.ENDED
        assert await remote.outbox(state=OutboxState.DEAD) == [fakes.DEAD]
        assert await remote.outbox(limit=2) == [fakes.DEAD]
        assert await remote.outbox_row(fakes.DEAD.id) == fakes.DEAD
        assert await remote.dead_letters(limit=9) == [fake_post.LOST, fake_post.DROPPED]
        assert await remote.dead_letters(waiting=True) == [fake_post.NEXT, fake_post.BEGUN]
        assert await remote.dead_letter(8) == fake_post.LOST
        assert await remote.heard() == [fake_post.SPOKE]
        assert await remote.chats(limit=2) == [fake_post.FAMILY, fake_post.DIRECT]
        assert await remote.people() == [fakes.ANN]
        assert await remote.nodes() == NodesView(
            fake_nodes.AT,
            fake_nodes.HERE.id,
            (fake_nodes.HERE, fake_nodes.DRAINING, fake_nodes.DEAD),
        )
        assert await remote.pairing_requests() == [fakes.ASKED]
    # One more than was asked for tells whether there is another page.
    assert ("sessions", 8) in made.control.calls
    assert ("runs", 4, fakes.SESSION, True, ALL_RUNS) in made.control.calls
    assert ("runs", 51, None, False, ALL_RUNS) in made.control.calls
    assert ("runs", 51, None, False, few) in made.control.calls
    assert ("outbox", 3, None) in made.control.calls
    assert ("dead_letters", False, 10) in made.control.calls
    assert ("heard", 51) in made.control.calls


async def test_everything_that_can_be_done_is_done(tmp_path: Path) -> None:
    async with connected(tmp_path) as (made, remote):
        stopped = await remote.stop(fakes.SESSION, everything=True)
        again = await remote.stop(fakes.SESSION, everything=False)
        await remote.reset(fakes.SESSION)
        assert await remote.retry_outbox([fakes.DEAD.id, 1]) == 1
        assert await remote.drop_outbox([fakes.DEAD.id, 1]) == 1
        assert await remote.retry_dead_letters([8, 1]) == 1
        assert await remote.dismiss_dead_letters([8, 9]) == 1
        await remote.allow_chat("telegram", "default", "-1001", allowed=False)
        resized = await remote.resize_lane(LaneName("main"), 4)
        assert await remote.drain("drains") == fake_nodes.DRAINING
        guest = await remote.approve("CODE", guest=True)
        await remote.revoke("telegram", "default", "42")
    assert (stopped.stopped, len(stopped.dropped)) == ((fakes.RUN_ID,), 2)
    assert again == StopReport(already_stopping=True)
    assert (resized.before, resized.lane.concurrency) == (1, 4)
    assert ("resize_lane", "main", 4) in made.control.calls
    assert guest.standing is Standing.GUEST
    assert made.control.calls[-1] == ("revoke", "telegram", "default", "42")
    assert ("reset", fakes.SESSION) in made.control.calls
    for call in (
        ("retry_outbox", (fakes.DEAD.id, 1)),
        ("drop_outbox", (fakes.DEAD.id, 1)),
        ("retry_dead_letters", (8, 1)),
        ("dismiss_dead_letters", (8, 9)),
        ("allow_chat", "telegram", "default", "-1001", False),
    ):
        assert call in made.control.calls


@pytest.mark.parametrize("key", [fakes.SESSION, fakes.BARE.key, "agent:main:x/history/y"])
async def test_a_session_key_of_any_characters_arrives_whole(tmp_path: Path, key: str) -> None:
    """SPEC IO-7: keys hold colons; those of the API hold what their caller likes."""
    async with connected(tmp_path) as (made, remote):
        assert await remote.history(SessionKey(key), limit=9) == fakes.HISTORY
        assert made.control.calls == [("history", key, 9)]
        with suppress(NotFound):
            await remote.queue(key)
        assert made.control.calls[-1] == ("queue", key)
        if "history" not in key:
            assert (await remote.session(key)).key == key


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (NotFound("nothing is called that"), NotFound),
        (NoGateway("needs a gateway"), NoGateway),
        (NodeSilent("node n1 does not answer"), NodeSilent),
        (StoreUnavailable("the database does not answer"), StoreUnavailable),
        (GoclawError("something else"), Refused),
    ],
)
async def test_an_error_is_raised_again_on_the_other_side(
    tmp_path: Path, failure: Exception, kind: type[Exception]
) -> None:
    async with connected(tmp_path) as (made, remote):
        made.control.failure = failure
        with pytest.raises(kind, match=str(failure)):
            await remote.sessions()


async def test_a_bad_request_is_refused_in_words(tmp_path: Path) -> None:
    async with connected(tmp_path) as (_, remote):
        with pytest.raises(Refused, match="limit: "):
            await remote.sessions(limit=0)
        with pytest.raises(Refused, match="code: "):
            await remote.approve("", guest=False)
        with pytest.raises(Refused, match="chat: "):
            await remote.allow_chat("telegram", "default", "-1\n2", allowed=True)
        with pytest.raises(NotFound, match="no message 99 in the inbox"):
            await remote.dead_letter(99)


async def test_without_a_gateway_every_request_says_so(tmp_path: Path) -> None:
    async with RemoteControl(tmp_path / "gateway.sock") as remote:
        with pytest.raises(NoGateway, match="goclaw run"):
            await remote.status()


async def test_a_gateway_in_a_folder_with_a_long_name_is_reached(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["long-folder-name" * 3] * 4)
    async with connected(folder) as (made, remote):
        assert len(str(made.path)) > 200
        assert await remote.status() == fakes.STATUS


async def test_health_needs_nothing_but_the_event_loop() -> None:
    async with http() as client:
        answer = await client.get("/healthz")
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    ("method", "path", "content", "code"),
    [
        ("GET", "/api/nothing", b"", 404),
        ("DELETE", "/api/runs", b"", 405),
        ("GET", "/api/outbox?state=lost", b"", 422),
        ("GET", "/api/runs?limit=100000", b"", 422),
        ("POST", "/api/outbox/retry", b"\xff", 400),
        ("POST", "/api/outbox/retry", b"", 400),
        ("POST", "/api/outbox/retry", b"{", 400),
        ("POST", "/api/outbox/retry", b"[]", 400),
        ("PUT", "/api/lanes/main", b"", 400),
        ("PUT", "/api/lanes/main", b"{}", 422),
        ("PUT", "/api/lanes/", b'{"concurrency": 3}', 422),
        ("PUT", "/api/lanes/mian", b'{"concurrency": 3}', 404),
        ("PUT", "/api/lanes/ma/in", b'{"concurrency": 3}', 404),
        ("POST", "/api/lanes/main", b'{"concurrency": 3}', 405),
        ("GET", "/api/sessions/nobody/queue", b"", 404),
        ("POST", "/api/outbox/retry", b'{"ids": [-1]}', 422),
        ("POST", "/api/outbox/retry", b'{"ids": "all"}', 422),
        ("POST", "/api/people/revoke", b"{}", 422),
        ("GET", "/api/outbox/5", b"", 404),
        ("GET", "/api/outbox/-1", b"", 422),
        ("GET", "/api/outbox/9223372036854775808", b"", 422),
        ("GET", "/api/outbox/retry", b"", 422),
        ("POST", "/api/outbox/drop", b'{"ids": [9223372036854775808]}', 422),
        ("POST", "/api/outbox/drop", b"{}", 422),
        ("GET", "/api/inbox?waiting=perhaps", b"", 422),
        ("GET", "/api/inbox?limit=1001", b"", 422),
        ("GET", "/api/inbox/99", b"", 404),
        ("GET", "/api/inbox/x", b"", 422),
        ("POST", "/api/inbox/retry", b'{"ids": [true, "a"]}', 422),
        ("POST", "/api/inbox/drop", b'{"ids": null}', 422),
        ("GET", "/api/heard?limit=0", b"", 422),
        ("GET", "/api/chats?limit=0", b"", 422),
        ("POST", "/api/chats/allow", b"{}", 422),
        ("POST", "/api/chat/a:b/messages", b'{"message_id": "1", "text": "x"}', 422),
        ("POST", "/api/chat/local/messages", b'{"message_id": "1", "text": 5}', 422),
        ("POST", "/api/chat/local/messages", b'{"message_id": "a\\u0000", "text": "x"}', 422),
        ("GET", "/api/chat/a b/events", b"", 422),
    ],
)
async def test_a_bad_request_gets_an_error_body(
    method: str, path: str, content: bytes, code: int
) -> None:
    async with http() as client:
        headers = {"content-type": "application/json"}
        answer = await client.request(method, path, content=content, headers=headers)
        assert answer.status_code == code
        assert list(answer.json()) == ["error"]


@pytest.mark.parametrize(
    ("path", "body", "key"),
    [
        (f"/api/sessions/{fakes.SESSION}/stop", {"everythin": True}, "everythin"),
        ("/api/pairing/approve", {"code": "x", "gest": True}, "gest"),
        ("/api/outbox/retry", {"ids": [1], "all": True}, "all"),
    ],
)
async def test_a_key_that_is_not_known_is_refused(path: str, body: object, key: str) -> None:
    """Ignored, a misspelled key would do something else than was asked."""
    async with http() as client:
        answer = await client.post(path, json=body)
    assert (answer.status_code, answer.json()) == (422, {"error": f"{key}: unknown key"})


@pytest.mark.parametrize(
    "number", ["0", "-1", "1.5", "100001", "1e30", "9" * 400, '"3"', '"two"', "true", "null", "[3]"]
)
async def test_a_wrong_size_of_a_lane_is_refused_in_words(number: str) -> None:
    """SPEC LANE-9, SEC-3."""
    control = FakeControl()
    async with http(control) as client:
        headers = {"content-type": "application/json"}
        content = f'{{"concurrency": {number}}}'
        answer = await client.put("/api/lanes/main", content=content, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("concurrency: ")
    assert control.calls == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("channel", ""),
        ("account", "x" * 257),
        ("chat", "-100\x00"),
        ("chat", "-100\n"),
        ("chat", "\x1b[2J"),
        ("chat", -1001),
        ("allowed", "yes"),
        ("allowed", 1),
        ("allowed", None),
    ],
)
async def test_a_decision_about_a_group_must_be_clear(field: str, value: object) -> None:
    """SPEC CHAN-5, SEC-3."""
    control = FakeControl()
    body = {"channel": "telegram", "account": "default", "chat": "-1001", "allowed": True}
    async with http(control) as client:
        answer = await client.post("/api/chats/allow", json=body | {field: value})
        assert answer.status_code == 422
        assert answer.json()["error"].startswith(f"{field}: ")
        assert control.calls == []
        assert (await client.post("/api/chats/allow", json=body)).status_code == 204


async def test_no_more_rows_than_a_page_are_changed_at_once() -> None:
    """SPEC SEC-3."""
    control = FakeControl()
    async with http(control) as client:
        for path in ("outbox/retry", "outbox/drop", "inbox/retry", "inbox/drop"):
            ids = list(range(wire.MAX_LIMIT + 1))
            answer = await client.post(f"/api/{path}", json={"ids": ids})
            assert answer.status_code == 422
            assert answer.json()["error"].startswith("ids: ")
            answer = await client.post(f"/api/{path}", json={"ids": ids[1:]})
            assert answer.status_code == 200
    assert [len(call[1]) for call in control.calls if isinstance(call[1], tuple)] == [1000] * 4


async def test_who_asks_is_told_without_the_hash_of_their_code() -> None:
    """SPEC SEC-2: eight characters are found from it in no time."""
    async with http() as client:
        (asking,) = (await client.get("/api/pairing")).json()
        described = (await client.get("/openapi.json")).text
    assert asking["sender"]["id"] == "43"
    assert sorted(asking) == ["account", "channel", "chat", "created_at", "expires_at", "sender"]
    assert "code_hash" not in described


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/api/lanes"), ("PUT", "/api/lanes/main"), ("GET", "/api/status")]
)
async def test_what_needs_a_gateway_is_a_conflict_without_one(method: str, path: str) -> None:
    control = FakeControl()
    control.gateway = False
    async with http(control) as client:
        content = None if method == "GET" else {"concurrency": 2}
        assert (await client.request(method, path, json=content)).status_code == 409


async def test_a_defect_is_told_without_its_insides() -> None:
    """SPEC SEC-2."""
    control = FakeControl()
    control.failure = RuntimeError("password=hunter2")
    async with http(control) as client:
        answer = await client.get("/api/runs")
    assert answer.status_code == 500
    assert answer.json() == {"error": "internal error; the log of the gateway has the details"}


async def test_a_body_without_content_type_is_not_read_as_json() -> None:
    """SPEC SEC-1: a page of another site can send such a request without asking."""
    async with http() as client:
        answer = await client.post("/api/pairing/approve", content=b'{"code": "X"}')
        assert answer.status_code == 415


async def test_a_body_over_the_limit_is_refused_whether_announced_or_not() -> None:
    """SPEC SEC-3."""

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b"x" * (wire.MAX_BODY_BYTES // 4)

    async with http() as client:
        headers = {"content-type": "application/json"}
        announced = await client.post(
            "/api/outbox/retry", content=b"x" * (wire.MAX_BODY_BYTES + 1), headers=headers
        )
        streamed = await client.post("/api/outbox/retry", content=chunks(), headers=headers)
    for answer in (announced, streamed):
        assert answer.status_code == 413
        assert "longer than" in answer.json()["error"]


async def test_the_api_describes_itself() -> None:
    """SPEC OPS-2."""
    async with http() as client:
        described = (await client.get("/openapi.json")).json()
    assert described["info"]["version"] == "1.2.3"
    assert {"/api/status", "/api/runs/{prefix}", "/api/chat/{chat}/events"} <= set(
        described["paths"]
    )
    for method, path, schema in (
        ("get", "/api/lanes", "LanesView"),
        ("put", "/api/lanes/{name}", "Resized"),
        ("get", "/api/runs/active", "ActiveRuns"),
        ("get", "/api/sessions/{key}/queue", "QueueView"),
        ("get", "/api/outbox/{row_id}", "OutboxRow"),
        ("post", "/api/outbox/drop", "DroppedRows"),
        ("get", "/api/inbox/{row_id}", "DeadLetter"),
        ("post", "/api/inbox/retry", "Retried"),
        ("post", "/api/inbox/drop", "DroppedRows"),
    ):
        answers = described["paths"][path][method]["responses"]
        kinds = {
            code: answer["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
            for code, answer in answers.items()
        }
        assert kinds.pop("200") == schema
        assert set(kinds.values()) == {"ApiError"}
        assert {"404", "409", "422"} <= kinds.keys()
    size = described["components"]["schemas"]["ResizeBody"]["properties"]["concurrency"]
    assert (size["type"], size["minimum"], size["maximum"]) == ("integer", 1, 100_000)


async def test_without_terminals_there_is_no_chat() -> None:
    app = lend_api(FakeControl())
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        assert (await client.get("/api/chat/local/events")).status_code == 404
        assert (await client.get("/api/runs")).status_code == 200
