"""The HTTP API and its client, over a real unix socket: what goes in comes out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from goclaw_py.cli.remote import Refused, RemoteControl
from goclaw_py.core.errors import GoclawError, StoreUnavailable
from goclaw_py.core.events import RunEnded, RunStarted, RunText
from goclaw_py.core.ids import SessionKey
from goclaw_py.core.outcomes import Outcome
from goclaw_py.ports.control import ChatEvent, NoGateway, NotFound, Said, StopReport
from goclaw_py.ports.store import OutboxState, Standing
from goclaw_py.web import terminals as web_terminals
from goclaw_py.web import wire
from goclaw_py.web.api import make_api
from goclaw_py.web.server import ApiServer
from goclaw_py.web.sockets import listen_unix, short_path
from tests.unit.web import fakes
from tests.unit.web.fake_terminals import FakeTerminals
from tests.unit.web.fakes import FakeControl

pytestmark = pytest.mark.real_time


class Gateway:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.control = FakeControl()
        self.terminals = FakeTerminals()
        self.server: ApiServer
        self.task: asyncio.Task[None]

    def start(self) -> None:
        app = make_api(self.control, self.terminals, release="1.2.3")
        self.listener = listen_unix(self.path)
        self.server = ApiServer(app, self.listener.socket)
        self.task = asyncio.create_task(self.server.run())

    async def stop(self) -> None:
        self.server.stop()
        await self.task
        self.listener.close()


@asynccontextmanager
async def gateway(folder: Path) -> AsyncIterator[Gateway]:
    made = Gateway(folder / "gateway.sock")
    made.start()
    try:
        yield made
    finally:
        await made.stop()


@asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[tuple[Gateway, RemoteControl]]:
    async with gateway(folder) as made, RemoteControl(made.path) as remote:
        yield made, remote


def http(control: FakeControl | None = None) -> httpx.AsyncClient:
    """A client of the app itself, without a server in between."""
    app = make_api(control or FakeControl(), FakeTerminals(), release="1.2.3")
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://x")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


async def test_everything_that_can_be_asked_comes_back_as_it_was(tmp_path: Path) -> None:
    async with connected(tmp_path) as (made, remote):
        assert await remote.status() == fakes.STATUS
        assert await remote.sessions(limit=7) == [fakes.FULL, fakes.BARE]
        assert await remote.runs() == [fakes.ACTIVE, fakes.ENDED]
        assert await remote.runs(limit=3, session=fakes.SESSION, active=True) == [fakes.ACTIVE]
        assert await remote.run("0190-a") == fakes.ENDED
        assert await remote.outbox(state=OutboxState.DEAD) == [fakes.DEAD]
        assert await remote.outbox(limit=2) == [fakes.DEAD]
        assert await remote.people() == [fakes.ANN]
        assert await remote.pairing_requests() == [fakes.ASKED]
    assert ("sessions", 7) in made.control.calls
    assert ("runs", 3, fakes.SESSION, True) in made.control.calls
    assert ("runs", 50, None, False) in made.control.calls
    assert ("outbox", 2, None) in made.control.calls


async def test_everything_that_can_be_done_is_done(tmp_path: Path) -> None:
    async with connected(tmp_path) as (made, remote):
        stopped = await remote.stop(fakes.SESSION, everything=True)
        again = await remote.stop(fakes.SESSION, everything=False)
        await remote.reset(fakes.SESSION)
        assert await remote.retry_outbox([fakes.DEAD.id, 1]) == 1
        guest = await remote.approve("CODE", guest=True)
        await remote.revoke("telegram", "default", "42")
    assert (stopped.stopped, len(stopped.dropped)) == ((fakes.RUN_ID,), 2)
    assert again == StopReport(already_stopping=True)
    assert guest.standing is Standing.GUEST
    assert made.control.calls[-1] == ("revoke", "telegram", "default", "42")
    assert ("reset", fakes.SESSION) in made.control.calls


@pytest.mark.parametrize("key", [fakes.SESSION, fakes.BARE.key, "agent:main:x/history/y"])
async def test_a_session_key_of_any_characters_arrives_whole(tmp_path: Path, key: str) -> None:
    """SPEC IO-7: keys hold colons; those of the API hold what their caller likes."""
    async with connected(tmp_path) as (made, remote):
        assert await remote.history(SessionKey(key), limit=9) == fakes.HISTORY
        assert made.control.calls == [("history", key, 9)]
        if "history" not in key:
            assert (await remote.session(key)).key == key


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (NotFound("nothing is called that"), NotFound),
        (NoGateway("needs a gateway"), NoGateway),
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
        ("GET", "/api/outbox?state=lost", b"", 400),
        ("GET", "/api/runs?limit=100000", b"", 400),
        ("POST", "/api/outbox/retry", b"\xff", 400),
        ("POST", "/api/outbox/retry", b'{"ids": [-1]}', 400),
        ("POST", "/api/outbox/retry", b'{"ids": "all"}', 400),
        ("POST", "/api/people/revoke", b"{}", 400),
        ("POST", "/api/chat/a:b/messages", b'{"message_id": "1", "text": "x"}', 400),
        ("POST", "/api/chat/local/messages", b'{"message_id": "1", "text": 5}', 400),
        ("GET", "/api/chat/a b/events", b"", 400),
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


async def test_a_defect_is_told_without_its_insides() -> None:
    """SPEC SEC-2."""
    control = FakeControl()
    control.failure = RuntimeError("password=hunter2")
    async with http(control) as client:
        answer = await client.get("/api/runs")
    assert answer.status_code == 500
    assert answer.json() == {"error": "internal error; the gateway's log has it"}


async def test_a_body_without_content_type_is_not_read_as_json() -> None:
    """SPEC SEC-1: a page of another site can send such a request without asking."""
    async with http() as client:
        answer = await client.post("/api/pairing/approve", content=b'{"code": "X"}')
        assert answer.status_code == 400


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


async def test_without_terminals_there_is_no_chat() -> None:
    app = make_api(FakeControl())
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        assert (await client.get("/api/chat/local/events")).status_code == 404
        assert (await client.get("/api/runs")).status_code == 200


EVENTS: list[ChatEvent] = [
    RunStarted(fakes.RUN_ID, fakes.LOCAL),
    RunText(fakes.RUN_ID, fakes.LOCAL, "Zeile 1\n\nevent: said\r\ndata: ü\u2028\x85 "),
    RunEnded(fakes.RUN_ID, fakes.LOCAL, Outcome.COMPLETED),
    Said("receipt", "a\nb", fakes.RUN_ID),
    Said("receipt2", "c", None),
]


async def test_a_chat_streams_its_events_unchanged(tmp_path: Path) -> None:
    async with connected(tmp_path) as (made, remote):
        got = []
        for event in EVENTS:
            made.terminals.events.put_nowait(event)
        async for event in remote.attach("local"):
            got.append(event)
            if len(got) == len(EVENTS):
                break
        assert got == EVENTS
        await until(lambda: made.terminals.detached == 1)
    assert made.terminals.attached == ["local"]


async def test_a_line_waits_until_the_terminal_is_attached(tmp_path: Path) -> None:
    async with connected(tmp_path) as (made, remote):
        line = asyncio.create_task(remote.say("local", "m1", "hello"))
        await asyncio.sleep(0)
        assert made.terminals.said == []
        events = remote.attach("local")
        reading = asyncio.create_task(_first(events))
        await line
        assert made.terminals.attached == ["local"]
        assert made.terminals.said == [("local", "m1", "hello")]
        made.terminals.events.put_nowait(EVENTS[-1])
        assert await reading == EVENTS[-1]


async def _first(events: AsyncIterator[ChatEvent]) -> ChatEvent:
    async for event in events:
        return event
    raise AssertionError("the stream ended")


async def test_a_line_that_is_not_committed_is_an_error_on_the_other_side(tmp_path: Path) -> None:
    async with connected(tmp_path) as (made, remote):
        reading = asyncio.create_task(_first(remote.attach("local")))
        made.terminals.refusals = 1
        with pytest.raises(StoreUnavailable, match="does not answer"):
            await remote.say("local", "m1", "hello")
        made.terminals.events.put_nowait(EVENTS[0])
        await reading


async def test_a_line_from_a_terminal_that_is_not_attached_fails_in_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goclaw_py.cli.remote.ATTACH_S", 0.01)
    async with connected(tmp_path) as (_, remote):
        with pytest.raises(StoreUnavailable, match="not attached"):
            await remote.say("local", "m1", "hello")


async def test_a_confirmation_arrives_even_if_the_client_leaves_at_once(tmp_path: Path) -> None:
    async with gateway(tmp_path) as made:
        async with RemoteControl(made.path) as remote:
            remote.confirm("r1")
        assert made.terminals.confirmed == ["r1"]


async def test_a_confirmation_that_nobody_takes_is_forgotten(tmp_path: Path) -> None:
    async with RemoteControl(tmp_path / "gateway.sock") as remote:
        remote.confirm("r1")


async def test_a_terminal_that_goes_away_is_detached(tmp_path: Path) -> None:
    async with connected(tmp_path) as (made, remote):
        reading = asyncio.create_task(_first(remote.attach("local")))
        await until(lambda: made.terminals.attached == ["local"])
        reading.cancel()
        await until(lambda: made.terminals.detached == 1)


async def test_stopping_the_server_ends_streams_at_once_and_the_terminal_is_told(
    tmp_path: Path,
) -> None:
    made = Gateway(tmp_path / "gateway.sock")
    made.start()
    async with RemoteControl(made.path) as remote:
        reading = asyncio.create_task(_first(remote.attach("local")))
        await until(lambda: made.terminals.attached == ["local"])
        async with asyncio.timeout(1.5):
            await made.stop()
        with pytest.raises(NoGateway):
            await reading
    assert made.terminals.detached == 1
    assert not made.path.exists()


async def test_cancelling_the_server_ends_it_as_stopping_does(tmp_path: Path) -> None:
    made = Gateway(tmp_path / "gateway.sock")
    made.start()
    async with RemoteControl(made.path) as remote:
        await remote.people()
    made.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await made.task
    made.listener.close()


async def test_a_stream_whose_terminals_end_it_ends(tmp_path: Path) -> None:
    async with connected(tmp_path) as (made, remote):
        made.terminals.events.put_nowait(None)
        with pytest.raises(NoGateway, match="gone away"):
            await _first(remote.attach("local"))


async def test_a_stream_of_a_bad_chat_is_refused(tmp_path: Path) -> None:
    async with connected(tmp_path) as (_, remote):
        with pytest.raises(Refused):
            await _first(remote.attach("a:b"))


async def test_an_idle_stream_says_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_terminals, "PING_S", 0.01)
    lines = web_terminals.stream(FakeTerminals(), "local", asyncio.Event())
    got = [await anext(lines) for _ in range(3)]
    assert got == [wire.ATTACHED, wire.PING, wire.PING]
    await lines.aclose()  # type: ignore[attr-defined]  # an async generator


async def test_a_foreign_server_is_not_understood(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        line = b"HTTP/1.1 500 no\r\n" if b"/people" in request else b"HTTP/1.1 200 ok\r\n"
        writer.write(line + b"content-length: 2\r\nconnection: close\r\n\r\nhi")
        await writer.drain()
        writer.close()

    path = tmp_path / "gateway.sock"
    with short_path(path) as name:
        server = await asyncio.start_unix_server(serve, name)
        async with server, RemoteControl(path) as remote:
            with pytest.raises(wire.Unreadable, match="same release"):
                await remote.sessions()
            with pytest.raises(Refused, match="answered 500"):
                await remote.people()


async def test_a_gateway_that_hangs_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goclaw_py.cli.remote.TIMEOUT_S", 0.05)
    listener = listen_unix(tmp_path / "gateway.sock")
    try:
        async with RemoteControl(listener.path) as remote:
            with pytest.raises(NoGateway, match="in time"):
                await remote.status()
    finally:
        listener.close()


def test_unknown_events_and_comments_are_skipped() -> None:
    reader = wire.EventReader()
    stream = b": attached\n\nevent: later\ndata: {}\n\nid: 5\n\n: ping\n\n"
    assert list(reader.feed(stream)) == []
    said = wire.encode_event(EVENTS[-1])
    assert list(reader.feed(said)) == [EVENTS[-1]]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_events_are_read_from_pieces_of_any_size(size: int) -> None:
    raw = b"".join(wire.encode_event(event) for event in EVENTS)
    reader = wire.EventReader()
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
    assert [event for piece in pieces for event in reader.feed(piece)] == EVENTS
