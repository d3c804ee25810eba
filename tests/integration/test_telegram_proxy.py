"""Both Telegram clients through real proxies on loopback (SPEC CHAN-15).

The server has a name that only a proxy knows, so whatever arrives has gone through it.
"""

from __future__ import annotations

import contextlib
import ssl
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from channels.telegram import client_class
from channels.telegram.client import BotClient, ChatPlace, Text, Upload
from channels.telegram.settings import Library, read_settings
from goclaw_py.cli import composition
from goclaw_py.cli.doctor.channels import _probed
from goclaw_py.config import load
from goclaw_py.core.errors import MaybeSent, NotSent
from goclaw_py.core.messages import FileKind
from goclaw_py.scheduler.views import ChannelState
from tests.botapi import BotApi
from tests.support.proxies import ProxyServer, tls_front
from tests.support.telegram import ANN, Mode, connected, reply

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]

NAME = "bot-api.test"
HERE = ChatPlace(ANN)
USER, PASSWORD = "ann", "hush-hush @:/#"
GIVEN = "ann:hush-hush%20%40%3A%2F%23@"
SHOWN = {"http": "http://[hidden]@127.0.0.1", "socks": "socks5://[hidden]@127.0.0.1"}

kinds = pytest.mark.parametrize("kind", ["http", "socks"])
closed = pytest.mark.parametrize("is_closed", [False, True], ids=["open", "password"])


def address(proxy: ProxyServer, kind: str, given: str = "") -> str:
    return (proxy.http if kind == "http" else proxy.socks).replace("://", f"://{given}")


def named(url: str) -> str:
    return url.replace("127.0.0.1", NAME)


@asynccontextmanager
async def client_of(library: Library, options: Mapping[str, object]) -> AsyncIterator[BotClient]:
    token: Mapping[str, object] = {"token": "4242:AAtest-token_for-tests-only-12345"}
    settings = read_settings({**token, "send_timeout_s": 2, "connect_timeout_s": 2, **options})
    client = await client_class(library).open(settings)
    try:
        yield client
    finally:
        await client.close()


