"""``goclaw_py.core.concurrency``: one thread imports, one thing after the other."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

import pytest

from goclaw_py.core.concurrency import in_import_thread

pytestmark = pytest.mark.real_time

_word: ContextVar[str] = ContextVar("word", default="")


async def test_everything_is_imported_by_one_thread() -> None:
    threads = await asyncio.gather(*(in_import_thread(threading.get_ident) for _ in range(5)))
    assert len({*threads}) == 1
    assert threads[0] != threading.get_ident()


async def test_an_import_goes_on_when_its_caller_is_cancelled() -> None:
    begun, may_end, done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait()
        done.set()

    caller = asyncio.create_task(in_import_thread(work))
    await asyncio.to_thread(begun.wait)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    may_end.set()
    await in_import_thread(int)
    assert done.is_set()


async def test_the_work_sees_the_context_of_its_caller() -> None:
    _word.set("here")
    assert await in_import_thread(_word.get) == "here"
