"""Notifies the service manager about the state of this process (sd_notify, SPEC OPS-7).

It is enabled by ``NOTIFY_SOCKET`` (the address) and ``WATCHDOG_USEC`` (the interval). A gateway
whose event loop is blocked sends nothing, and is restarted.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

log = logging.getLogger(__name__)

_EXTEND_S: Final = 60.0
"""The extra startup time that each notification requests."""

_ALIVE_S: Final = 20.0


class Manager:
    """Sends notifications to the service manager, if there is one."""

    def __init__(self, address: str = "") -> None:
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._is_ready = False

    def ready(self) -> None:
        """Notify that the gateway is ready."""
        self._is_ready = True
        self._notify("READY=1")

    def stopping(self) -> None:
        """Notify that the shutdown has begun."""
        self._notify("STOPPING=1")

    def alive(self) -> None:
        """Notify that the event loop runs; during a slow start, request more startup time."""
        self._notify(
            "WATCHDOG=1" if self._is_ready else f"EXTEND_TIMEOUT_USEC={_EXTEND_S:.0f}000000"
        )

    def _notify(self, state: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as there:
                there.settimeout(0)
                there.sendto(state.encode(), self._address)
        except OSError as error:
            # A full or broken socket must not stop the gateway; the next notification may arrive.
            log.debug("service_manager_not_notified", extra={"error": str(error)})


NO_MANAGER: Final = Manager()


@asynccontextmanager
async def managed(env: Mapping[str, str]) -> AsyncIterator[Manager]:
    """Send watchdog notifications to the service manager of ``env``, until the end."""
    address = env.get("NOTIFY_SOCKET", "")
    manager = Manager(address)
    if not address:
        yield manager
        return
    watchdog = asyncio.create_task(_notify_regularly(manager, _every_s(env)), name="watchdog")
    try:
        yield manager
    finally:
        watchdog.cancel()
        await asyncio.gather(watchdog, return_exceptions=True)


async def _notify_regularly(manager: Manager, every_s: float) -> None:
    while True:
        manager.alive()
        await asyncio.sleep(every_s)


def _every_s(env: Mapping[str, str]) -> float:
    """Return a third of the watchdog interval, if there is one for this process."""
    allowed, pid = env.get("WATCHDOG_USEC", ""), env.get("WATCHDOG_PID", "")
    if not allowed.isdecimal() or pid not in ("", str(os.getpid())):
        return _ALIVE_S
    return min(max(int(allowed) / 1_000_000 / 3, 0.1), _ALIVE_S)
