"""Following runs over HTTP: what is told arrives, and nothing stays open (SPEC OPS-1, OPS-2)."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any, get_args

import pytest

from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.core.errors import NoGateway, NotAccepted, NotFound
from goclaw_py.runs.events.live import LiveEvent, LiveText
from goclaw_py.web.api import wire
from tests.support.apps import lend_api
from tests.unit.web import fake_people, fakes
from tests.unit.web.fakes import FakeControl
from tests.unit.web.harness import Gateway, app_client, until

pytestmark = pytest.mark.real_time


def told(control: FakeControl) -> None:
    """Let it tell everything that there is."""
    for event in fakes.FOLLOWED[1:]:
        control.events.put_nowait(event)


async def test_every_event_arrives_as_it_was(made: Gateway, remote: RemoteControl) -> None:
    told(made.control)
    got = []
    async with aclosing(remote.follow("console")) as events:
        async for event in events:
            got.append(event)
            if len(got) == len(fakes.FOLLOWED):
                break
    assert got == fakes.FOLLOWED
    assert made.control.calls == [("follow", "console")]
    await until(lambda: made.control.following == 0)


def test_every_kind_of_event_is_tried_and_has_its_name() -> None:
    assert {type(event) for event in fakes.FOLLOWED} == set(get_args(LiveEvent))
    for event in fakes.FOLLOWED:
        assert wire.LIVE_EVENTS[event.kind] is type(event)


async def test_other_programs_read_the_name_and_the_data_of_each_event(
    made: Gateway, remote: RemoteControl
) -> None:
    told(made.control)
    made.control.events.put_nowait(None)
    async with remote._client.stream("GET", "/api/runs/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        body = (await answer.aread()).decode()
    events = [part.split("\n") for part in body.split("\n\n") if part]
    names = [name.removeprefix("event: ") for name, _ in events]
    assert names == [event.kind for event in fakes.FOLLOWED]
    asked = json.loads(events[1][1].removeprefix("data: "))
    assert asked["kind"] == "asked"
    assert (asked["run"]["trigger"], asked["run"]["parent"]) == ("subagent", fakes.RUN_ID)
    assert made.control.calls == [("follow", None)]


@pytest.mark.parametrize(
    ("session", "kind", "why"), [("nobody", NotFound, "nobody"), ("", NotAccepted, "session: ")]
)
async def test_a_wrong_session_is_an_error_and_no_stream(
    made: Gateway, remote: RemoteControl, session: str, kind: type[Exception], why: str
) -> None:
    with pytest.raises(kind, match=why):
        await anext(remote.follow(session))
    assert made.control.following == 0


async def test_without_a_gateway_nothing_can_be_followed(
    made: Gateway, remote: RemoteControl
) -> None:
    made.control.gateway = False
    with pytest.raises(NoGateway, match="no gateway is running here"):
        await anext(remote.follow())


async def test_whoever_hangs_up_is_forgotten(made: Gateway, remote: RemoteControl) -> None:
    for _ in range(3):
        async with aclosing(remote.follow()) as events:
            assert await anext(events) == fakes.FOLLOWED[0]
            assert made.control.following == 1
        await until(lambda: made.control.following == 0)


async def test_whoever_hangs_up_without_having_read_is_forgotten() -> None:
    """Its answer may never have begun."""
    control = FakeControl()
    app = lend_api(control)

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(_message: object) -> None:
        raise OSError("gone")

    path, rest = "/api/runs/events", {"query_string": b"", "headers": [], "http_version": "1.1"}
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), **rest}
    with pytest.raises(OSError, match="gone"):
        await app(scope, receive, send)
    assert control.calls == [("follow", None)]
    assert control.following == 0


async def test_a_stream_that_the_gateway_ends_is_over(made: Gateway, remote: RemoteControl) -> None:
    made.control.events.put_nowait(None)
    events = remote.follow()
    await anext(events)
    with pytest.raises(NoGateway, match="has shut down or closed"):
        await anext(events)


async def test_a_reader_that_stands_still_stops_only_its_iterator(
    made: Gateway, remote: RemoteControl
) -> None:
    """What it does not read stays in the gateway's own buffer, which has a limit."""
    asked = 0
    get = made.control.events.get

    async def counted() -> LiveEvent | None:
        nonlocal asked
        asked += 1
        return await get()

    made.control.events.get = counted  # type: ignore[method-assign]
    for _ in range(500):
        made.control.events.put_nowait(LiveText(fakes.NOW, fakes.LIVE_RUN, "x" * 50_000))
    async with aclosing(remote.follow()) as events:
        await anext(events)
        for _ in range(50):  # time enough to write them all
            assert fake_people.ANN in await remote.people.list()
        assert 0 < asked < 200


async def test_the_api_describes_the_stream() -> None:
    """SPEC OPS-2."""
    async with app_client() as client:
        described = (await client.get("/openapi.json")).json()
    route = described["paths"]["/api/runs/events"]["get"]
    assert [parameter["name"] for parameter in route["parameters"]] == ["session", "Last-Event-ID"]
    answers = route["responses"]
    schema = answers["200"]["content"]["text/event-stream"]["schema"]
    schemas = described["components"]["schemas"]
    for one in schema["oneOf"]:
        assert "kind" in schemas[one["$ref"].rpartition("/")[2]]["properties"]
    assert len(schema["oneOf"]) == len(wire.LIVE_EVENTS)
    assert answers["404"]["content"]["application/json"]["schema"]["$ref"].endswith("/ApiError")
