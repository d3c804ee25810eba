"""Listening where the settings say, or a sentence that tells why not (SPEC CHAN-2, SEC-1)."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from goclaw_py.web.tcp import CannotListen, listen_tcp, url_of


def ipv6_works() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not ipv6_works(), reason="this machine has no IPv6")


@pytest.fixture
def taken() -> Iterator[int]:
    """A port of 127.0.0.1 at which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def port_of(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


def test_the_usual_address_can_be_reached_and_named() -> None:
    with closing(listen_tcp("127.0.0.1", 0)) as listener:
        port = port_of(listener)
        assert url_of(listener) == f"http://127.0.0.1:{port}"
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        assert not listener.getblocking()


def test_a_name_with_several_addresses_means_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(listen_tcp("localhost", 0)) as listener:
        assert listener.getsockname()[0] in ("127.0.0.1", "::1")
    both = [
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 0, 0, 0)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_arguments, **_options: both)
    with closing(listen_tcp("localhost", 0)) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


@needs_ipv6
def test_ipv6_is_spoken() -> None:
    """Its unspecified address means all addresses."""
    with closing(listen_tcp("::1", 0)) as listener:
        assert url_of(listener) == f"http://[::1]:{port_of(listener)}"
        socket.create_connection(("::1", port_of(listener)), timeout=5).close()
    with closing(listen_tcp("::", 0)) as listener:
        for host in ("::1", "127.0.0.1"):
            socket.create_connection((host, port_of(listener)), timeout=5).close()


def test_a_port_can_be_taken_again_at_once() -> None:
    """A restart must not wait for the connections of the process before to be forgotten."""
    with closing(listen_tcp("127.0.0.1", 0)) as listener:
        port = port_of(listener)
        client = socket.create_connection(("127.0.0.1", port), timeout=5)
        listener.settimeout(5)
        served, _ = listener.accept()
        served.close()
        client.close()
    with closing(listen_tcp("127.0.0.1", port)) as again:
        assert port_of(again) == port


def refused(host: str, port: int) -> str:
    with pytest.raises(CannotListen) as caught:
        listen_tcp(host, port)
    return str(caught.value)


def test_what_cannot_be_listened_at_is_told(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    used = "another program already listens there; stop it, or set another port"
    for host in ("127.0.0.1", "0.0.0.0"):
        assert refused(host, taken) == f"web.port = {taken}: {used}"
    cure = "set 127.0.0.1 or an address of this machine"
    # One that documentation may use and nobody has.
    words = "this machine does not have this address"
    assert refused("203.0.113.7", 0) == f"web.host = '203.0.113.7': {words}; {cure}"
    for host in ("a..b", "x" * 300):
        assert refused(host, 0) == f"web.host = {host!r}: this is not a host name; {cure}"

    def unknown(*_arguments: object, **_options: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    words = "web.host = 'hooks.example': Name or service not known"
    assert refused("hooks.example", 0) == f"{words}; {cure}"


@pytest.mark.parametrize(("number", "words"), [
    (errno.EACCES, "web.port = 80: this user is not allowed to listen there; set a port of 1024"),
    (errno.EPERM, "use a reverse proxy in front of it"),
    (errno.ENOBUFS, "cannot listen at web.host = '127.0.0.1', web.port = 80: no more"),
])  # fmt: skip
def test_other_refusals_are_told(monkeypatch: pytest.MonkeyPatch, number: int, words: str) -> None:
    def refuse(*_arguments: object, **_options: object) -> None:
        raise OSError(number, "no more")

    monkeypatch.setattr(socket, "create_server", refuse)
    assert words in refused("127.0.0.1", 80)
