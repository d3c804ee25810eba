"""Imports while the event loop goes on: all of them in one thread.

Two threads that import a package with cycles between its modules at once (``pydantic_ai`` is one)
may each get modules of the other that are not complete.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")

_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="imports")


async def in_import_thread(work: Callable[[], T]) -> T:
    """Call a function that imports modules, and return its result.

    Whatever a process imports after its start goes through here. A cancellation does not end
    ``work`` that has begun: the import is finished for those who need it next.
    """
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_THREAD, copy_context().run, work)
