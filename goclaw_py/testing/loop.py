"""An event loop with virtual time: when nothing is ready, it jumps to the next timer.

A sleep of an hour takes microseconds, and a test that waits for an event that never happens fails
at once instead of hanging. Sockets with both ends in the loop work. Threads and other processes run
in real time: mark such waits with ``busy_outside``.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_OUTSIDE_POLL_S = 0.01


class Deadlock(RuntimeError):
    """Every task waits and no timer is set: in real time the test would never end."""


class _Selector(selectors.DefaultSelector):
    """A selector that advances the loop's clock instead of sleeping."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0) or self.loop.notify_settled():
            return ready
        if self.loop.outside:
            return super().select(
                _OUTSIDE_POLL_S if timeout is None else min(timeout, _OUTSIDE_POLL_S)
            )
        if timeout is None:
            raise Deadlock("every task waits and no timer is set")
        self.loop.virtual_now += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """The event loop with virtual time. ``virtual_now`` is its clock, in seconds from 0."""

    def __init__(self) -> None:
        selector = _Selector()
        selector.loop = self
        self.virtual_now = 0.0
        self.outside = 0
        self._settled: list[asyncio.Future[None]] = []
        self._was_told = False
        super().__init__(selector)
        # That of the machine, 1 ns, is less than two numbers of this size differ by after half a
        # year: a timer would never be due. This is enough for 30 years.
        self._clock_resolution = 1e-7

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self.virtual_now

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Set a timer. If it is due within the clock resolution, move the clock to it.

        Every loop runs such a timer at once. A callback that finds it too early by rounding and
        sets it again would repeat that endlessly, since virtual time would not advance.
        """
        if self.virtual_now < when < self.virtual_now + self._clock_resolution:
            self.virtual_now = when
        return super().call_at(when, callback, *args, context=context)

    async def settled(self) -> None:
        """Wait until nothing is left to do at this instant.

        If the caller does nothing before the next call, time advances to the next timer.
        """
        future: asyncio.Future[None] = self.create_future()
        self._settled.append(future)
        await future

    def notify_settled(self) -> bool:
        """Wake the waiters of ``settled``. Return False if there are none or it just did."""
        told, self._was_told = self._was_told, False
        if told or not self._settled:
            return False
        waiting, self._settled = self._settled, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
        self._was_told = True
        return True

    @contextmanager
    def busy_outside(self) -> Iterator[None]:
        """Let real time pass while something outside this loop is running."""
        self.outside += 1
        try:
            yield
        finally:
            self.outside -= 1

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run in a thread; real time passes until it has finished."""
        self.outside += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._back_inside)
        return future

    def _back_inside(self, _future: asyncio.Future[Any]) -> None:
        self.outside -= 1

    async def shutdown_default_executor(self, *arguments: Any) -> None:
        """Join the threads, which end in real time."""
        with self.busy_outside():
            await super().shutdown_default_executor(*arguments)
