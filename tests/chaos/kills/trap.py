"""Kills a node when the moment comes that was chosen."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass

from tests.chaos.kills.script import Kill, Moment


@dataclass(frozen=True, slots=True)
class Sprung:
    """A node that was killed. ``about``: the id of the response or call, if there is one."""

    node: int
    about: str = ""


@dataclass(slots=True, eq=False)
class _Armed:
    kill: Kill
    left: int


class Trap:
    """Used by two threads: ``reach`` is called in a loop, everything else in the main thread.

    Args:
        kill: Kills a node; returns whether it was alive.
    """

    def __init__(self, kill: Callable[[int], bool]) -> None:
        self._kill = kill
        self._lock = threading.Lock()
        self._armed: _Armed | None = None
        self._sprung: Sprung | None = None
        self._event = threading.Event()

    def arm(self, kill: Kill) -> None:
        """Wait for a moment."""
        with self._lock:
            self._sprung = None
            self._event.clear()
            self._armed = _Armed(kill, kill.skip)

    def wait(self, seconds: float) -> bool:
        """Wait for the kill, for so long; whether there was one."""
        return self._event.wait(seconds)

    def disarm(self) -> Sprung | None:
        """Wait no longer; what was killed."""
        with self._lock:
            self._armed = None
            return self._sprung

    def reach(self, moment: Moment, node: int, about: str) -> None:
        """The moment has come on a node: it is killed if this is what is waited for."""
        with self._lock:
            armed = self._armed
            if armed is None or armed.kill.moment is not moment or armed.left < 0:
                return
            armed.left -= 1
        if armed.left >= 0:
            return
        if armed.kill.delay_s:
            loop = asyncio.get_running_loop()
            loop.call_later(armed.kill.delay_s, self._spring, armed, node, about)
        else:
            self._spring(armed, node, about)

    def _spring(self, armed: _Armed, node: int, about: str) -> None:
        with self._lock:
            if self._armed is not armed:
                return
            if self._kill(node):
                self._armed, self._sprung = None, Sprung(node, about)
                self._event.set()
            else:
                armed.left = 0
