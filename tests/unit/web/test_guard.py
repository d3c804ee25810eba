"""Who may ask the API over TCP (SPEC OPS-2, SEC-1)."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from goclaw_py.web.guard import Guard
from goclaw_py.web.sign_ins import SignIns

TOKEN = "0123456789abcdef-secret"
EVIL = "http://evil.example"


class Inside:
    """What is guarded. Counts whom it has served."""

    def __init__(self) -> None:
        self.served = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.served += 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"in"})


async def ask(
    *headers: tuple[str, str],
    method: str = "GET",
    path: str = "/api/runs",
    token: str = "",
    address: str = "127.0.0.1",
    hosts: Iterable[str] = (),
) -> tuple[int, str]:
    """Status and body of the answer to a request with exactly these headers."""
    inside = Inside()
    sign_ins = SignIns(None, token, lambda: 0.0) if token else None
    guard = Guard(inside, address=address, hosts=hosts, sign_ins=sign_ins)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    scope = {"type": "http", "method": method, "path": path, "headers": raw}
    await guard(scope, receive, send)
    status = sent[0]["status"]
    assert inside.served == (status == 200), "served means asked"
    return status, sent[1]["body"].decode()


def host(name: str) -> tuple[str, str]:
    return "host", name


def origin(site: str) -> tuple[str, str]:
    return "origin", site


LOCAL = host("localhost:8420")
OURS = origin("http://localhost:8420")
BEARER = ("authorization", f"Bearer {TOKEN}")


@pytest.mark.parametrize("name", [
    "localhost", "localhost:8420", "LocalHost:1", "localhost.", "localhost.:8420", "127.0.0.1",
    "127.0.0.1:65535", "[::1]", "[::1]:8420", "[0:0:0:0:0:0:0:1]:8420", " localhost ",
])  # fmt: skip
async def test_this_machine_may_be_called_by_its_names(name: str) -> None:
    assert (await ask(host(name)))[0] == 200


@pytest.mark.parametrize("name", [
    "evil.example", "evil.example:8420", "localhost.evil.example", "127.0.0.1.evil.example",
    "notlocalhost", "127.0.0.2", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "127.1", "2130706433",
    "0x7f000001", "192.168.0.7",
])  # fmt: skip
async def test_a_name_that_is_not_ours_is_refused_in_words(name: str) -> None:
    """DNS rebinding: the page's own name leads to this machine."""
    status, text = await ask(host(name))
    assert (status, "web.hosts" in text) == (421, True)
    # The name that a proxy tells is not believed.
    forwarded = ("x-forwarded-host", "localhost"), ("forwarded", "host=localhost")
    assert (await ask(host(name), *forwarded))[0] == 421


@pytest.mark.parametrize("name", [
    "", ":8420", "localhost:", "localhost:0", "localhost:65536", "localhost:8420:8420",
    "localhost:-1", "localhost:http", "evil.example@localhost", "localhost@evil.example",
    "user:pass@localhost:8420", "localhost/evil", "localhost\\evil", "http://localhost",
    "localhost,evil.example", "localhost evil.example", "local\u00e4host", "::1", "[::1",
    "localhost\x00", "localhost\n", ".",
])  # fmt: skip
async def test_a_host_that_is_no_name_is_a_bad_request(name: str) -> None:
    assert (await ask(host(name)))[0] == 400


async def test_there_is_one_host_header() -> None:
    assert (await ask())[0] == 400
    assert (await ask(LOCAL, LOCAL))[0] == 400
    assert (await ask(host("evil.example"), LOCAL))[0] == 400


async def test_the_address_and_the_names_of_the_settings_are_ours() -> None:
    names = {"address": "192.168.0.7", "hosts": ["bot.example.org", "2001:DB8::1"]}
    for name in ("192.168.0.7:8420", "bot.example.org", "BOT.example.org.:443", "[2001:db8::1]"):
        assert (await ask(host(name), token=TOKEN, **names))[0] == 401  # type: ignore[arg-type]
    assert (await ask(host("192.168.0.8"), token=TOKEN, **names))[0] == 421  # type: ignore[arg-type]


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "[::]"])
@pytest.mark.parametrize(("name", "status"), [
    ("192.168.0.7:8420", 200), ("[2001:DB8::1]", 200),
    ("[::ffff:192.168.0.7]:80", 200), ("localhost", 200),
    ("evil.example", 421), ("192.168.0.7.evil.example", 421),
    ("192.168.7", 421), ("0xc0a80007", 421), ("[::]", 421),
    ("[::]:8420", 421), ("0.0.0.0", 421),
])  # fmt: skip
async def test_where_all_is_served_no_name_is_ours(address: str, name: str, status: int) -> None:
    """A page of another site can have its name lead here, but not an address that is ours."""

    async def asked(*headers: tuple[str, str], method: str = "GET") -> int:
        return (await ask(host(name), *headers, address=address, token=TOKEN, method=method))[0]

    assert await asked(BEARER) == status
    assert await asked(BEARER, origin(f"http://{name}"), method="POST") == status
    assert await asked(BEARER, origin(EVIL)) != 200
    assert await asked() == (401 if status == 200 else status)


