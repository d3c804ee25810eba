"""The event loop of a process: uvloop where it exists."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a gateway's whole life."""
    with asyncio.Runner(loop_factory=_factory()) as runner:
        return runner.run(main)


def _factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop  # noqa: PLC0415 - it does not exist everywhere
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
