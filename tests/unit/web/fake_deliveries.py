"""Messages, and a control that knows them: the real operations over a fake store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import cast

from goclaw_py.core.outcomes import Outcome
from goclaw_py.operations.deliveries.operations import Deliveries
from goclaw_py.records import (
    DeadLetter,
    DeadLetterCounts,
    DeadLetterQuery,
    IncomingState,
    MessageFilter,
    OutboxQuery,
    OutboxRow,
    OutboxState,
    Store,
)
from tests.unit.web.fake_names import ANSWERED, BEGUN, DROPPED, LOST, NEXT, FakeNames, FixedClock


def _is_waiting(letter: DeadLetter) -> bool:
    return letter.row.outcome is None and letter.row.run_id is None


@dataclass
class FakeDeliveryStore:
    """The messages of ``FakeControl``. ``called`` notes what is asked of it.

    So many of the next rows as ``overtaken`` have changed before they could be.
    """

    called: Callable[..., None]
    rows: list[OutboxRow] = field(default_factory=list)
    mail: list[DeadLetter] = field(default_factory=lambda: [LOST, DROPPED, NEXT, BEGUN, ANSWERED])
    dismissed: list[DeadLetter] = field(default_factory=list)
    channels: frozenset[str] = frozenset({"telegram"})
    overtaken: int = 0

    async def outbox(self, query: OutboxQuery) -> list[OutboxRow]:
        self.called("outbox", query)
        found = [row for row in self.rows if query.state in (None, row.state)]
        found = [row for row in found if query.run in (None, row.message.run_id)]
        return [row for row in found if query.before is None or row.id < query.before][
            : query.limit
        ]

    async def outbox_counts(self, only: MessageFilter) -> dict[OutboxState, int]:
        self.called("outbox_counts", only)
        return dict(Counter(row.state for row in self.rows))

    async def outbox_row(self, row_id: int) -> OutboxRow | None:
        self.called("outbox_row", row_id)
        return next((row for row in self.rows if row.id == row_id), None)

    async def retry_outbox(self, ids: Collection[int], *, now: datetime) -> int:
        del now
        self.called("retry_outbox", tuple(ids))
        return self._change(ids, OutboxState.WAITING).total()

    async def drop_outbox(self, ids: Collection[int], *, now: datetime) -> Counter[str]:
        del now
        self.called("drop_outbox", tuple(ids))
        return self._change(ids, OutboxState.DROPPED)

    def _change(self, ids: Collection[int], state: OutboxState) -> Counter[str]:
        found = [row.message.target.channel for row in self.rows if row.id in ids]
        self.rows = [replace(row, state=state) if row.id in ids else row for row in self.rows]
        return Counter(found[self.overtaken :])

    async def dead_letters(self, query: DeadLetterQuery) -> list[DeadLetter]:
        self.called("dead_letters", query)
        mail = [one for one in self.mail if query.before is None or one.row.id < query.before]
        ended = [one for one in mail if one.row.outcome not in (None, Outcome.COMPLETED)]
        found = {
            IncomingState.FAILED: ended,
            IncomingState.WAITING: [one for one in mail if _is_waiting(one)],
            IncomingState.RUNNING: [
                one for one in mail if one.row.outcome is None and one.row.run_id
            ],
            IncomingState.DISMISSED: self.dismissed,
        }[query.state]
        return found[: query.limit]

    async def dead_letter_counts(self, only: MessageFilter) -> DeadLetterCounts:
        self.called("dead_letter_counts", only)
        failed = sum(one.row.outcome is not None for one in self.mail)
        waiting = [one for one in self.mail if _is_waiting(one)]
        asking = sum(one.row.asking_run is not None for one in waiting)
        return DeadLetterCounts(failed, len(waiting), len(self.dismissed), asking)

    async def message_channels(self) -> frozenset[str]:
        return self.channels

    async def dead_letter(self, row_id: int) -> DeadLetter | None:
        self.called("dead_letter", row_id)
        return next((one for one in self.mail if one.row.id == row_id), None)

    async def retry_dead_letters(self, ids: Collection[int], *, now: datetime) -> int:
        del now
        self.called("retry_dead_letters", tuple(ids))
        return self._remove(ids)

    async def dismiss_dead_letters(self, ids: Collection[int], *, now: datetime) -> int:
        del now
        self.called("dismiss_dead_letters", tuple(ids))
        self.dismissed += [one for one in self.mail if one.row.id in ids]
        return self._remove(ids)

    def _remove(self, ids: Collection[int]) -> int:
        before = len(self.mail)
        self.mail = [one for one in self.mail if one.row.id not in ids]
        return before - len(self.mail)


class FakeDeliveries(FakeNames):
    """The part of ``FakeControl`` that is about messages."""

    def __init__(self) -> None:
        super().__init__()
        self.messages = FakeDeliveryStore(self._called)
        self.deliveries = Deliveries(cast("Store", self.messages), FixedClock())
