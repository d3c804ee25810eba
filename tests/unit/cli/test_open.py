"""``goclaw open``: the dashboard in a browser (SPEC OPS-3)."""

from __future__ import annotations

import socket
import webbrowser
from pathlib import Path

import pytest

from goclaw_py.cli.exits import ExitCode
from tests.unit.cli.conftest import Shell


@pytest.fixture
def tabs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a browser was asked to show."""
    shown: list[str] = []

    def show(url: str) -> bool:
        shown.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", show)
    return shown


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_page_is_opened_and_its_address_printed(
    goclaw: Shell, home: Path, tabs: list[str], monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    token = "no-address-has-this-token"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        settings = f'[web]\nhost = "{host}"\nport = {port}\ntoken = "{token}"\n'
        (home / "goclaw.toml").write_text(settings)
        assert goclaw("open").out == f"http://127.0.0.1:{port}/\n"
        document = goclaw.data("open", "jobs")
        monkeypatch.setattr(webbrowser, "open", lambda _url: False)
        got = goclaw("open", "why")
    assert document == {"url": f"http://127.0.0.1:{port}/jobs", "opened": True}
    assert tabs == [f"http://127.0.0.1:{port}/", f"http://127.0.0.1:{port}/jobs"]
    assert (got.code, got.out) == (0, f"http://127.0.0.1:{port}/why\n")
    assert got.err == "no browser found on this machine\n"


def test_without_a_gateway_no_browser_is_opened(goclaw: Shell, home: Path, tabs: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    (home / "goclaw.toml").write_text(f"[web]\nport = {port}\n")
    got = goclaw("open")
    assert (got.code, got.out) == (ExitCode.UNREACHABLE, "")
    assert "goclaw run" in got.err
    (home / "goclaw.toml").write_text("[web]\nport = 0\n")
    assert "web.port = 0" in goclaw("open").err
    assert goclaw("open", "nowhere").code == ExitCode.USAGE
    assert tabs == []
