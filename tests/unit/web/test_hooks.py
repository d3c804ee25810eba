"""The hooks of channels as a web app: what reaches a hook, and what is answered (SPEC CHAN-2)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from goclaw_py.chat.channel import Hook, PlainChannel, WebAnswer, WebRequest
from goclaw_py.web import server as web_server
from goclaw_py.web.hooks import HookConflict, collect_hooks
from tests.unit.web.hooks_harness import GOOD, Client, Server, Sink, hook, serving, until


async def test_a_hook_gets_all_and_its_answer_goes_back(sink: Sink, server: Server) -> None:
    sink.answer = WebAnswer(202, "ja, wirklich: ü")
    answer = await server.ask(
        b"POST /hook HTTP/1.1\r\nHost: x\r\nX-Secret: Abc\r\nContent-Length: 4\r\n\r\n\x00{}\xff"
    )
    assert (answer.status, answer.body.decode()) == (202, "ja, wirklich: ü")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    expected = {"host": "x", "x-secret": "Abc", "content-length": "4"}
    assert sink.requests == [WebRequest("POST", expected, b"\x00{}\xff")]


async def test_an_answer_tells_the_date_and_not_what_serves_it(sink: Sink, server: Server) -> None:
    assert set((await server.ask(GOOD)).headers) == {"date", "content-length"}
    # Text that is no Unicode is shown all the same.
    sink.answer = WebAnswer(200, "a\ud800b")
    assert (await server.ask(GOOD)).body == b"a?b"


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"])
async def test_the_hook_decides_about_methods(sink: Sink, client: Client, method: str) -> None:
    sink.answer = WebAnswer(405, "only POST")
    await client.send(f"{method} /hook HTTP/1.1\r\nhost: x\r\n\r\n".encode())
    answer = await client.answer(bodiless=method == "HEAD")
    assert answer.body == (b"" if method == "HEAD" else b"only POST")
    assert await client.closed()
    assert answer.status == 405
    assert [(request.method, request.body) for request in sink.requests] == [(method, b"")]


@pytest.mark.parametrize(
    "target",
    [
        "/", "//", "/hook/", "//hook", "/Hook", "/hooks", "/hook%2f", "/x/../hook", "/./hook",
        "/hook%00", "/%2568ook", "/hook;a", "/api/status", "/healthz", "/?/hook", "*",
        "http://x/hooks", "/" + "a" * 5000,
    ],
)  # fmt: skip
async def test_other_paths_are_not_found(sink: Sink, client: Client, target: str) -> None:
    """SEC-1: and whoever tries gets no connection to keep."""
    answer = await client.ask(f"OPTIONS {target} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
    assert (answer.status, answer.body) == (404, b"")
    assert await client.closed()
    assert sink.requests == []


@pytest.mark.parametrize("target", ["/hook?", "/hook?a=/b&c", "/%68oo%6B", "/hook#x", "/hook?#x"])
async def test_a_path_is_decoded_once(sink: Sink, server: Server, target: str) -> None:
    assert (await server.ask(GOOD.replace(b"/hook", target.encode()))).status == 200
    assert len(sink.requests) == 1


async def test_odd_and_repeated_headers_are_harmless(sink: Sink, server: Server) -> None:
    odd = b"A: 1\r\na: 2\r\nX-Empty:\r\nX-Latin: \xe4\xff\r\nX-Tab:\ta\t\r\n" + b"B: b\r\n" * 500
    assert (await server.ask(GOOD.replace(b"host: x\r\n", odd))).status == 200
    headers = dict(sink.requests[0].headers)
    assert headers.pop("b") == ", ".join(["b"] * 500)
    assert headers == {
        "a": "1, 2", "x-empty": "", "x-latin": "äÿ", "x-tab": "a", "content-length": "2"
    }  # fmt: skip


async def test_each_hook_has_its_path(tmp_path: Path) -> None:
    one, two = Sink(WebAnswer(200, "one")), Sink(WebAnswer(200, "two"))
    async with serving(tmp_path, hook(one), hook(two, "/hook/two")) as server:
        assert (await server.ask(GOOD)).body == b"one"
        assert (await server.ask(GOOD.replace(b"/hook", b"/hook/two"))).body == b"two"


async def test_a_body_may_come_in_pieces(sink: Sink, client: Client) -> None:
    await client.send(b"POST /hook HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n")
    for piece in (b"3\r\nabc\r\n", b"1\r\n", b"d", b"\r\n4;x=y\r\nefgh\r\n", b"0\r\n\r\n"):
        await client.send(piece)
        await asyncio.sleep(1)
    assert (await client.answer()).status == 200
    assert sink.requests[0].body == b"abcdefgh"


async def test_a_body_of_just_the_limit_is_taken(tmp_path: Path) -> None:
    sink = Sink()
    async with serving(tmp_path, hook(sink, most_bytes=5)) as server:
        head = b"POST /hook HTTP/1.1\r\ncontent-length: 5\r\n\r\n"
        assert (await server.ask(head + b"12345")).status == 200
        head = b"POST /hook HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
        assert (await server.ask(head + b"5\r\n12345\r\n0\r\n\r\n")).status == 200
    assert [request.body for request in sink.requests] == [b"12345"] * 2


async def test_a_connection_serves_many_requests_for_long(sink: Sink, client: Client) -> None:
    """Caddy keeps idle connections for two minutes; it must be the one that hangs up."""
    for _ in range(3):
        assert (await client.ask(GOOD)).status == 200
        await asyncio.sleep(125)
    started = asyncio.get_running_loop().time()
    assert await client.closed()
    idle_s = 125 + asyncio.get_running_loop().time() - started
    assert idle_s == pytest.approx(web_server.KEEP_ALIVE_S, abs=1)
    assert len(sink.requests) == 3


async def test_pipelined_requests_are_answered_in_their_order(sink: Sink, client: Client) -> None:
    bodies = [b"%02d" % number for number in range(20)]
    await client.send(b"".join(GOOD.replace(b"{}", body) for body in bodies))
    answers = [await client.answer() for _ in bodies]
    assert {answer.status for answer in answers} == {200}
    assert [request.body for request in sink.requests] == bodies


async def test_what_is_pipelined_behind_a_refusal_is_not_served(sink: Sink, client: Client) -> None:
    sink.answer = WebAnswer(403)
    assert (await client.ask(GOOD * 3)).status == 403
    assert await client.closed()
    assert len(sink.requests) == 1


async def test_http_1_0_is_served_and_hung_up_on(sink: Sink, client: Client) -> None:
    """Some proxies speak it by default."""
    sink.answer = WebAnswer(200, "ok")
    answer = await client.ask(GOOD.replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert (answer.status, answer.body) == (200, b"ok")
    assert await client.closed()


async def test_whoever_expects_to_be_told_to_continue_is_told(client: Client) -> None:
    head = b"POST /hook HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n"
    assert (await client.ask(head)).status == 100
    assert (await client.ask(b"{}")).status == 200


@pytest.mark.parametrize("status", [204, 304])
async def test_no_body_is_announced(sink: Sink, client: Client, status: int) -> None:
    sink.answer = WebAnswer(status)
    for _ in range(2):
        answer = await client.ask(GOOD)
        assert (answer.status, set(answer.headers)) == (status, {"date"})


async def test_a_hook_that_raises_is_an_answer_that_tells_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink = Sink(error=ValueError("hunter2"))
    async with serving(tmp_path, hook(sink)) as server:
        answer, words = await server.ask(GOOD), b"internal error; the log of the gateway has the"
        assert (answer.status, answer.body) == (500, words + b" details")
        sink.error = None
        assert (await server.ask(GOOD)).status == 200
    (record,) = caplog.records
    assert (record.message, vars(record)["path"]) == ("hook_crashed", "/hook")
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "hunter2"


async def test_a_hundred_requests_are_worked_on_at_once(sink: Sink, server: Server) -> None:
    sink.gate = asyncio.Event()
    asked = [asyncio.create_task(server.ask(GOOD)) for _ in range(100)]
    await until(lambda: sink.working == 100)
    sink.open()
    assert [(await one).status for one in asked] == [200] * 100
    assert sink.most_working == 100


class Called(PlainChannel):
    """As much of a channel as ``collect_hooks`` looks at."""

    def __init__(self, account: str, path: str | None) -> None:
        self.name = "telegram"
        self.account = account
        self._hook = None if path is None else hook(Sink(), path)

    @property
    def hook(self) -> Hook | None:
        return self._hook


def hooks_of(*channels: Called) -> list[str]:
    found = collect_hooks(channels)  # type: ignore[arg-type]  # a part of a channel
    return [hook.path for hook in found]


def test_channels_without_a_hook_need_no_server() -> None:
    assert hooks_of(Called("a", None), Called("b", None)) == []
    several = Called("a", "/a"), Called("b", None), Called("c", "/a/C-1_x.y")
    assert hooks_of(*several) == ["/a", "/a/C-1_x.y"]


def test_two_channels_at_one_path_are_told_apart_by_an_error() -> None:
    with pytest.raises(HookConflict) as caught:
        hooks_of(Called("default", "/telegram"), Called("work", "/telegram"))
    assert str(caught.value) == (
        "telegram/default and telegram/work both want to be called at /telegram; "
        "set another path for one of them"
    )


@pytest.mark.parametrize("path", ["", "hook", "/a b", "/a?b", "/a%20", "/ä", "/a\n", "/a#"])
def test_a_path_that_no_request_can_have_is_an_error(path: str) -> None:
    with pytest.raises(HookConflict, match="telegram/a wants to be called at"):
        hooks_of(Called("a", path))
