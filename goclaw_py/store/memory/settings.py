"""Edits of settings at run time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from goclaw_py.ports.store import NewSettingEdit, Notice, SettingEdit
from goclaw_py.store.memory.tables import MemoryPart
from goclaw_py.store.text import storable


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
