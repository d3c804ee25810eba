"""A line does to a connection what its state says, whatever is at its other end."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.chaos.cluster.lines import SOCKET, Line, State, lines

pytestmark = pytest.mark.real_time
NOTICE = b"A\x00\x00\x00\x05n"
ROW = b"D\x00\x00\x00\x05r"
WAIT_S = 10.0
NOT_YET_S = 0.1
LATENCY_S = 0.3


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: sockets are in it."""
    with TemporaryDirectory(prefix="gc-", dir="/tmp") as name:
        yield Path(name)


@contextmanager
def server(folder: Path) -> Iterator[None]:
    """Answers whatever it is told with a notice and a row."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / SOCKET))
    listener.listen()

    def serve(one: socket.socket) -> None:
        with one:
            while one.recv(100):
                one.sendall(NOTICE + ROW)

    def accept() -> None:
        while True:
            try:
                one, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(one,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@pytest.fixture
def line(folder: Path) -> Iterator[Line]:
    """A line to such a server."""
    with server(folder), lines(folder, folder, 1) as (made,):
        yield made


@contextmanager
def connected(line: Line) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as made:
        made.settimeout(WAIT_S)
        made.connect(str(line.folder / SOCKET))
        yield made


def answer(to: socket.socket, size: int) -> bytes:
    """The next so many bytes; what there was until the end, or until nothing more comes."""
    got = b""
    try:
        while len(got) < size and (chunk := to.recv(size - len(got))):
            got += chunk
    except TimeoutError:
        pass
    return got


def test_an_open_line_hands_on_everything(line: Line) -> None:
    with connected(line) as here:
        here.sendall(b"?")
        assert answer(here, 12) == NOTICE + ROW


def test_a_deaf_line_loses_notices_and_nothing_else(line: Line) -> None:
    with connected(line) as here:
        line.set(State.DEAF)
        here.sendall(b"?")
        assert answer(here, 6) == ROW


def test_a_cut_line_drops_its_connections_and_refuses_others_until_it_is_mended(line: Line) -> None:
    with connected(line) as here:
        here.sendall(b"?")
        answer(here, 12)
        line.set(State.CUT)
        with suppress(ConnectionResetError):
            assert here.recv(1) == b""
    with pytest.raises(ConnectionRefusedError), connected(line):
        pass
    line.set(State.OPEN)
    with connected(line) as again:
        again.sendall(b"?")
        assert answer(again, 12) == NOTICE + ROW


def test_what_a_silent_line_was_given_arrives_later(line: Line) -> None:
    with connected(line) as here:
        line.set(State.SILENT)
        here.sendall(b"?")
        here.settimeout(NOT_YET_S)
        assert answer(here, 1) == b""
        here.settimeout(WAIT_S)
        line.set(State.OPEN)
        assert answer(here, 12) == NOTICE + ROW


def test_a_slow_line_takes_its_time(line: Line) -> None:
    with connected(line) as here:
        line.set(State.SLOW, latency_s=LATENCY_S)
        asked = time.monotonic()
        here.sendall(b"?")
        assert answer(here, 12) == NOTICE + ROW
        assert time.monotonic() - asked >= LATENCY_S
