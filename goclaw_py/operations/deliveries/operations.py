"""What operators do with outgoing messages, and with incoming ones that failed (SPEC IO-3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass

from goclaw_py.core.actors import Least
from goclaw_py.core.errors import NotFound
from goclaw_py.core.metrics import NO_METER, Delivery, MetricsRecorder
from goclaw_py.core.time.clock import Clock
from goclaw_py.operations.declare import operation
from goclaw_py.operations.deliveries import changes
from goclaw_py.records import (
    ALL_DEAD_LETTERS,
    ALL_MESSAGES,
    ALL_OUTGOING,
    DeadLetter,
    DeadLetterQuery,
    MessageFilter,
    OutboxQuery,
    OutboxRow,
    OutboxState,
    Store,
)


@dataclass(frozen=True, slots=True)
class MessageCounts:
    """The numbers of messages.

    Args:
        outgoing: By state.
        failed: Incoming messages that failed and were not dismissed.
        waiting: Incoming messages that have not ended.
        dismissed: Incoming messages that failed and were dismissed.
        asking: Those of the waiting incoming messages that wait for an approval.
    """

    outgoing: dict[OutboxState, int]
    failed: int
    waiting: int
    dismissed: int
    asking: int = 0

    def changeable(self, state: OutboxState) -> tuple[int, int]:
        """Return how many outgoing and incoming messages of a state can be retried or dropped.

        An incoming message that waits for an approval ends with its answer.
        """
        incoming = {
            OutboxState.FAILED: self.failed,
            OutboxState.WAITING: self.waiting - self.asking,
        }
        return self.outgoing.get(state, 0), incoming.get(state, 0)


class Deliveries:
    """Every method may raise ``StoreUnavailable``, and ``NoGateway`` from another process.

    Args:
        meter: Counts dropped messages in a gateway.
        cancel_requests_of: Cancels waiting requests of a gateway whose messages have these ids.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        meter: MetricsRecorder = NO_METER,
        cancel_requests_of: Callable[[Collection[int]], None] = lambda _ids: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._meter = meter
        self._cancel_requests_of = cancel_requests_of

    @operation("GET /api/deliveries", Least.VIEWER, former="/api/outbox")
    async def outbox(self, query: OutboxQuery = ALL_OUTGOING) -> list[OutboxRow]:
        """Return outgoing messages, the newest first."""
        return await self._store.outbox(query)

    @operation("GET /api/deliveries/counts", Least.VIEWER, former="/api/outbox/counts")
    async def counts(self, only: MessageFilter = ALL_MESSAGES) -> MessageCounts:
        """Return how many messages are in each state."""
        outgoing, incoming = await asyncio.gather(
            self._store.outbox_counts(only), self._store.dead_letter_counts(only)
        )
        return MessageCounts(outgoing, *incoming)

    @operation("GET /api/deliveries/channels", Least.VIEWER, key="channels")
    async def channels(self) -> list[str]:
        """Return the channels of stored incoming messages and of seen chats, by name."""
        return sorted(await self._store.message_channels())

    @operation("GET /api/deliveries/{row_id}", Least.VIEWER, former="/api/outbox/{row_id}")
    async def outbox_row(self, row_id: int) -> OutboxRow:
        """Return an outgoing message. Raises ``NotFound``."""
        row = await self._store.outbox_row(row_id)
        if row is None:
            raise NotFound(f"there is no delivery {row_id}", hint="; see: goclaw deliveries list")
        return row

    @operation(
        "POST /api/deliveries/retry",
        Least.OPERATOR,
        changes.RETRY_OUTBOX,
        key="retried",
        former="/api/outbox/retry",
    )
    async def retry_outbox(self, ids: Collection[int]) -> int:
        """Retry failed and dropped messages; return their number (SPEC IO-3)."""
        return await self._store.retry_outbox(ids, now=self._clock.now())

    @operation(
        "POST /api/deliveries/drop",
        Least.OPERATOR,
        changes.DROP_OUTBOX,
        key="dropped",
        former="/api/outbox/drop",
    )
    async def drop_outbox(self, ids: Collection[int]) -> int:
        """Drop failed and waiting messages; return their number."""
        dropped = await self._store.drop_outbox(ids, now=self._clock.now())
        for channel in dropped.elements():
            self._meter.delivered(channel, Delivery.DROPPED)
        return dropped.total()

    @operation("GET /api/deliveries/incoming", Least.VIEWER, former="/api/inbox")
    async def dead_letters(self, query: DeadLetterQuery = ALL_DEAD_LETTERS) -> list[DeadLetter]:
        """Return incoming messages that failed, wait or were dismissed; the newest first."""
        return await self._store.dead_letters(query)

    @operation("GET /api/deliveries/incoming/{row_id}", Least.VIEWER, former="/api/inbox/{row_id}")
    async def dead_letter(self, row_id: int) -> DeadLetter:
        """Return an incoming message in any state. Raises ``NotFound``."""
        found = await self._store.dead_letter(row_id)
        if found is None:
            hint = "; see: goclaw deliveries incoming list"
            raise NotFound(f"there is no incoming message {row_id}", hint=hint)
        return found

    @operation(
        "POST /api/deliveries/incoming/retry",
        Least.OPERATOR,
        changes.RETRY_INBOX,
        key="retried",
        former="/api/inbox/retry",
    )
    async def retry_dead_letters(self, ids: Collection[int]) -> int:
        """Retry messages that ended without an answer; return their number."""
        return await self._store.retry_dead_letters(ids, now=self._clock.now())

    @operation(
        "POST /api/deliveries/incoming/drop",
        Least.OPERATOR,
        changes.DISMISS,
        key="dropped",
        former="/api/inbox/drop",
    )
    async def dismiss_dead_letters(self, ids: Collection[int]) -> int:
        """Dismiss messages that ended without an answer, drop waiting ones; return their number.

        A message of a run in progress, or that waits for an approval, does not change (SPEC IO-3).
        """
        dropped = await self._store.dismiss_dead_letters(ids, now=self._clock.now())
        # A request may wait for hours, and would still be listed.
        self._cancel_requests_of(ids)
        return dropped
