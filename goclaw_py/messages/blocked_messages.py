"""Rows that wait for an earlier row of their session, which is retried first."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from goclaw_py.model.ids import SessionKey
from goclaw_py.ports.store import InboxRow


class BlockedMessages:
    """In each session the first row may be tried again; the others wait until that is done.

    One before the first may come later: when it was given back meanwhile.
    """

    def __init__(self) -> None:
        self._rows: dict[SessionKey, dict[int, InboxRow]] = {}

    def __iter__(self) -> Iterator[int]:
        """All rows, the first ones included."""
        return (row for waiting in self._rows.values() for row in waiting)

    def of(self, session: SessionKey) -> Collection[InboxRow]:
        """Those of a session."""
        return self._rows.get(session, {}).values()

    def add(self, row: InboxRow) -> None:
        """It waits for the database, or for one that does."""
        self._rows.setdefault(row.session, {})[row.id] = row

    def must_wait(self, row: InboxRow) -> bool:
        """Whether a row before this one in its session waits for the database; then both do."""
        waiting = self._rows.get(row.session)
        if waiting is None or row.id <= min(waiting):
            return False
        waiting[row.id] = row
        return True

    def no_more(self, rows: Collection[int]) -> None:
        """These are done, or in somebody's hands."""
        for session, waiting in list(self._rows.items()):
            left = {row_id: row for row_id, row in waiting.items() if row_id not in rows}
            if left:
                self._rows[session] = left
            else:
                del self._rows[session]

    def clear(self) -> None:
        """They belong to others."""
        self._rows.clear()
