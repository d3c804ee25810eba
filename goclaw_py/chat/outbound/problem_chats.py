"""The chats to which messages could not be delivered, and those without an answer, for warnings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from typing import Final, Generic, Protocol, TypeVar

from goclaw_py.core.display_names import KnownNames, name_in_sentence
from goclaw_py.core.messages import Target
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import (
    DeadLetterQuery,
    InboxStore,
    NameStore,
    OutboxQuery,
    OutboxState,
    OutboxStore,
)

T = TypeVar("T")

MOST_READ: Final = 100
"""The number of failed messages that are read."""

_KEPT: Final = timedelta(seconds=30)


class ProblemStore(InboxStore, OutboxStore, NameStore, Protocol):
    """The store operations that this module needs."""


class _Newest(Generic[T]):
    """Reads the newest rows again when their number changes, else every 30 s."""

    def __init__(self, clock: Clock, read: Callable[[], Awaitable[tuple[T, ...]]]) -> None:
        self._clock = clock
        self._read = read
        self._number = 0
        self._read_at: datetime | None = None
        self._found: tuple[T, ...] = ()

    async def __call__(self, number: int) -> tuple[T, ...]:
        """Return what was found; ``number`` is that of all rows. Raises ``StoreUnavailable``."""
        now = self._clock.now()
        if number == 0:
            self._found = ()
        elif number != self._number or self._read_at is None or now >= self._read_at + _KEPT:
            self._found = await self._read()
            self._read_at = now
        self._number = number
        return self._found


class ProblemChats:
    """Names the chats of messages that failed."""

    def __init__(self, store: ProblemStore, clock: Clock) -> None:
        self._store = store
        self.refusals = _Newest(clock, self._refusals)
        """Chats that could not be reached, each with why."""
        self.unanswered = _Newest(clock, self._unanswered)
        """Chats whose messages got no answer."""

    async def _refusals(self) -> tuple[tuple[str, str], ...]:
        rows = await self._store.outbox(OutboxQuery(OutboxState.FAILED, limit=MOST_READ))
        names = await self._names(row.message.target for row in rows)
        errors = (row.error or "no reason is known" for row in rows)
        return tuple(zip(names, errors, strict=True))

    async def _unanswered(self) -> tuple[str, ...]:
        rows = await self._store.dead_letters(DeadLetterQuery(limit=MOST_READ))
        return tuple(dict.fromkeys(await self._names(one.row.message.target for one in rows)))

    async def _names(self, targets: Iterable[Target]) -> list[str]:
        found = list(targets)
        chats = {target.whole_chat for target in found}
        known = await self._store.names(chats) if chats else KnownNames()
        return [name_in_sentence(target, known) for target in found]
