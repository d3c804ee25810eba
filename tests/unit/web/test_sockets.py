"""Where a gateway listens: one gateway for each state folder, and only for its user."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest

from goclaw_py.web import sockets
from goclaw_py.web.sockets import AlreadyRunning, is_answered, listen_unix, short_path, socket_path


def test_the_socket_is_for_its_user_alone(tmp_path: Path) -> None:
    """SPEC SEC-1."""
    listener = listen_unix(tmp_path / "new" / "gateway.sock")
    assert stat.S_IMODE(listener.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(listener.path.parent.stat().st_mode) == 0o700
    listener.close()


def test_a_second_gateway_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    path = socket_path(tmp_path)
    listener = listen_unix(path)
    with pytest.raises(AlreadyRunning, match=r"already running here: .*; end it first"):
        listen_unix(path)
    assert is_answered(path)
    listener.close()
    assert not path.exists()


def test_the_socket_of_a_dead_gateway_is_replaced(tmp_path: Path) -> None:
    path = socket_path(tmp_path)
    dead = listen_unix(path)
    dead.socket.close()
    assert path.exists()
    assert not is_answered(path)
    listener = listen_unix(path)
    assert is_answered(path)
    listener.close()
    listener.close()


def test_closing_leaves_the_socket_of_a_successor_alone(tmp_path: Path) -> None:
    path = socket_path(tmp_path)
    old = listen_unix(path)
    path.rename(path.with_suffix(".kept"))
    new = listen_unix(path)
    old.close()
    assert is_answered(path)
    new.close()


def test_a_busy_gateway_is_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "_PROBE_S", 0.05)
    path = tmp_path / "gateway.sock"
    waiting = []
    with socket.socket(socket.AF_UNIX) as busy:
        busy.bind(str(path))
        busy.listen(0)
        for _ in range(3):
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(0)
            try:
                client.connect(str(path))
            except BlockingIOError:
                client.close()
            else:
                waiting.append(client)
        assert is_answered(path)
    for client in waiting:
        client.close()


def test_a_path_that_fits_is_used_as_it_is(tmp_path: Path) -> None:
    with short_path(Path("/run/x.sock")) as name:
        assert name == "/run/x.sock"


def test_a_long_path_has_a_short_name_that_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path.joinpath(*["n" * 60] * 3, "gateway.sock")
    listener = listen_unix(path)
    with short_path(path) as name:
        link = Path(name).parent
        assert len(name) < 100
        assert link.resolve() == path.parent
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(name)
    assert not link.parent.exists()
    with pytest.raises(AlreadyRunning):
        listen_unix(path)
    listener.close()


def test_a_folder_that_refuses_the_socket_leaves_no_open_handle(tmp_path: Path) -> None:
    (tmp_path / "gateway.sock").mkdir()
    with pytest.raises(OSError, match=r"directory|permitted"):
        listen_unix(tmp_path / "gateway.sock")
