"""How long work tells how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ProgressStep:
    """How far something is. ``done`` and ``total`` are bytes; ``total`` None: nobody knows."""

    what: str
    done: int
    total: int | None = None


Tell = Callable[[ProgressStep], None]
"""Called often, from any thread; takes no time."""


async def in_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Do something that blocks elsewhere. Unlike ``asyncio.to_thread`` it has ended afterwards.

    So what it works on may be taken away from it, also when this is cancelled.
    """
    task = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
