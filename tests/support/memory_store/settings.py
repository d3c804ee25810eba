"""Edits of settings at run time, and the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import orjson

from goclaw_py.core.storable import storable_json
from goclaw_py.records import NewSettingEdit, Notice, SettingEdit
from goclaw_py.records.audit import ALL_ENTRIES, AuditEntry, AuditFilter, Facts
from goclaw_py.store.text import folded, storable
from tests.support.memory_store.tables import MemoryPart


class MemorySettings(MemoryPart):
    """Implements ``SettingStore``."""

    async def setting_edits(self) -> list[SettingEdit]:
        newest = {edit.path: edit for edit in self._db.setting_edits}
        return sorted(newest.values(), key=lambda edit: edit.id)

    async def add_setting_edits(
        self, edits: Sequence[NewSettingEdit], *, source: str, expected: int, now: datetime
    ) -> bool:
        table = self._db.setting_edits
        if max((edit.id for edit in table), default=0) > expected:
            return False
        for one in map(storable, edits):
            self._db.last_setting_edit += 1
            table.append(
                SettingEdit(
                    self._db.last_setting_edit,
                    one.path,
                    one.value,
                    one.before,
                    one.after,
                    storable(source),
                    now,
                )
            )
        if edits:
            self._db.notify(Notice.SETTINGS)
        return True

    async def setting_history(
        self, *, limit: int = 50, before: int | None = None
    ) -> list[SettingEdit]:
        newest_first = reversed(self._db.setting_edits)
        return [edit for edit in newest_first if before is None or edit.id < before][:limit]


class MemoryAudit(MemoryPart):
    """Implements ``AuditStore``."""

    async def add_audit_entry(self, entry: AuditEntry) -> None:
        self._db.last_audit_entry += 1
        stored = replace(
            storable(entry),
            id=self._db.last_audit_entry,
            before=_stored(entry.before),
            after=_stored(entry.after),
        )
        self._db.audit.append(stored)

    async def audit_entries(
        self, *, limit: int = 50, only: AuditFilter = ALL_ENTRIES, before: int | None = None
    ) -> list[AuditEntry]:
        found = sorted(self._db.audit, key=_place, reverse=True)
        if before is not None:
            place = next((_place(one) for one in found if one.id == before), None)
            found = [one for one in found if place is not None and _place(one) < place]
        return [one for one in found if _matches(one, only)][:limit]


def _place(one: AuditEntry) -> tuple[datetime, int]:
    return one.at, one.id


def _stored(facts: Facts | None) -> Facts | None:
    """Return facts as they come back from JSON."""
    found: Facts | None = None if facts is None else orjson.loads(storable_json(storable(facts)))
    return found


def _matches(one: AuditEntry, only: AuditFilter) -> bool:
    return (
        (_has(one.actor, only.who) or _has(one.via, only.who))
        and (only.action is None or f"{one.action}.".startswith(f"{only.action}."))
        and _has(one.subject, only.subject)
        and (only.since is None or one.at >= only.since)
        and (only.until is None or one.at < only.until)
    )


def _has(text: str, part: str | None) -> bool:
    return part is None or folded(storable(part)) in folded(text)
