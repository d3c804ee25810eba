"""Group commits: calls that come during a transaction share the next one.

A commit waits for the disk, so a transaction with fifty messages costs about as much as one with a
single message. The first call does not wait for others; only calls that come while the database is
busy are gathered. So the cost per call falls with the load.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

from goclaw_py.core.errors import StoreError, StoreUnavailable

Item = TypeVar("Item")
Result = TypeVar("Result")

_Call: TypeAlias = tuple[Item, asyncio.Future[Result]]

_COMMON: Final = (None,)
_CUT_OFF: Final = StoreUnavailable("the store was cut off")

MOST: Final = 64
"""The number of calls that share a transaction: enough to be cheap, few enough to be quick."""

_WORTH: Final = 32
"""The number of waiting calls for which another transaction begins while one is in progress. Each
transaction has a fixed cost, so fewer calls wait for the end of that one."""
_LATE_S: Final = 0.05
"""The longest such wait in seconds: the transaction in progress may itself wait for a lock."""


class Group(Generic[Item, Result]):
    """Gathers calls, and commits them.

    Calls with a common key take effect in order: they are never in two transactions at a time, and
    do not overtake each other. A call that is cancelled before its transaction starts is left out;
    later, it takes effect although its caller is gone. Other calls are not affected.

    Args:
        commit: Commits items in one transaction; returns for each, in order, its result or its
            error. If it raises ``StoreUnavailable``, every call does. After another error the items
            are committed one by one, so that a bad item fails only its own call; the commit must be
            repeatable.
        keys: The keys of an item. By default all items have a common key.
        kind: Only items of one kind share a transaction; by default all do.
        flights: The number of concurrent transactions.
        most: The number of items that share a transaction.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Item]], Awaitable[Sequence[Result | StoreError]]],
        *,
        keys: Callable[[Item], Collection[Hashable]] | None = None,
        kind: Callable[[Item], Hashable] | None = None,
        flights: int = 1,
        most: int = MOST,
    ) -> None:
        self._commit = commit
        self._keys = keys or _one_for_all
        self._kind = kind or _none
        self._flights = flights
        self._most = most
        self._waiting: deque[_Call[Item, Result]] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._busy: set[Hashable] = set()
        """The keys of transactions in progress."""
        self._closed = False

    async def __call__(self, item: Item) -> Result:
        """Commit an item. Raises its error; ``StoreUnavailable`` after ``close``."""
        if self._closed:
            raise StoreUnavailable("the store is closed")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Result] = loop.create_future()
        self._waiting.append((item, answer))
        if len(self._workers) < self._flights:
            if self._is_worth_it(beside=len(self._workers)):
                self._begin()
            elif self._timer is None:
                self._timer = loop.call_later(_LATE_S, self._begin_late)
        return await answer

    async def close(self, wait_s: float) -> None:
        """Refuse new calls, and wait up to ``wait_s`` seconds for those in progress."""
        self._closed = True
        if self._workers:
            await asyncio.wait(self._workers, timeout=wait_s)

    def _is_worth_it(self, *, beside: int) -> bool:
        """Return whether to begin a transaction beside this number of others."""
        return beside == 0 or len(self._waiting) >= _WORTH

    def _begin(self) -> None:
        # In a separate task, because a caller may be cancelled while it commits for others too.
        self._workers.add(asyncio.create_task(self._work(), name="store-group"))

    def _begin_late(self) -> None:
        self._timer = None
        if self._waiting and len(self._workers) < self._flights:
            self._begin()

    async def _work(self) -> None:
        try:
            calls = self._gather()
            while calls:
                await self._fly(calls)
                others = len(self._workers) - 1
                calls = self._gather() if self._is_worth_it(beside=others) else []
        except asyncio.CancelledError:
            # The loop is ending: no other task commits the waiting calls.
            _refuse(self._waiting, _CUT_OFF)
            raise
        finally:
            # In this step, not in a callback: the next caller must see that no task is committing.
            self._workers -= {asyncio.current_task()}

    async def _fly(self, calls: Sequence[_Call[Item, Result]]) -> None:
        keys = {key for item, _ in calls for key in self._keys(item)}
        self._busy |= keys
        try:
            await self._settle(calls)
        finally:
            self._busy -= keys
            _refuse(calls, _CUT_OFF)

    def _gather(self) -> list[_Call[Item, Result]]:
        """Remove and return the oldest calls that can share a transaction now."""
        calls: list[_Call[Item, Result]] = []
        left: list[_Call[Item, Result]] = []
        kind: Hashable = None
        passed = set(self._busy)
        while self._waiting and len(calls) < self._most:
            call = self._waiting.popleft()
            item, answer = call
            if answer.done():
                continue
            keys = self._keys(item)
            if passed.isdisjoint(keys) and (not calls or self._kind(item) == kind):
                kind = self._kind(item)
                calls.append(call)
            else:
                # A later call with one of these keys must not overtake it.
                passed.update(keys)
                left.append(call)
        self._waiting.extendleft(reversed(left))
        return calls

    async def _settle(self, calls: Sequence[_Call[Item, Result]]) -> None:
        """Commit calls together, or one by one if one of them fails."""
        try:
            results = await self._commit([item for item, _ in calls])
        except StoreUnavailable as error:
            _refuse(calls, error)
        except Exception as error:
            if len(calls) == 1:
                _refuse(calls, error)
            else:
                await self._settle_each(calls)
        else:
            for (_, answer), result in zip(calls, results, strict=True):
                _resolve(answer, result)

    async def _settle_each(self, calls: Sequence[_Call[Item, Result]]) -> None:
        for place, (item, answer) in enumerate(calls):
            if answer.done():
                continue
            try:
                (result,) = await self._commit([item])
            except StoreUnavailable as error:
                # Not every one after the other: each may wait for seconds.
                _refuse(calls[place:], error)
                return
            except Exception as error:
                _refuse([(item, answer)], error)
            else:
                _resolve(answer, result)


def _one_for_all(_item: object) -> Collection[Hashable]:
    return _COMMON


def _none(_item: object) -> None:
    return None


def _resolve(answer: asyncio.Future[Result], result: Result | StoreError) -> None:
    # Already done means that the caller was cancelled.
    if answer.done():
        return
    if isinstance(result, StoreError):
        answer.set_exception(result)
    else:
        answer.set_result(result)


def _refuse(calls: Iterable[_Call[Item, Result]], error: Exception) -> None:
    """Fail all calls; each gets its own error object, because raising changes an error."""
    for _, answer in calls:
        if not answer.done():
            own = StoreUnavailable(str(error)) if isinstance(error, StoreUnavailable) else error
            if own is not error:
                own.__cause__ = error
            answer.set_exception(own)