@kinds
@closed
async def test_calls_polls_uploads_and_downloads_go_through_the_proxy_of_the_account(
    api: BotApi, library: Library, tmp_path: Path, kind: str, is_closed: bool
) -> None:
    user, password = (USER, PASSWORD) if is_closed else ("", "")
    async with ProxyServer(user, password) as proxy:
        way = address(proxy, kind, GIVEN if is_closed else "")
        options = {"token": api.token, "base_url": named(api.url), "proxy": way}
        api.say(ANN, "hello")
        async with client_of(library, options) as client:
            assert (await client.get_me()).username == "GoclawTestBot"
            assert len(await client.get_updates(offset=None, wait_s=0, kinds=["message"])) == 1
            (tmp_path / "file").write_bytes(bytes(range(256)) * 1000)
            upload = Upload(FileKind.DOCUMENT, tmp_path / "file", "a.bin")
            number = await client.send_file(HERE, upload, reply_to=None)
            document = api.world.chats[ANN].messages[number]["document"]
            assert isinstance(document, dict)
            size = await client.fetch_file(document["file_id"], tmp_path / "b", limit_bytes=10**6)
            assert size == 256_000
            assert (tmp_path / "b").read_bytes() == (tmp_path / "file").read_bytes()
    assert set(proxy.seen) == {urlsplit(named(api.url)).netloc}


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_a_channel_uses_the_proxy_of_the_environment_and_names_it(
    api: BotApi, library: Library, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ProxyServer(USER, PASSWORD) as proxy:
        kind = "socks" if variable == "ALL_PROXY" else "http"
        monkeypatch.setenv(variable, address(proxy, kind, GIVEN))
        api.say(ANN, "hello")
        async with connected(api, library, Mode.POLLING, base_url=named(api.url)) as line:
            async with line.receiving():
                await line.inbox.until_accepted("hello")
                await line.channel.send(reply("through"))
                health = line.channel.health
            shown = f"{SHOWN[kind]}:{proxy.port} ({variable})"
            assert (health.state, health.proxy) == (ChannelState.CONNECTED, shown)
            assert f"through the proxy {shown}" in await line.channel.probe()
        assert api.texts(ANN) == ["through"]
        assert set(proxy.seen) == {urlsplit(named(api.url)).netloc}


async def test_this_machine_and_exceptions_are_direct_but_the_account_decides(
    api: BotApi, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ProxyServer() as proxy:
        monkeypatch.setenv("ALL_PROXY", proxy.http)
        local = {"token": api.token, "base_url": api.url}
        async with client_of(library, local) as client:
            await client.get_me()
        assert proxy.seen == []
        async with client_of(library, {**local, "proxy": proxy.socks}) as client:
            await client.get_me()
        assert proxy.seen == [urlsplit(api.url).netloc]
        monkeypatch.setenv("NO_PROXY", NAME)
        async with client_of(library, {**local, "base_url": named(api.url)}) as client:
            with pytest.raises(NotSent) as caught:
                await client.get_me()
        assert "proxy" not in str(caught.value)


CLOSED = {"user": USER, "password": PASSWORD}
NOBODY: Mapping[str, object] = {"port": 9}


@pytest.mark.parametrize(
    ("kind", "scheme", "server", "given", "words"),
    [
        *(
            (kind, scheme, server, given, words)
            for scheme in ("http", "https")
            for kind, server, given, words in (
                ("http", CLOSED, "", "needs a user name and password"),
                ("http", CLOSED, "ann:wrong-hush@", "does not accept the user name and password"),
                ("http", {"refuses": 403}, GIVEN, "HTTP 403"),
                ("http", NOBODY, GIVEN, "cannot be reached: Connect"),
                ("socks", CLOSED, "", "needs a user name and password"),
                ("socks", CLOSED, "ann:wrong-hush@", "does not accept the user name and password"),
                ("socks", {"refuses": 2}, GIVEN, "not allowed by ruleset"),
                ("socks", {"hangs_up": True}, GIVEN, ""),
                ("socks", NOBODY, GIVEN, "onnect to proxy"),
            )
        ),
        ("http", "https", {"refuses": 502}, GIVEN, "HTTP 502"),
        ("http", "https", {"hangs_up": True}, GIVEN, ""),
    ],
)
async def test_a_failure_of_the_proxy_names_it_without_its_credentials(
    library: Library, kind: str, scheme: str, server: Mapping[str, Any], given: str, words: str
) -> None:
    """Nothing was sent, so a message may be repeated without a mark (SPEC IO-5)."""
    async with contextlib.AsyncExitStack() as stack:
        proxy = ProxyServer(**server)
        if server is not NOBODY:
            await stack.enter_async_context(proxy)
        options = {"base_url": f"{scheme}://{NAME}:8443", "proxy": address(proxy, kind, given)}
        client = await stack.enter_async_context(client_of(library, options))
        for ask in (client.get_me, lambda: client.send_message(HERE, Text("hello"))):
            with pytest.raises(NotSent) as caught:
                await ask()
            assert address(proxy, kind, "[hidden]@" if given else "") in str(caught.value)
            assert words in str(caught.value)
            assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("server", "words"),
    [({"refuses": 502}, "HTTP 502"), ({"hangs_up": True}, "no answer from the Bot API")],
)
async def test_a_plain_request_may_have_gone_on_from_a_proxy_that_fails(
    library: Library, server: Mapping[str, Any], words: str
) -> None:
    """SPEC IO-5: it was given to the proxy, unlike one within TLS or SOCKS."""
    async with ProxyServer(**server) as proxy:
        options = {"base_url": f"http://{NAME}:8081", "proxy": address(proxy, "http", GIVEN)}
        async with client_of(library, options) as client:
            with pytest.raises(MaybeSent, match=words) as caught:
                await client.send_message(HERE, Text("hello"))
    assert f"through the proxy {address(proxy, 'http', '[hidden]@')}" in str(caught.value)


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's side; clients trust it."""
    key, certificate = str(tmp_path / "key"), str(tmp_path / "certificate")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}",
         "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    # aiohttp reads SSL_CERT_FILE when it is imported, which has happened.
    trusting = ssl.create_default_context(cafile=certificate)
    monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", trusting)
    return server


@kinds
async def test_tls_goes_through_the_proxy_to_the_server(
    api: BotApi, library: Library, kind: str, tls: ssl.SSLContext
) -> None:
    """A proxy sees neither the token nor a message."""
    plain = urlsplit(api.url).port
    assert plain is not None
    async with tls_front(tls, plain) as port, ProxyServer(USER, PASSWORD) as proxy:
        url = f"https://{NAME}:{port}"
        options = {"token": api.token, "base_url": url, "proxy": address(proxy, kind, GIVEN)}
        api.say(ANN, "hello")
        async with client_of(library, options) as client:
            for number in range(3):
                await client.send_message(HERE, Text(f"hello {number}"))
            await client.get_updates(offset=None, wait_s=0, kinds=["message"])
    assert api.texts(ANN) == ["hello 0", "hello 1", "hello 2"]
    assert proxy.seen == [urlsplit(url).netloc] * 2, "one connection for each purpose"


async def test_doctor_names_the_proxy_whether_it_works_or_not(
    api: BotApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ProxyServer(USER, PASSWORD) as proxy:
        env = {
            "HOME": str(tmp_path),
            "GOCLAW_HOME": str(tmp_path),
            "GOCLAW_TELEGRAM_TOKEN": api.token,
            "GOCLAW_CHANNELS__TELEGRAM__BASE_URL": named(api.url),
            "GOCLAW_CHANNELS__TELEGRAM__PROXY": address(proxy, "http", GIVEN),
        }
        ((name, answer),) = await composition.probe_channels(load(env=env))
        assert f"through the proxy {SHOWN['http']}:{proxy.port}" in _probed(name, answer).fact
        env["GOCLAW_CHANNELS__TELEGRAM__PROXY"] = proxy.socks
        ((name, answer),) = await composition.probe_channels(load(env=env))
        finding = _probed(name, answer)
        assert f"the proxy {proxy.socks} needs a user name and password" in finding.fact
        assert finding.cure == "check channels.telegram.proxy, or the variable that names it"