@pytest.mark.parametrize(("name", "site"), [
    ("localhost:8420", "http://localhost:8420"), ("localhost:8420", "HTTP://LOCALHOST:8420"),
    ("localhost", "http://localhost"), ("localhost:80", "http://localhost"),
    ("localhost", "http://localhost:80"), ("[::1]:8420", "http://[::1]:8420"),
    ("bot.example.org", "https://bot.example.org"),
    ("bot.example.org:443", "https://bot.example.org"),
])  # fmt: skip
async def test_a_page_of_ours_may_change_something(name: str, site: str) -> None:
    assert (await ask(host(name), origin(site), method="POST", hosts=["bot.example.org"]))[0] == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("site", [
    EVIL, "null", "", "http://localhost", "http://localhost:8421", "http://127.0.0.1:8420",
    "https://localhost", "http://localhost:8420.evil.example", "localhost:8420",
    "http://localhost:8420@evil.example", "http://evil.example@localhost:8420",
    "http://localhost:8420/", "http://localhost:8420 http://evil.example", "file://",
    "chrome-extension://localhost:8420", "javascript:alert(1)",
])  # fmt: skip
async def test_pages_of_other_sites_are_not_served(site: str, method: str) -> None:
    status, text = await ask(LOCAL, origin(site), method=method)
    assert (status, "other sites" in text) == (403, True)
    # The token does not excuse it, nor does our own origin beside it.
    assert (await ask(LOCAL, BEARER, origin(site), method=method, token=TOKEN))[0] == 403
    for twice in (origin(site), OURS):
        assert (await ask(LOCAL, OURS, twice, method=method))[0] == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW", "get"])
async def test_a_change_has_to_show_where_it_comes_from(method: str) -> None:
    """A form of another site, or a program that knows no token, shows nothing."""
    status, text = await ask(LOCAL, method=method)
    assert (status, "web.token_file" in text) == (403, True)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
async def test_on_this_machine_anybody_may_read(method: str) -> None:
    assert (await ask(LOCAL, method=method))[0] == 200


@pytest.mark.parametrize(("site", "status"), [
    ("same-origin", 200), ("none", 200), ("same-site", 403),
    ("cross-site", 403), ("Same-Origin", 403), ("", 403),
    ("same-origin, cross-site", 403),
])  # fmt: skip
async def test_a_browser_says_whose_page_asks(site: str, status: int) -> None:
    fetched = ("sec-fetch-site", site)
    assert (await ask(LOCAL, fetched, method="POST"))[0] == status
    assert (await ask(LOCAL, fetched, fetched, method="POST"))[0] == 403


@pytest.mark.parametrize("method", ["GET", "OPTIONS", "POST", "DELETE"])
async def test_with_a_token_every_request_needs_it(method: str) -> None:
    ours = OURS, ("sec-fetch-site", "same-origin")
    assert (await ask(LOCAL, *ours, method=method, token=TOKEN))[0] == 401
    assert (await ask(LOCAL, BEARER, method=method, token=TOKEN))[0] == 200


@pytest.mark.parametrize(("given", "status"), [
    (f"Bearer {TOKEN}", 200), (f"bearer  {TOKEN} ", 200),
    (f"Basic {TOKEN}", 401), (f"Bearer {TOKEN[:-1]}", 401),
    (f"Bearer {TOKEN}x", 401), (f"Bearer {TOKEN.upper()}", 401),
    (f"Bearer\t{TOKEN}", 401), (f"Bearer {TOKEN} {TOKEN}", 401),
    ("Bearer ", 401), ("Bearer", 401), (TOKEN, 401), ("", 401),
    ("Bearer \u00e4\u00ff", 401),
])  # fmt: skip
async def test_only_the_token_itself_opens(given: str, status: int) -> None:
    assert (await ask(LOCAL, ("authorization", given), token=TOKEN))[0] == status


async def test_there_is_one_token() -> None:
    assert (await ask(LOCAL, BEARER, BEARER, token=TOKEN))[0] == 401
    assert (await ask(LOCAL, BEARER, ("authorization", "Bearer x"), token=TOKEN))[0] == 401


async def test_health_needs_no_token_but_the_right_name() -> None:
    assert (await ask(LOCAL, path="/healthz", token=TOKEN))[0] == 200
    assert (await ask(host("evil.example"), path="/healthz", token=TOKEN))[0] == 421
    assert (await ask(LOCAL, path="/healthz", method="POST", token=TOKEN))[0] == 401
    assert (await ask(LOCAL, path="/healthz/../api/runs", token=TOKEN))[0] == 401


async def test_a_wrong_token_is_neither_logged_nor_shown(caplog: pytest.LogCaptureFixture) -> None:
    """SPEC SEC-2."""
    with caplog.at_level(logging.DEBUG):
        _, text = await ask(LOCAL, ("authorization", "Bearer of-mine-secret"), token=TOKEN)
    assert "of-mine-secret" not in text + caplog.text
    assert TOKEN not in text + caplog.text


async def test_a_refusal_is_an_answer_of_the_api() -> None:
    guard = Guard(Inside(), address="127.0.0.1", sign_ins=SignIns(None, TOKEN, lambda: 0.0))
    transport = httpx.ASGITransport(guard)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get("/api/runs")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.json()) == ["error"]


async def test_a_web_socket_is_closed_before_it_opens() -> None:
    """A page of any site can open one, and no Origin keeps it."""
    inside, sent = Inside(), list[Message]()

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    scope = {"type": "websocket", "path": "/", "headers": [(b"host", b"localhost")]}
    await Guard(inside, address="127.0.0.1")(scope, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]
    assert inside.served == 0
