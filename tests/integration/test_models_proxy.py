"""Models through proxies that the environment names (SPEC CHAN-15), in both protocols."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest

from goclaw_py.agents.models import Provider, RetryPolicy
from tests.support.model_agents import BOTH, ModelAgents, fails, model_agents, url
from tests.support.proxies import ProxyServer
from tests.unit.agents.builders import Events, request

pytestmark = pytest.mark.real_time

NAME = "models.test"
USER, PASSWORD = "ann", "hush-hush @:/#"
GIVEN = "ann:hush-hush%20%40%3A%2F%23@"
CLOSED = {"user": USER, "password": PASSWORD}
ONE_TRY = RetryPolicy(tries=1)

both = pytest.mark.parametrize("provider", BOTH)


def behind(agents: ModelAgents, provider: Provider) -> str:
    """The address of the server by a name that only a proxy knows."""
    return url(agents.server, provider).replace("127.0.0.1", NAME)


def with_user(address: str, given: str) -> str:
    return address.replace("://", f"://{given}")


@both
@pytest.mark.parametrize("kind", ["http", "socks"])
@pytest.mark.parametrize("is_closed", [False, True], ids=["open", "password"])
async def test_requests_go_through_the_proxy(
    provider: Provider, kind: str, is_closed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, password = (USER, PASSWORD) if is_closed else ("", "")
    async with model_agents() as agents, ProxyServer(user, password) as proxy:
        address = proxy.http if kind == "http" else proxy.socks
        monkeypatch.setenv("ALL_PROXY", with_user(address, GIVEN if is_closed else ""))
        agent = agents.make(provider, base_url=behind(agents, provider))
        for word in ("one", "two"):
            assert word in (await agent.run(request(f"say {word}"), Events())).text
        assert set(proxy.seen) == {f"{NAME}:{agents.server.port}"}


@both
async def test_a_server_on_this_machine_needs_no_proxy(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with model_agents() as agents, ProxyServer() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.http)
        await agents.make(provider).run(request("say one"), Events())
        monkeypatch.setenv("NO_PROXY", NAME)
        agent = agents.make(provider, base_url=behind(agents, provider), retry=ONE_TRY)
        error = await fails(agent, "say two")
        assert "proxy" not in str(error)
        assert proxy.seen == []


@both
@pytest.mark.parametrize(
    ("way", "server", "given", "words"),
    [
        (("http", "http"), CLOSED, "", "needs a user name and password"),
        (("http", "https"), CLOSED, "ann:wrong-hush@", "does not accept"),
        (("http", "http"), {"refuses": 403}, GIVEN, "403"),
        (("http", "https"), {"refuses": 403}, GIVEN, "403"),
        (("http", "http"), {"refuses": 502}, GIVEN, "502"),
        (("http", "https"), {"hangs_up": True}, GIVEN, ""),
        (("http", "https"), None, GIVEN, "connect"),
        (("socks", "https"), CLOSED, "", "needs a user name"),
        (("socks", "https"), CLOSED, "ann:wrong-hush@", "does not accept"),
        (("socks", "http"), {"refuses": 2}, GIVEN, "ruleset"),
        (("socks", "http"), None, GIVEN, "connect"),
        (("socks", "http"), {"hangs_up": True}, GIVEN, ""),
    ],
)
async def test_a_failure_names_the_proxy_without_its_credentials(
    provider: Provider,
    way: tuple[str, str],
    server: Mapping[str, Any] | None,
    given: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind, scheme = way
    async with AsyncExitStack() as stack:
        agents = await stack.enter_async_context(model_agents())
        proxy = ProxyServer(port=9)  # nobody listens there
        if server is not None:
            proxy = await stack.enter_async_context(ProxyServer(**server))
        address = proxy.http if kind == "http" else proxy.socks
        monkeypatch.setenv("ALL_PROXY", with_user(address, given))
        agent = agents.make(provider, base_url=f"{scheme}://{NAME}:8443/v1", retry=ONE_TRY)
        error = await fails(agent, "say one")
        shown = with_user(address, "[hidden]@" if given else "")
        assert f"the proxy {shown} (ALL_PROXY)" in str(error)
        assert words in str(error).lower()
        assert "hush" not in str(error)
        assert "hush" not in error.friendly


async def test_a_variable_that_names_no_proxy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "socks4://ann:hush-hush@p:1080")
    async with model_agents() as agents:
        agent = agents.make(base_url=f"https://{NAME}/v1", retry=ONE_TRY)
        error = await fails(agent, "say one")
    assert "the variable HTTPS_PROXY must be an http or socks5 proxy" in str(error)
    assert "hush" not in str(error)
