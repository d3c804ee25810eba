"""``goclaw open``: the dashboard in a browser (SPEC OPS-3)."""

from __future__ import annotations

import socket
import webbrowser
from dataclasses import replace
from pathlib import Path

import pytest

from goclaw_py.cli.exits import ExitCode
from tests.unit.cli.conftest import Shell, ThreadGateway
from tests.unit.web.fakes import STATUS


@pytest.fixture
def tabs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a browser was asked to show."""
    shown: list[str] = []

    def show(url: str) -> bool:
        shown.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", show)
    return shown


def serves_at(gateway: ThreadGateway, host: str, port: int) -> None:
    """Let the gateway say that its dashboard is there."""
    gateway.control.snapshot = replace(STATUS, address=f"http://{host}:{port}")


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_page_is_opened_and_its_address_printed(
    goclaw: Shell,
    home: Path,
    gateway: ThreadGateway,
    tabs: list[str],
    monkeypatch: pytest.MonkeyPatch,
    host: str,
) -> None:
    """It is that of the running gateway, whatever the file says: another one may be there."""
    (home / "goclaw.toml").write_text("[web]\nport = 1\n")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        serves_at(gateway, host, port)
        assert goclaw("open").out == f"http://127.0.0.1:{port}/\n"
        document = goclaw.data("open", "jobs")
        monkeypatch.setattr(webbrowser, "open", lambda _url: False)
        got = goclaw("open", "why")
    assert document == {"url": f"http://127.0.0.1:{port}/jobs", "opened": True}
    assert tabs == [f"http://127.0.0.1:{port}/", f"http://127.0.0.1:{port}/jobs"]
    assert (got.code, got.out) == (0, f"http://127.0.0.1:{port}/why\n")
    assert got.err == "no browser found on this machine\n"


def test_without_a_gateway_no_browser_is_opened(goclaw: Shell, home: Path, tabs: list[str]) -> None:
    """That of another home may be at the same address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        (home / "goclaw.toml").write_text(f"[web]\nport = {port}\n")
        got = goclaw("open")
    assert (got.code, got.out) == (ExitCode.UNREACHABLE, "")
    assert "no gateway is running in this home; to start one: goclaw run" in got.err
    assert tabs == []


def test_a_dashboard_that_does_not_answer_is_not_opened(
    goclaw: Shell, gateway: ThreadGateway, tabs: list[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    serves_at(gateway, "127.0.0.1", port)
    got = goclaw("open")
    assert (got.code, got.out) == (ExitCode.UNREACHABLE, "")
    gateway.control.snapshot = replace(STATUS, address="")
    assert "the gateway serves no dashboard" in goclaw("open").err
    assert goclaw("open", "nowhere").code == ExitCode.USAGE
    assert tabs == []
