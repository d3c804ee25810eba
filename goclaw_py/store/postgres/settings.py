"""Edits of settings at run time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from goclaw_py.records import NewSettingEdit, Notice, SettingEdit
from goclaw_py.store.postgres.pages import row_place
from goclaw_py.store.postgres.part import PostgresPart
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("settings")


class PostgresSettings(PostgresPart):
    """Implements ``SettingStore``."""

    async def setting_edits(self) -> list[SettingEdit]:
        return _edits(await self._pool.fetch(_SQL["edits"]))

    async def add_setting_edits(
        self, edits: Sequence[NewSettingEdit], *, source: str, expected: int, now: datetime
    ) -> bool:
        added = [storable(edit) for edit in edits]
        async with self._pool.transaction() as connection:
            await connection.fetch(_SQL["lock"])
            newest = await connection.row(_SQL["newest"])
            assert newest is not None
            if newest["id"] > expected:
                return False
            await connection.fetch(
                _SQL["add"],
                [edit.path for edit in added],
                [edit.value for edit in added],
                [edit.before for edit in added],
                [edit.after for edit in added],
                storable(source),
                now,
                Notice.SETTINGS,
            )
        return True

    async def setting_history(
        self, *, limit: int = 50, before: int | None = None
    ) -> list[SettingEdit]:
        return _edits(await self._pool.fetch(_SQL["history"], row_place(before), limit))


def _edits(rows: Iterable[Any]) -> list[SettingEdit]:
    return [
        SettingEdit(
            row["id"],
            row["path"],
            row["value"],
            row["before"],
            row["after"],
            row["source"],
            row["edited_at"],
        )
        for row in rows
    ]
