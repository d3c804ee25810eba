"""One submission to the scheduler as a library, and how it may end."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypedDict, TypeVar, cast

from goclaw_py.core.errors import GoclawError
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.requests import QueuePolicy, Request

M = TypeVar("M")
"""What is submitted."""
R = TypeVar("R")
"""What the work returns."""


class NotCompleted(GoclawError):
    """The run has no result: it was stopped, dropped, rejected, timed out or given up."""

    def __init__(self, run_id: str, outcome: Outcome, reason: Reason | None) -> None:
        why = f" ({reason})" if reason else ""
        super().__init__(f"run {run_id} ended {outcome}{why}")
        self.run_id = run_id
        self.outcome = outcome
        self.reason = reason


class QueueDropped(NotCompleted):
    """It waited, and a newer message took its place (SPEC QUEUE-5)."""


class QueueFull(NotCompleted):
    """Too much was waiting in its session already (SPEC QUEUE-5)."""


class WouldDeadlock(GoclawError):
    """A run awaits another one that cannot start before it has ended itself."""


class Options(TypedDict, total=False):
    """What may be said about one submission; see ``core.requests.Request`` for the rules."""

    sender: str
    """Whose messages become one when they come quickly (``QueuePolicy.debounce_s``)."""
    policy: QueuePolicy
    """In place of the scheduler's."""
    agent: str
    """Whose ``max_concurrent`` counts."""
    parent: Run[Any, Any]
    """The run that asks for this one; a stop of it stops both."""
    awaited: bool
    """The parent works no further until this one has ended, so it lends it its slot."""
    deadline_s: float | None
    """Counts from now."""
    run_timeout_s: float | None
    """Counts from its start."""


class Waited(Protocol):
    """Who knows whether a run may wait for another one."""

    def check_wait(self, run: Request) -> None:
        """Raise ``WouldDeadlock`` if the current task is a run that this one waits for."""


@dataclass(slots=True, eq=False)
class Run(Request, Generic[M, R]):
    """One submission; await it for what the work returned.

    Awaiting raises what the work raised, or ``NotCompleted``; cancelling who awaits does not stop
    the run. ``state`` tells where it is: work that ignores its cancellation can see there that it
    no longer counts.
    """

    outcome: Outcome | None = field(default=None, init=False)
    """None until it has ended. One that joined another run shares the outcome of that one."""
    error: BaseException | None = field(default=None, init=False)
    """What the work raised."""

    # The rest is the scheduler's.
    message: M = field(init=False, repr=False)
    more: list[M] | None = field(default=None, init=False, repr=False)
    value: R | None = field(default=None, init=False, repr=False)
    task: asyncio.Task[None] | None = field(default=None, init=False, repr=False)
    entered: bool = field(default=False, init=False, repr=False)
    """Whether its task has made its first step."""
    into: Run[M, R] | None = field(default=None, init=False, repr=False)
    """What it became a part of."""
    waiters: list[asyncio.Future[None]] | None = field(default=None, init=False, repr=False)
    offered: list[Run[M, R]] | None = field(default=None, init=False, repr=False)
    keeper: Waited = field(init=False, repr=False)

    @property
    def messages(self) -> list[M]:
        """What it is to work on: its own message, then those that joined it, in order."""
        return [self.message, *(self.more or ())]

    def __await__(self) -> Generator[Any, None, R]:
        """Wait for the end. Raises ``WouldDeadlock`` inside a run that it would wait for."""
        run = self
        while run.outcome is None:
            if run.into is not None:
                run = run.into
                continue
            run.keeper.check_wait(run)
            waiter = asyncio.get_running_loop().create_future()
            if run.waiters is None:
                run.waiters = []
            run.waiters.append(waiter)
            yield from waiter
        if run.outcome is Outcome.COMPLETED:
            return cast("R", run.value)
        if run.outcome is Outcome.FAILED and run.error is not None:
            raise run.error
        kind = _ERRORS.get(run.reason, NotCompleted)
        raise kind(run.id, run.outcome, run.reason)

    def wake(self) -> None:
        """Let those who await it look again."""
        waiters, self.waiters = self.waiters, None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(None)


_ERRORS: dict[Reason | None, type[NotCompleted]] = {
    Reason.QUEUE_DROPPED: QueueDropped,
    Reason.QUEUE_FULL: QueueFull,
}
