"""Failed incoming messages, and edits of waiting ones."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final

from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import InboundMessage
from goclaw_py.core.outcomes import Outcome
from goclaw_py.records import (
    ALL_DEAD_LETTERS,
    ALL_MESSAGES,
    DeadLetter,
    DeadLetterCounts,
    DeadLetterQuery,
    InboxKind,
    InboxRow,
    InboxState,
    IncomingState,
    MessageFilter,
    Notice,
)
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.delivery.drafts import close_abandoned
from goclaw_py.store.postgres.messages.message_json import amendment, inbound
from goclaw_py.store.postgres.part import PostgresPart, notify, page_columns
from goclaw_py.store.postgres.pool import Row
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("dead_letters")
_INBOX = queries("inbox")

_STATEMENTS: Final = {
    IncomingState.FAILED: _SQL["ended"],
    IncomingState.WAITING: _SQL["waiting"],
    IncomingState.RUNNING: _SQL["running"],
    IncomingState.DISMISSED: _SQL["dismissed"],
}


class PostgresDeadLetters(PostgresPart):
    """Implements the rest of ``InboxStore``."""

    async def amend(self, edit: InboxRow) -> bool:
        target = edit.message.target
        async with self._pool.transaction() as connection:
            locked = await connection.fetch(
                _SQL["lock_edited"], edit.id, target.channel, target.account, edit.message.edits
            )
            own = next((row for row in locked if row["id"] == edit.id), None)
            original = next((row for row in locked if row["id"] != edit.id), None)
            if own is None or original is None or not (_counts(own) and _waits(original)):
                return False
            await connection.fetch(_SQL["amend"], original["id"], amendment(edit.message))
            # It is brought in as it comes in.
            await connection.fetch(
                _INBOX["settle"], [edit.id], Outcome.COMPLETED, None, edit.received_at, None
            )
        return True

    async def last_version(
        self, channel: str, account: str, external_id: str, *, before: int
    ) -> InboundMessage | None:
        name = storable((channel, account, external_id))
        row = await self._pool.row(_SQL["last_version"], *name, before)
        return None if row is None else inbound(row["message"])

    async def is_known(self, channel: str, account: str, external_id: str) -> bool:
        found = await self._pool.row(_SQL["exists"], channel, account, external_id)
        return found is not None

    async def dead_letters(self, query: DeadLetterQuery = ALL_DEAD_LETTERS) -> list[DeadLetter]:
        page = page_columns(query.limit, query.before, query.only)
        found = await self._pool.fetch(_STATEMENTS[query.state], *page)
        return [rows.dead_letter(row) for row in found]

    async def dead_letter_counts(self, only: MessageFilter = ALL_MESSAGES) -> DeadLetterCounts:
        found = await self._pool.row(_SQL["counts"], *page_columns(0, None, only))
        assert found is not None
        return DeadLetterCounts(
            found["ended"], found["waiting"], found["dismissed"], found["asking"]
        )

    async def message_channels(self) -> frozenset[str]:
        return frozenset(row["channel"] for row in await self._pool.fetch(_SQL["channels"]))

    async def dead_letter(self, row_id: int) -> DeadLetter | None:
        row = await self._pool.row(_SQL["message"], row_id)
        return None if row is None else rows.dead_letter(row)

    async def letter_named(self, channel: str, account: str, external_id: str) -> DeadLetter | None:
        name = storable((channel, account, external_id))
        row = await self._pool.row(_SQL["message_with_external_id"], *name)
        return None if row is None else rows.dead_letter(row)

    async def letters_of(self, run: RunId) -> list[DeadLetter]:
        found = await self._pool.fetch(_SQL["messages_of_run"], run)
        return [rows.dead_letter(row) for row in found]

    async def retry_dead_letters(self, ids: Collection[int], *, now: datetime) -> int:  # noqa: ARG002  when is not kept
        """Retry messages before younger messages of their session."""
        async with self._pool.transaction() as connection:
            revived = await connection.fetch(_SQL["retry"], list(ids))
            if revived:
                await notify(connection, [Notice.INBOX])
        return len(revived)

    async def dismiss_dead_letters(self, ids: Collection[int], *, now: datetime) -> int:
        async with self._pool.transaction() as connection:
            # As in ``settle``, which ends messages that wait, too.
            await connection.fetch(_INBOX["lock_sessions_of"], list(ids))
            dismissed = await connection.fetch(_SQL["dismiss"], list(ids), now)
            if dismissed:
                await close_abandoned(connection, now=now)
        return len(dismissed)


def _counts(edit: Row) -> bool:
    """Return whether an edit waits, or was applied by an earlier call."""
    return bool(edit["state"] == InboxState.PENDING or edit["outcome"] == Outcome.COMPLETED)


def _waits(original: Row) -> bool:
    state = original["kind"], original["state"], original["run_id"]
    return state == (InboxKind.MESSAGE, InboxState.PENDING, None)
