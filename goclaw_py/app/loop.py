"""The event loop of a gateway's process: uvloop where it exists."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, TypeVar

log = logging.getLogger(__name__)

_LAST_CHANCE_S = 1.0

T = TypeVar("T")


def run(main: Coroutine[Any, Any, int]) -> int:
    """Run a gateway until it ends; return the exit code.

    A run that ignores its cancellation must not block the shutdown: the loop would wait for it
    forever, so the process exits without closing the loop.
    """
    collect_less_often()
    with asyncio.Runner(loop_factory=_factory()) as runner:
        code, stubborn = _until_end(runner, main)
        if stubborn:
            log.warning("tasks_left_running", extra={"tasks": stubborn})
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        return code


def collect_less_often() -> None:
    """Run the garbage collector less often, and only on new objects.

    Most objects of a gateway are freed with their message, without reference cycles. With
    Python's default thresholds, a fifth of the CPU time was spent on scanning modules.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


async def end(tasks: Iterable[asyncio.Task[Any]], *, every_s: float, times: int) -> list[str]:
    """Cancel tasks until they have ended; return the names of those that do not end.

    One cancellation may not be enough: a library, or a failing clean-up, can swallow it.
    """
    left = {task for task in tasks if not task.done()}
    for _ in range(times):
        if not left:
            break
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=every_s)
    return sorted(task.get_name() for task in left)


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of ``work``, or cancel it and return None if ``stop`` is set first."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else None
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)


def _until_end(runner: asyncio.Runner, main: Coroutine[Any, Any, int]) -> tuple[int, list[str]]:
    """Run ``main`` to its end, whatever another task raises.

    ``sys.exit`` in a task that an agent has made is an error of this task. asyncio would end the
    loop with it, and so all runs of the gateway.
    """
    begun: list[asyncio.Task[Any]] = []
    go_on = partial(runner.run, _and_the_rest(main, begun))
    while True:
        try:
            return go_on()
        except (KeyboardInterrupt, SystemExit):
            # Ctrl-C before the gateway handles signals itself cancels the main task.
            if not begun or begun[0].done() or begun[0].cancelling():
                raise
            log.exception("task_tried_to_exit")
            go_on = partial(runner.get_loop().run_until_complete, begun[0])


async def _and_the_rest(
    main: Coroutine[Any, Any, int], begun: list[asyncio.Task[Any]]
) -> tuple[int, list[str]]:
    """Run ``main``; return its exit code and the names of tasks that do not end.

    The task that does it is added to ``begun``.
    """
    begun.extend(filter(None, [asyncio.current_task()]))
    code = await main
    rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    return code, await end(rest, every_s=_LAST_CHANCE_S, times=1)


def _factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop  # noqa: PLC0415 - not available on every platform
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
