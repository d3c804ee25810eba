"""What the service manager is told (SPEC OPS-7)."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from goclaw_py.app.systemd import Manager, managed


class Heard:
    """Stands for the service manager: a socket, and what came to it."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(address)

    def take(self) -> list[str]:
        """What came since."""
        found: list[str] = []
        try:
            while True:
                found.append(self._socket.recv(1000).decode())
        except BlockingIOError:
            return found

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "notify")


@pytest.fixture
def heard(place: str) -> Iterator[Heard]:
    made = Heard(place)
    yield made
    made.close()


async def test_it_is_told_of_the_start_the_life_and_the_end(place: str, heard: Heard) -> None:
    env = {"NOTIFY_SOCKET": place, "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}
    async with managed(env) as manager:
        await asyncio.sleep(11)
        # The database may be away for long: the start is not given up.
        assert heard.take() == ["EXTEND_TIMEOUT_USEC=60000000"] * 2
        manager.ready()
        await asyncio.sleep(20)
        assert heard.take() == ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]
        manager.stopping()
        await asyncio.sleep(10)
        assert heard.take() == ["STOPPING=1", "WATCHDOG=1"]
    await asyncio.sleep(60)
    assert heard.take() == []


@pytest.mark.parametrize(
    "watchdog",
    [{}, {"WATCHDOG_USEC": "soon"}, {"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}],
    ids=["none", "nonsense", "of another process"],
)
async def test_without_a_watchdog_of_ours_it_is_told_now_and_then(
    watchdog: dict[str, str], place: str, heard: Heard
) -> None:
    async with managed({"NOTIFY_SOCKET": place, **watchdog}):
        await asyncio.sleep(41)
    assert len(heard.take()) == 3


async def test_a_name_without_a_file_is_understood() -> None:
    """Of such an address the first character stands for NUL."""
    name = f"goclaw-test-{os.getpid()}"
    heard = Heard(f"\0{name}")
    Manager(f"@{name}").ready()
    assert heard.take() == ["READY=1"]
    heard.close()


@pytest.mark.parametrize("env", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "/nobody/there"}])
async def test_nobody_to_tell_is_no_trouble(env: dict[str, str]) -> None:
    async with managed(env) as manager:
        manager.ready()
        await asyncio.sleep(100)
        manager.stopping()
