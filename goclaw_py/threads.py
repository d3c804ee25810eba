"""Work in threads while the event loop goes on: on long texts, and imports, which share one thread.

Two threads that import a package with cycles between its modules at once (``pydantic_ai`` is one)
may each get modules of the other that are not complete.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Final, TypeVar

T = TypeVar("T")

LONG: Final = 8_000
"""The length in characters from which a thread is worth its price: formatting takes 40 µs each."""

_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="imports")


async def in_import_thread(work: Callable[[], T]) -> T:
    """Call a function that imports modules, and return its result.

    Whatever a process imports after its start goes through here. A cancellation does not end
    ``work`` that has begun: the import is finished for those who need it next.
    """
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_THREAD, copy_context().run, work)


async def in_thread_if_long(chars: int, work: Callable[[], T]) -> T:
    """Call a function, in a thread if it works on a text of many characters.

    The event loop would answer nobody meanwhile. A cancellation does not end ``work``.
    """
    return work() if chars <= LONG else await asyncio.to_thread(work)
