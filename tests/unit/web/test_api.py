"""The HTTP API and its client, over a real unix socket: what goes in comes out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.core.errors import (
    GoclawError,
    NodeSilent,
    NoGateway,
    NotAccepted,
    NotFound,
    StoreUnavailable,
)
from goclaw_py.core.ids import LaneName
from goclaw_py.operations.nouns import NOUNS
from goclaw_py.records import SessionQuery
from goclaw_py.web.api import wire
from goclaw_py.web.api.error_json import Refused
from tests.unit.web import fakes
from tests.unit.web.harness import Api, Gateway, app_client, connected

pytestmark = pytest.mark.real_time

JSON = {"content-type": "application/json"}


async def test_everything_that_can_be_asked_comes_back_as_it_was(
    made: Gateway, remote: RemoteControl
) -> None:
    assert await remote.lanes.status() == fakes.STATUS
    assert await remote.lanes.list() == fakes.LANES


async def test_everything_that_can_be_done_is_done(made: Gateway, remote: RemoteControl) -> None:
    resized = await remote.lanes.resize(LaneName("main"), 4)
    assert (resized.before, resized.lane.concurrency) == (1, 4)
    assert ("resize_lane", "main", 4) in made.control.calls


@pytest.mark.parametrize(("failure", "kind"), [
    (NotFound("nothing is called that"), NotFound), (NoGateway("needs a gateway"), NoGateway),
    (NodeSilent("node n1 does not answer"), NodeSilent),
    (StoreUnavailable("the database does not answer"), StoreUnavailable),
    (GoclawError("something else"), Refused),
])  # fmt: skip
async def test_an_error_is_raised_again_on_the_other_side(
    made: Gateway, remote: RemoteControl, failure: Exception, kind: type[Exception]
) -> None:
    made.control.failure = failure
    with pytest.raises(kind, match=str(failure)):
        await remote.sessions.list()


async def test_a_bad_request_is_refused_in_words(remote: RemoteControl) -> None:
    with pytest.raises(NotAccepted, match="limit: "):
        await remote.sessions.list(SessionQuery(limit=0))
    with pytest.raises(NotFound, match="no incoming message 99"):
        await remote.deliveries.dead_letter(99)


async def test_without_a_gateway_every_request_says_so(tmp_path: Path) -> None:
    async with RemoteControl(tmp_path / "gateway.sock") as remote:
        with pytest.raises(NoGateway, match="goclaw run"):
            await remote.lanes.status()


async def test_a_gateway_in_a_folder_with_a_long_name_is_reached(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["long-folder-name" * 3] * 4)
    async with connected(folder) as (made, remote):
        assert len(str(made.path)) > 200
        assert await remote.lanes.status() == fakes.STATUS


async def test_health_needs_nothing_but_the_event_loop(api: Api) -> None:
    answer = await api.client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


BAD = {
    400: ("POST outbox/retry", "POST outbox/retry []", "PUT lanes/main"),
    404: ('PUT lanes/mian {"concurrency": 3}', 'PUT lanes/ma/in {"concurrency": 3}'),
    422: (
        *("GET outbox?state=lost", "GET runs?limit=100000", "PUT lanes/main {}"),
        *('PUT lanes/ {"concurrency": 3}', 'POST outbox/retry {"ids": [-1]}'),
        *('POST outbox/retry {"ids": "all"}', "POST people/revoke {}", "GET outbox/-1"),
        *("GET outbox/9223372036854775808", "GET outbox/retry", "POST outbox/drop {}"),
        *('POST outbox/drop {"ids": [9223372036854775808]}', "GET inbox?waiting=perhaps"),
        *("GET inbox?limit=1001", "GET inbox/x", 'POST inbox/retry {"ids": [true, "a"]}'),
        *('POST inbox/drop {"ids": null}', "GET heard?limit=0", "GET chats?limit=0"),
        *("POST chats/allow {}", 'POST chat/a:b/messages {"message_id": "1", "text": "x"}'),
        'POST chat/local/messages {"message_id": "1", "text": 5}',
        'POST chat/local/messages {"message_id": "a\\u0000", "text": "x"}',
        "GET chat/a%20b/events",
    ),
}


@pytest.mark.parametrize(("status", "requests"), BAD.items())
async def test_bad_requests_are_refused(status: int, requests: tuple[str, ...], api: Api) -> None:
    for line in requests:
        method, path, content = [*line.split(" ", 2), ""][:3]
        answer = await api.client.request(method, f"/api/{path}", content=content, headers=JSON)
        assert (answer.status_code, list(answer.json())) == (status, ["error"]), line


@pytest.mark.parametrize(("path", "body", "key"), [
    (f"/sessions/{fakes.SESSION}/stop", {"everythin": True}, "everythin"),
    ("/pairing/approve", {"code": "x", "gest": True}, "gest"),
    ("/outbox/retry", {"ids": [1], "all": True}, "all"),
])  # fmt: skip
async def test_an_unknown_key_is_refused(path: str, body: object, key: str, api: Api) -> None:
    """Ignored, a misspelled key would do something else than was asked."""
    assert await api("POST", path, body) == (422, {"error": f"{key}: unknown key"})


@pytest.mark.parametrize(
    "number", ["0", "-1", "1.5", "100001", "1e30", "9" * 400, '"3"', '"two"', "true", "null", "[3]"]
)
async def test_a_wrong_size_of_a_lane_is_refused_in_words(number: str, api: Api) -> None:
    """SPEC LANE-9, SEC-3."""
    content = f'{{"concurrency": {number}}}'
    answer = await api.client.put("/api/lanes/main", content=content, headers=JSON)
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("concurrency: ")
    assert api.control.calls == []


@pytest.mark.parametrize(("field", "values"), [
    ("channel", ("",)), ("account", ("x" * 257,)),
    ("chat", ("-100\x00", "-100\n", "\x1b[2J", -1001)),
    ("allowed", ("yes", 1, None)),
])  # fmt: skip
async def test_a_decision_must_be_clear(field: str, values: tuple[object, ...], api: Api) -> None:
    """SPEC CHAN-5, SEC-3."""
    body = {"channel": "telegram", "account": "default", "chat": "-1001", "allowed": True}
    for value in values:
        status, answer = await api("POST", "/chats/allow", body | {field: value})
        assert (status, answer["error"].partition(":")[0]) == (422, field)
    assert api.control.calls == []
    assert (await api.client.post("/api/chats/allow", json=body)).status_code == 204


async def test_no_more_rows_than_a_page_are_changed_at_once(api: Api) -> None:
    """SPEC SEC-3."""
    ids = list(range(wire.MAX_LIMIT + 1))
    for path in ("/outbox/retry", "/outbox/drop", "/inbox/retry", "/inbox/drop"):
        status, answer = await api("POST", path, {"ids": ids})
        assert (status, answer["error"].startswith("ids: ")) == (422, True)
        assert (await api("POST", path, {"ids": ids[1:]}))[0] == 200
    assert [len(call[1]) for call in api.control.calls if isinstance(call[1], tuple)] == [1000] * 4


async def test_who_asks_is_told_without_the_hash_of_their_code(api: Api) -> None:
    """SPEC SEC-2: eight characters are found from it in no time."""
    _, (asking,) = await api("GET", "/pairing")
    assert asking["sender"]["id"] == "43"
    assert sorted(asking) == ["account", "channel", "chat", "created_at", "expires_at", "sender"]
    assert "code_hash" not in (await api.client.get("/openapi.json")).text


async def test_what_needs_a_gateway_is_a_conflict_without_one(api: Api) -> None:
    api.control.gateway = False
    for path in ("/lanes", "/status", "/channels"):
        status, answer = await api("GET", path)
        assert (status, list(answer)) == (409, ["error"])
    assert (await api("PUT", "/lanes/main", {"concurrency": 2}))[0] == 409


async def test_a_defect_is_told_without_its_insides(api: Api) -> None:
    """SPEC SEC-2."""
    api.control.failure = RuntimeError("password=hunter2")
    told = {"error": "internal error; the log of the gateway has the details"}
    assert await api("GET", "/runs") == (500, told)


async def test_a_body_without_content_type_is_not_read_as_json(api: Api) -> None:
    """SPEC SEC-1: a page of another site can send such a request without asking."""
    answer = await api.client.post("/api/pairing/approve", content=b'{"code": "X"}')
    assert answer.status_code == 415


async def test_a_body_over_the_limit_is_refused_without_being_announced(api: Api) -> None:
    """SPEC SEC-3."""

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b"x" * (wire.MAX_BODY_BYTES // 4)

    answer = await api.client.post("/api/deliveries/retry", content=chunks(), headers=JSON)
    assert (answer.status_code, "longer than" in answer.json()["error"]) == (413, True)


async def test_the_api_describes_itself(api: Api) -> None:
    """SPEC OPS-2."""
    described = (await api.client.get("/openapi.json")).json()
    paths = described["paths"]
    assert described["info"]["version"] == "1.2.3"
    assert {"/api/status", "/api/runs/{prefix}", "/api/chat/{chat}/events"} <= set(paths)
    for operation, schema in {
        "get /api/lanes": "LanesView",
        "put /api/lanes/{name}": "Resized",
        "get /api/runs/active": "ActiveRuns",
        "get /api/sessions/{key}/queue": "QueueView",
        "get /api/deliveries/{row_id}": "OutboxRow",
        "post /api/deliveries/drop": "DroppedRows",
        "get /api/deliveries/incoming/{row_id}": "DeadLetter",
        "post /api/deliveries/incoming/retry": "Retried",
        "post /api/deliveries/incoming/drop": "DroppedRows",
    }.items():
        method, path = operation.split()
        kinds = {
            code: answer["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
            for code, answer in paths[path][method]["responses"].items()
        }
        assert (kinds.pop("200"), set(kinds.values())) == (schema, {"ApiError"})
        assert {"404", "409", "422"} <= kinds.keys()
    size = described["components"]["schemas"]["ResizeBody"]["properties"]["concurrency"]
    assert (size["type"], size["minimum"], size["maximum"]) == ("integer", 1, 100_000)


async def test_former_paths_are_served_and_not_described(api: Api) -> None:
    described = (await api.client.get("/openapi.json")).json()["paths"]
    former = {
        one.route.split()[0] + one.former: one
        for noun in NOUNS
        for one in noun.operations.values()
        if one.former
    }
    assert len(former) == 11
    for one in former.values():
        verb, path = one.route.split()
        assert path in described, path
        assert one.former not in described, path
        numbered = [text.replace("{row_id}", "8") for text in (one.former, path)]
        body = {"ids": [8], "code": "QWERTZ12"} if verb == "POST" else None
        answers = [await api(verb, text.removeprefix("/api"), body) for text in numbered]
        assert answers[0][0] == answers[1][0] != 405, path


async def test_without_terminals_there_is_no_chat() -> None:
    async with app_client(chats=False) as client:
        assert (await client.get("/api/chat/local/events")).status_code == 404
        assert (await client.get("/api/runs")).status_code == 200
