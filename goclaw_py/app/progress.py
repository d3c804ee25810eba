"""Progress reports of long operations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ProgressStep:
    """The progress of an operation, in ``bytes`` or another unit; ``total`` may be unknown."""

    what: str
    done: int = 0
    total: int | None = None
    unit: str = ""


OnProgress = Callable[[ProgressStep], None]
"""A progress callback. It is called often, from any thread, and must return quickly."""


def ignore_progress(step: ProgressStep) -> None:
    """Ignore progress."""


async def in_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking function in a thread and wait for its end, also when cancelled.

    So its resources can be closed afterwards, even after a cancellation.
    """
    task = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
