"""The chats to which messages could not be delivered, by name, for warnings."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, Protocol

from goclaw_py.core.display_names import KnownNames, address, display_name
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import NameStore, OutboxQuery, OutboxState, OutboxStore

MOST_READ: Final = 100
"""The number of undelivered messages that are read."""

_KEPT: Final = timedelta(seconds=30)


class RefusalState(OutboxStore, NameStore, Protocol):
    """The store operations that this module needs."""


class RefusedChats:
    """Reads the newest undelivered messages again when their number changes, else every 30 s."""

    def __init__(self, store: RefusalState, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._number = 0
        self._read_at: datetime | None = None
        self._refusals: tuple[tuple[str, str], ...] = ()

    async def refusals(self, number: int) -> tuple[tuple[str, str], ...]:
        """Return names of chats, each with why a message failed.

        ``number`` is that of all undelivered messages. Raises ``StoreUnavailable``.
        """
        now = self._clock.now()
        if number == 0:
            self._refusals = ()
        elif number != self._number or self._read_at is None or now >= self._read_at + _KEPT:
            rows = await self._store.outbox(OutboxQuery(OutboxState.FAILED, limit=MOST_READ))
            chats = {row.message.target.whole_chat for row in rows}
            known = await self._store.names(chats) if chats else KnownNames()
            self._refusals = tuple(
                (
                    display_name(address(row.message.target), known),
                    row.error or "no reason is known",
                )
                for row in rows
            )
            self._read_at = now
        self._number = number
        return self._refusals
