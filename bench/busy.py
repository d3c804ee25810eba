"""Other work on the same cores while something is measured."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_LIMIT_S = 300
_LOOP = f"""
import os, time
parent, end = os.getppid(), time.monotonic() + {_LIMIT_S}
while time.monotonic() < end and os.getppid() == parent:
    sum(range(10_000))
"""
"""Ends with its parent, even if that is killed, and after five minutes in any case."""


@contextmanager
def busy_loops(count: int) -> Iterator[list[int]]:
    """Run so many processes that only use the processor; their process ids."""
    loops: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count):
            command = [sys.executable, "-S", "-c", _LOOP]
            loops.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))
        yield [loop.pid for loop in loops]
    finally:
        for loop in loops:
            loop.kill()
        for loop in loops:
            loop.wait()
