"""Which proxy an address needs, and what is shown of it (SPEC CHAN-15, SEC-2)."""

from __future__ import annotations

import pytest

from goclaw_py.core.net.proxies import Proxy, proxy_for, read_proxy

TELEGRAM = "https://api.telegram.org"
PASSWORD = "hush-hush"


@pytest.mark.parametrize(
    ("text", "proxy", "shown"),
    [
        ("http://p:3128", Proxy("http", "p", 3128), "http://p:3128"),
        ("HTTP://p:3128/", Proxy("http", "p", 3128), "http://p:3128"),
        (" p:3128 ", Proxy("http", "p", 3128), "http://p:3128"),
        ("http://p", Proxy("http", "p", 80), "http://p:80"),
        ("127.0.0.1:8080", Proxy("http", "127.0.0.1", 8080), "http://127.0.0.1:8080"),
        ("socks5://p", Proxy("socks5", "p", 1080), "socks5://p:1080"),
        ("socks5h://p:9050", Proxy("socks5", "p", 9050), "socks5://p:9050"),
        ("socks://p:9050", Proxy("socks5", "p", 9050), "socks5://p:9050"),
        ("http://[::1]:3128", Proxy("http", "::1", 3128), "http://[::1]:3128"),
        (f"http://ann:{PASSWORD}@p:1", Proxy("http", "p", 1, "ann", PASSWORD), "http://[hidden]@p:1"),
        (f"ann:{PASSWORD}@p:1", Proxy("http", "p", 1, "ann", PASSWORD), "http://[hidden]@p:1"),
        ("http://ann:a%40b%3Ac%23%2F%C3%BC@p:1", Proxy("http", "p", 1, "ann", "a@b:c#/ü"),
         "http://[hidden]@p:1"),
        (f"socks5://:{PASSWORD}@p:1", Proxy("socks5", "p", 1, "", PASSWORD), "socks5://[hidden]@p:1"),
    ],
)  # fmt: skip
def test_a_proxy_is_read_and_shown_without_its_credentials(
    text: str, proxy: Proxy, shown: str
) -> None:
    assert read_proxy(text) == proxy
    assert str(proxy) == shown
    assert PASSWORD not in repr(proxy)
    assert "ann" not in repr(proxy)


@pytest.mark.parametrize(
    "text",
    [
        "", "http://", "https://p:3128", "socks4://p:1080", "ftp://p", "p:port", "http://p:0", "http://p:70000",
        "http://p:3128/path", "http://p:3128?a=b", "http://p q:1", "http://p\nq:1", "http://[::1:1",
        f"http://ann:{PASSWORD}#1@p:3128", f"http://ann:{PASSWORD}/@p:3128", f"http://a%3Ab:{PASSWORD}@p:1",
        f"socks5://änn:{PASSWORD}@p:1", f"socks5://ann:{PASSWORD * 30}@p:1",
    ],
)  # fmt: skip
def test_what_is_no_proxy_is_refused_without_quoting_it(text: str) -> None:
    with pytest.raises(ValueError, match="must ") as caught:
        read_proxy(text)
    assert PASSWORD not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("environ", "url", "found"),
    [
        ({}, TELEGRAM, None),
        ({"HTTPS_PROXY": "http://p:1"}, TELEGRAM, "http://p:1 (HTTPS_PROXY)"),
        ({"https_proxy": "http://p:1"}, TELEGRAM, "http://p:1 (https_proxy)"),
        ({"https_proxy": "http://p:1", "HTTPS_PROXY": "http://q:1"}, TELEGRAM,
         "http://p:1 (https_proxy)"),
        ({"https_proxy": "", "HTTPS_PROXY": "http://q:1"}, TELEGRAM, None),
        ({"HTTP_PROXY": "http://p:1"}, TELEGRAM, None),
        ({"HTTP_PROXY": "http://p:1"}, "http://bot.example:8081", "http://p:1 (HTTP_PROXY)"),
        ({"HTTPS_PROXY": "http://p:1"}, "http://bot.example", None),
        ({"ALL_PROXY": "socks5h://p:1"}, TELEGRAM, "socks5://p:1 (ALL_PROXY)"),
        ({"ALL_PROXY": "socks5://p:1", "HTTPS_PROXY": "http://q:1"}, TELEGRAM,
         "http://q:1 (HTTPS_PROXY)"),
        ({"ALL_PROXY": "socks5://p:1", "HTTPS_PROXY": " "}, TELEGRAM, "socks5://p:1 (ALL_PROXY)"),
        ({"ALL_PROXY": f"http://ann:{PASSWORD}@p:1"}, TELEGRAM, "http://[hidden]@p:1 (ALL_PROXY)"),
        # A wrong one that is not used harms nobody.
        ({"ALL_PROXY": "socks4://p:1", "HTTPS_PROXY": "http://q:1"}, TELEGRAM,
         "http://q:1 (HTTPS_PROXY)"),
    ],
)  # fmt: skip
def test_the_environment_names_a_proxy(
    environ: dict[str, str], url: str, found: str | None
) -> None:
    proxy = proxy_for(url, environ)
    assert (None if proxy is None else str(proxy)) == found


@pytest.mark.parametrize(
    ("url", "no_proxy", "is_direct"),
    [
        *((f"http://{host}:8081", "", True) for host in
          ("localhost", "LOCALHOST", "localhost.", "bot.localhost", "127.8.8.8", "[::1]")),
        *((f"http://{host}", "", False) for host in
          ("127.0.0.1.example", "localhost.example", "10.0.0.1", "bot")),
        (TELEGRAM, "*", True),
        (TELEGRAM, "example.org, api.telegram.org", True),
        (TELEGRAM, "example.org api.telegram.org", True),
        (TELEGRAM, "API.Telegram.org", True),
        (TELEGRAM, "telegram.org", True),
        (TELEGRAM, ".telegram.org", True),
        (TELEGRAM, "*.telegram.org", True),
        (TELEGRAM, "gram.org", False),
        (TELEGRAM, ",, ,", False),
        (TELEGRAM, "telegram.org.example", False),
        (TELEGRAM, "api.telegram.org:443", True),
        (TELEGRAM, "api.telegram.org:8443", False),
        ("http://bot.example:8081", "bot.example:8081", True),
        ("http://10.1.2.3:8081", "10.1.2.3", True),
        ("http://10.1.2.3:8081", "10.0.0.0/8", True),
        ("http://10.1.2.3:8081", "192.168.0.0/16,10.1.2.3:8081", True),
        ("http://11.1.2.3:8081", "10.0.0.0/8", False),
        ("http://[fd00::5]:80", "fd00::/8", True),
        ("http://[fd00::5]:80", "[fd00::5]", True),
    ],
)  # fmt: skip
def test_some_addresses_are_direct(url: str, no_proxy: str, is_direct: bool) -> None:
    environ = {"ALL_PROXY": "http://p:1", "NO_PROXY": no_proxy}
    assert (proxy_for(url, environ) is None) is is_direct
    assert (proxy_for(url, {**environ, "no_proxy": no_proxy, "NO_PROXY": "x"}) is None) is is_direct


def test_a_wrong_variable_is_named_and_not_quoted() -> None:
    with pytest.raises(ValueError, match="the variable ALL_PROXY must be") as caught:
        proxy_for(TELEGRAM, {"ALL_PROXY": f"socks4://ann:{PASSWORD}@p:1"})
    assert PASSWORD not in str(caught.value)
