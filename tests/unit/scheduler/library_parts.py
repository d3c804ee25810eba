"""What the tests of the scheduler as a library share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from goclaw_py import Outcome, Run, RunState, Scheduler

Message = Callable[["Text"], Awaitable[Any]] | str
Text = Run[Any, Any]
Calls = Scheduler[Any, Any]


async def do(run: Text) -> Any:
    """Work that does what its message says: a function is called with the run."""
    return await run.message(run)


async def nothing(run: Text) -> Any:
    """End at once."""
    return run.message


async def forever(_run: Text) -> None:
    """Work until cancelled."""
    await asyncio.Event().wait()


async def stubborn(run: Text) -> str:
    """Ignore every cancellation for so many seconds."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + run.message
    while (left := ends - loop.time()) > 0:
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            continue
    return "too late"


async def steps(count: int = 20) -> None:
    """Let other tasks make so many steps."""
    for _ in range(count):
        await asyncio.sleep(0)


async def outcome_of(run: Text) -> Outcome:
    """Wait for the end of a run, whatever it is."""
    await asyncio.gather(run, return_exceptions=True)
    assert run.outcome is not None
    return run.outcome


def lane(scheduler: Calls, name: str = "main") -> tuple[int, int]:
    """How many work in a lane and how many wait for it."""
    view = next(view for view in scheduler.lanes() if view.name == name)
    return view.active, view.waiting


def states(scheduler: Calls) -> dict[str, RunState]:
    """Where each run is that is not done."""
    return {run.id: run.state for run in scheduler.runs()}


class Gate:
    """Work that waits until it is let through, run by run."""

    def __init__(self) -> None:
        self.entered: list[Any] = []
        self.left: list[Any] = []
        self._open: dict[str, asyncio.Event] = {}

    async def __call__(self, run: Text) -> Any:
        self.entered.append(run.message)
        opened = self._open[run.id] = asyncio.Event()
        try:
            await opened.wait()
        finally:
            self.left.append(run.message)
        return run.messages

    def open(self, run: Text) -> None:
        """Let a run end."""
        self._open[run.id].set()
