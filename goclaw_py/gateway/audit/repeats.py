"""Actions without effect that repeat: one row a minute, with their number (SPEC SEC-9)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from goclaw_py.records.audit import AuditEntry

APART: Final = timedelta(minutes=1)
"""The time between two rows of equal entries."""

MOST_KINDS: Final = 1_000
"""How many kinds of entries are remembered, so that many actors do not fill the memory."""


@dataclass(slots=True)
class _Repeats:
    """Equal entries since ``since``, when one was stored: their number, and the last one."""

    since: datetime
    last: AuditEntry
    number: int = 0

    def rest(self) -> list[AuditEntry]:
        """Return the row for those that are not stored."""
        return [_repeated(self.last, self.number - 1)] if self.number else []


class RepeatedEntries:
    """Decides which entries are stored of actions without effect: the first, then one a minute.

    Equal ones have the same actor, action and reason. Each row has in ``repeated`` how many before
    it were not stored, so none is missing in the sum.
    """

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str, str, str], _Repeats] = {}
        """In the order of ``since``."""

    def add(self, entry: AuditEntry, reason: str) -> list[AuditEntry]:
        """Return what is stored now: the entry unless it repeats, and what is forgotten for it."""
        kind = entry.kind, entry.actor, entry.action, reason
        found = self._kinds.get(kind)
        if found is not None and abs(entry.at - found.since) < APART:
            found.last, found.number = entry, found.number + 1
            return []
        self._kinds.pop(kind, None)
        self._kinds[kind] = _Repeats(entry.at, entry)
        rows = [_repeated(entry, found.number if found else 0)]
        if len(self._kinds) > MOST_KINDS:
            rows += self._kinds.pop(next(iter(self._kinds))).rest()
        return rows

    def due(self, now: datetime) -> list[AuditEntry]:
        """Return what is stored now of entries that were repeated in the minute before."""
        rows: list[AuditEntry] = []
        for kind, found in list(self._kinds.items()):
            if abs(now - found.since) >= APART:
                del self._kinds[kind]
                if found.number:
                    rows += found.rest()
                    self._kinds[kind] = _Repeats(now, found.last)
        return rows


def _repeated(entry: AuditEntry, number: int) -> AuditEntry:
    return replace(entry, after={**(entry.after or {}), "repeated": number}) if number else entry
