"""Group messages without a mention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.messages import InboundMessage, external_id
from goclaw_py.core.outcomes import Outcome
from goclaw_py.records import Unmentioned, UnmentionedRow
from goclaw_py.store.text import storable
from goclaw_py.store.upkeep_rules import UNMENTIONED_KEPT
from tests.support.memory_store.tables import MemoryPart


class MemoryBackground(MemoryPart):
    """Implements ``BackgroundStore``."""

    async def note_unmentioned(self, batch: Sequence[Unmentioned], *, now: datetime) -> None:
        for row in storable(tuple(batch)):
            key = external_id(row.message)
            if row.message.edits is not None:
                self._edit(row.message)
            elif key not in self._db.unmentioned:
                self._db.last_unmentioned_id += 1
                self._db.unmentioned[key] = UnmentionedRow(
                    self._db.last_unmentioned_id, row.message, row.session, now, None
                )
                for surplus in self._of(row.session)[row.keep :]:
                    del self._db.unmentioned[external_id(surplus.message)]

    async def claim_unmentioned(
        self, session: SessionKey, run: RunId, *, until: datetime, now: datetime
    ) -> list[InboundMessage]:
        since = now - UNMENTIONED_KEPT
        free = [
            row
            for row in reversed(self._of(storable(session)))
            if row.message.sent_at <= until
            and row.received_at >= since
            and (row.run_id in (None, run) or self._was_interrupted(row.run_id))
        ]
        for row in free:
            self._db.unmentioned[external_id(row.message)] = replace(row, run_id=run)
        return [row.message for row in free]

    async def unmentioned(self, session: SessionKey) -> list[UnmentionedRow]:
        return self._of(storable(session))

    async def find_unmentioned(
        self, channel: str, account: str, external_id: str
    ) -> UnmentionedRow | None:
        return self._db.unmentioned.get(storable((channel, account, external_id)))

    def _of(self, session: SessionKey) -> list[UnmentionedRow]:
        rows = reversed(self._db.unmentioned.values())
        return [row for row in rows if row.session == session]

    def _edit(self, edit: InboundMessage) -> None:
        key = edit.target.channel, edit.target.account, edit.edits or ""
        known = self._db.unmentioned.get(key)
        if known is not None:
            self._db.unmentioned[key] = replace(known, message=known.message.amended_by(edit))

    def _was_interrupted(self, run: RunId | None) -> bool:
        """Return whether a run was interrupted by a crash or a shutdown."""
        known = None if run is None else self._db.runs.get(run)
        end = None if known is None else known.end
        return end is not None and end.outcome in (Outcome.INTERRUPTED, Outcome.LOST)
