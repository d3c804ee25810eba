"""Test environment of a check: the rig, a scripted intake and tracked tasks."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, ParamSpec, TypeVar

from goclaw_py.core.errors import ChannelError, StoreUnavailable
from goclaw_py.core.messages import Inbound, InboundMessage
from goclaw_py.testing.conformance.rig import Rig

HOLD_S = 0.2
"""How long a check waits for something wrong to happen."""
_LOOK_EVERY_S = 0.01

_Tasks = list[asyncio.Future[Any]]

_mine: contextvars.ContextVar[_Tasks] = contextvars.ContextVar("tasks of this call of a channel")

_T = TypeVar("_T")
_P = ParamSpec("_P")


class ContractViolation(AssertionError):
    """A channel violates its contract; the text says what was expected."""


def require(holds: object, what: str) -> None:
    """Raise ``ContractViolation`` if ``holds`` is false. ``what`` says what was expected."""
    if not holds:
        raise ContractViolation(what)


class IntakeBroke(RuntimeError):
    """An unexpected error of the runtime, as a channel may get it."""


class RecordingInbox:
    """An ``InboundHandler`` that records what it is offered and fails as a check configures."""

    def __init__(self) -> None:
        self.down = False
        """Whether the database is unavailable: ``accept`` raises ``StoreUnavailable``."""
        self.broken = False
        """Whether ``accept`` raises ``IntakeBroke``."""
        self.batches = 0
        self.offered: list[Inbound] = []
        self.accepted: list[Inbound] = []
        self._open = asyncio.Event()
        self._open.set()

    def block(self) -> None:
        """Block commits until ``release``."""
        self._open.clear()

    def release(self) -> None:
        """Unblock commits."""
        self._open.set()

    async def accept(self, batch: Sequence[Inbound]) -> None:
        self.batches += 1
        self.offered += batch
        await self._open.wait()
        if self.broken:
            raise IntakeBroke("a bug of the runtime")
        if self.down:
            raise StoreUnavailable("the database does not answer")
        self.accepted += batch

    def texts(self, chat: str | None = None) -> list[str]:
        """Return the accepted texts, of one chat or of all, each message once."""
        return list(unique(self.accepted, chat).values())

    def offered_texts(self) -> list[str]:
        """Return the offered texts, including repetitions."""
        return [message.text for message in messages(self.offered)]

    def message(self, text: str) -> InboundMessage:
        """Return the accepted message with a text."""
        return next(one for one in messages(self.accepted) if one.text == text)


def messages(batch: Sequence[Inbound]) -> Iterator[InboundMessage]:
    """Return the messages of people in a batch."""
    return (one for one in batch if isinstance(one, InboundMessage))


def unique(batch: Sequence[Inbound], chat: str | None = None) -> dict[str, str]:
    """Return texts by external id, in the order in which the ids first appeared."""
    found: dict[str, str] = {}
    for one in messages(batch):
        if chat is None or one.target.chat == chat:
            found.setdefault(one.external_id, one.text)
    return found


def _noting(tasks: _Tasks) -> contextvars.Context:
    """Return a context in which every new task is added to a list."""
    context = contextvars.copy_context()
    context.run(_mine.set, tasks)
    return context


def _require_done(of_what: str, tasks: _Tasks) -> None:
    left = [repr(task) for task in tasks if not task.done()]
    require(not left, f"{of_what} leaves no task behind, but there are {left}")


async def _awaited(work: Awaitable[_T]) -> _T:
    return await work


class Scene:
    """The rig of one check, its inbox and its tracked calls. Created by ``Check``."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.inbox = RecordingInbox()
        self._receiving: asyncio.Task[None] | None = None
        self._calls: _Tasks = []
        """Tasks that calls have started, except those of ``receive``."""
        self._receives: _Tasks = []

    # ------------------------------------------------------------------ calls of the channel

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Track every task that calls of the channel start meanwhile, nested tasks included."""
        loop = asyncio.get_running_loop()
        before = loop.get_task_factory()

        def make(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Future[Any]:
            if before is None:
                task: asyncio.Future[Any] = asyncio.Task(work, loop=loop, **options)
            else:
                task = before(loop, work, **options)
            if (tasks := _mine.get(None)) is not None:
                tasks.append(task)
            return task

        loop.set_task_factory(make)
        try:
            yield
        finally:
            loop.set_task_factory(before)

    def begin(self, work: Awaitable[_T]) -> asyncio.Task[_T]:
        """Start a call of the channel and track its tasks."""
        return self._begin(work, self._calls)

    async def call(self, work: Awaitable[_T]) -> _T:
        """Call the channel, track its tasks. Raise ``ContractViolation`` after ``patience_s``."""
        task = self.begin(work)
        try:
            await self.ended(task, "a call of the channel comes back in time")
            return task.result()
        finally:
            task.cancel()

    def call_sync(self, call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call a synchronous function of the channel and track its tasks."""
        return _noting(self._calls).run(call, *args, **kwargs)

    async def fails(self, work: Awaitable[object]) -> ChannelError:
        """Return the ``ChannelError`` of a call. Raise ``ContractViolation`` if there is none."""
        task = self.begin(work)
        await self.ended(task, "a call of the channel comes back in time")
        error = task.exception()
        require(error is not None, "the call raises a ChannelError, but it returned")
        if not isinstance(error, ChannelError):
            raise ContractViolation(f"only ChannelErrors leave a channel, not {error!r}") from error
        require(str(error), "an error says in words what happened")
        return error

    async def cancelled(self, task: asyncio.Task[Any]) -> None:
        """Cancel a call and wait for its end."""
        task.cancel()
        await self.ended(task, "a call that is cancelled ends in time")

    async def ended(self, task: asyncio.Task[Any], what: str) -> None:
        """Wait for the end of a call, whatever its result. Cancel it after ``patience_s``."""
        await asyncio.wait({task}, timeout=self.rig.patience_s)
        if not task.done():
            task.cancel()
            raise ContractViolation(what)

    @asynccontextmanager
    async def receiving(self) -> AsyncIterator[asyncio.Task[None]]:
        """Run ``receive`` in this context, then cancel it and require that no task is left."""
        work = self.rig.channel.receive(self.inbox)
        task = self._receiving = self._begin(work, self._receives)
        try:
            yield task
        finally:
            self._receiving = None
            task.cancel()
            await asyncio.wait({task}, timeout=self.rig.patience_s)
            if task.done() and not task.cancelled():
                task.exception()  # or asyncio logs that it was never retrieved
        require(task.done(), "receive ends when it is cancelled (CHAN-1)")
        require(task.cancelled(), "receive goes on until it is cancelled (CHAN-1)")
        _require_done("a receive that was cancelled", self._receives)

    def nothing_left(self, of_what: str) -> None:
        """Require that every task that the channel started has ended."""
        _require_done(of_what, [*self._receives, *self._calls])

    @staticmethod
    def _begin(work: Awaitable[_T], tasks: _Tasks) -> asyncio.Task[_T]:
        loop = asyncio.get_running_loop()
        return loop.create_task(_awaited(work), context=_noting(tasks))

    # ------------------------------------------------------------------ waiting

    async def until(self, reached: Callable[[], object], what: str) -> None:
        """Wait until ``reached`` returns true. ``what`` says what was expected."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self.rig.patience_s
        while not reached():
            receiving = self._receiving
            if receiving is not None and receiving.done() and not receiving.cancelled():
                error = receiving.exception()
                raise ContractViolation(
                    f"{what}, but receive ended by itself: {error!r}"
                ) from error
            require(loop.time() < end, f"{what}, within {self.rig.patience_s:g} s")
            await asyncio.sleep(_LOOK_EVERY_S)

    async def until_accepted(self, *texts: str) -> None:
        """Wait until these messages are committed."""
        what = f"what people say reaches the intake: {', '.join(texts)}"
        await self.until(lambda: set(texts) <= set(self.inbox.texts()), what)

    async def until_offered(self, *texts: str) -> None:
        """Wait until these messages were offered."""
        what = f"what people say is offered to the intake: {', '.join(texts)}"
        await self.until(lambda: set(texts) <= set(self.inbox.offered_texts()), what)

    async def until_confirmed(self) -> None:
        """Wait until the server holds no message for the channel."""
        rig = self.rig
        await self.until(lambda: rig.unconfirmed() == 0, "what was committed is confirmed")
