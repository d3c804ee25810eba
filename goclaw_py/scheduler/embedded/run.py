"""A submission to the scheduler as a library, and its possible ends."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypedDict, TypeVar, cast

from goclaw_py.core.errors import GoclawError
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler.embedded.failures import RunFailure
from goclaw_py.scheduler.models import QueuePolicy, Request

M = TypeVar("M")
"""The type of messages."""
R = TypeVar("R")
"""The type of results."""


class NotCompleted(GoclawError):
    """The run has no result: it was stopped, dropped, rejected, timed out or abandoned.

    ``reason`` is None if the work raised ``CancelledError`` without a stop.
    """

    def __init__(self, run_id: str, outcome: Outcome, reason: Reason | None) -> None:
        why = f" ({reason})" if reason else ""
        advice = _ADVICE.get(reason)
        super().__init__(f"run {run_id} ended {outcome}{why}" + (f": {advice}" if advice else ""))
        self.run_id = run_id
        self.outcome = outcome
        self.reason = reason

    def __reduce__(self) -> tuple[type[NotCompleted], tuple[str, Outcome, Reason | None]]:
        return type(self), (self.run_id, self.outcome, self.reason)


class QueueDropped(NotCompleted):
    """It was waiting, and a newer message replaced it (SPEC QUEUE-5)."""


class QueueFull(NotCompleted):
    """The queue of its session was full (SPEC QUEUE-5)."""


class WouldDeadlock(GoclawError):
    """A run awaits a result that cannot exist before the run itself has ended."""


_ADVICE: dict[Reason | None, str] = {
    Reason.QUEUE_FULL: "the session's QueuePolicy.capacity is used up; submit it later",
    Reason.DRAINING: "the scheduler is closed; make a new one",
    Reason.LANE_CLOSED: "its lane is closed; submit it to another one",
    Reason.PARENT_ENDED: "its parent works no more; submit children while it does",
    Reason.TOO_DEEP: "runs may nest no deeper; do this work in the run itself",
    Reason.TOO_MANY_CHILDREN: "its parent has too many at once; wait for some of them first",
    Reason.WAITS_FOR_ITSELF: "those who wait for it hold its session or agent; use another one",
}


class SubmitOptions(TypedDict, total=False):
    """Options of one submission; see ``scheduler.models.Request`` for the rules."""

    sender: str
    """The sender whose quick messages are merged (``QueuePolicy.debounce_s``)."""
    policy: QueuePolicy
    """The queue policy, in place of the scheduler's."""
    agent: str
    """The agent whose ``max_concurrent`` counts."""
    parent: Run[Any, Any]
    """The run that creates this one; stopping it stops both."""
    awaited: bool
    """The parent waits until this one has ended, and lends it its slot."""
    deadline_s: float | None
    """Seconds from now."""
    run_timeout_s: float | None
    """Seconds from its start."""
    context: Context
    """The context to copy; ``contextvars.copy_context()`` is the caller's."""


@dataclass(slots=True)
class More(Generic[M, R]):
    """Rarely used state of a run: messages merged into it, and runs that it may merge."""

    messages: list[M] = field(default_factory=list)
    offered: list[Run[M, R]] = field(default_factory=list)


class ChildWait(Protocol):
    """The wait of a run for another run."""

    def end(self) -> None:
        """End the wait."""


class RunHolder(Protocol):
    """The scheduler that a run belongs to."""

    def begin_wait(self, run: Run[Any, Any], waiter: asyncio.Future[None]) -> ChildWait | None:
        """Register that the current task will wait for a run; None if it belongs to no run.

        Raises ``WouldDeadlock`` if it would wait forever, and ``RuntimeError`` in another loop.
        """


@dataclass(slots=True, eq=False, repr=False)
class Run(Request, Generic[M, R]):
    """A submission; await it for its result.

    Awaiting raises the exception of the work, or ``NotCompleted``; cancelling the caller does not
    stop the run. ``state`` is its present state: work that ignores its cancellation can see there
    that it no longer counts. ``reason`` tells why it ended before its work completed.
    """

    into: Run[M, R] | None = field(default=None, init=False)
    """The run that it became part of (modes ``collect`` and ``steer``, debounce)."""

    # The rest is the scheduler's. What has no default is set later, which saves time.
    message: M = field(init=False)
    keeper: RunHolder = field(init=False)
    context: Context | None = field(default=None, init=False)
    """The context that it copies, if not that of the scheduler."""
    task: asyncio.Task[None] | None = field(default=None, init=False)
    """Its task while it is running."""
    ended: Outcome | None = field(default=None, init=False)
    result: R | RunFailure = field(init=False)
    """Its result if the outcome is ``completed``, or its exception if it is ``failed``."""
    waiters: list[asyncio.Future[None]] | None = field(default=None, init=False)
    more: More[M, R] | None = field(default=None, init=False)

    @property
    def messages(self) -> list[M]:
        """Return its message, then those that joined it, in order."""
        return [self.message, *(self.more.messages if self.more else ())]

    @property
    def outcome(self) -> Outcome | None:
        """Return its outcome, that of the run that it joined; None until it has ended."""
        return self.whole().ended

    @property
    def error(self) -> BaseException | None:
        """Return the exception of the work, if the outcome is ``failed``."""
        run = self.whole()
        return cast("RunFailure", run.result).error if run.ended is Outcome.FAILED else None

    def __await__(self) -> Generator[Any, None, R]:
        """Wait for the end. Raises ``WouldDeadlock`` in a run that this one waits for."""
        run = self.whole()
        while run.ended is None:
            yield from run.wait()
            run = run.whole()
        if run.ended is Outcome.COMPLETED:
            return cast("R", run.result)
        if run.ended is Outcome.FAILED:
            raise cast("RunFailure", run.result).again()
        kind = _ERRORS.get(run.reason, NotCompleted)
        raise kind(run.id, run.ended, run.reason)

    def __repr__(self) -> str:
        where = f"joined {self.into.id}" if self.into is not None else self.ended or self.state
        return f"<Run {self.id} of {self.session!r}: {where}>"

    def whole(self) -> Run[M, R]:
        """Return the run that it is finally part of, or itself."""
        run = self
        while run.into is not None:
            run = run.into
        return run

    def wait(self) -> Generator[Any, None, None]:
        """Wait until it has ended or has joined another one."""
        waiter = asyncio.get_running_loop().create_future()
        inner = self.keeper.begin_wait(self, waiter)
        if self.waiters is None:
            self.waiters = []
        self.waiters.append(waiter)
        try:
            yield from waiter
        finally:
            if inner is not None:
                inner.end()
            if self.waiters and waiter in self.waiters:
                self.waiters.remove(waiter)  # not woken: who awaits goes away

    def wake(self) -> None:
        """Let tasks that await it check its state."""
        waiters, self.waiters = self.waiters, None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(None)


_ERRORS: dict[Reason | None, type[NotCompleted]] = {
    Reason.QUEUE_DROPPED: QueueDropped,
    Reason.QUEUE_FULL: QueueFull,
}
