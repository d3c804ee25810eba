"""Where pages begin, as arguments of queries."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from goclaw_py.model.pagination import NEWEST, Cursor

OLDEST: Final = Cursor(datetime(1, 1, 2, tzinfo=UTC), ())
"""Before which no row of a list comes."""

_LAST_ROW: Final = 2**63 - 1


def place(cursor: Cursor | None, *, keys: int = 1) -> tuple[object, ...]:
    """An instant and so many texts to compare with; behind None come all rows."""
    cursor = cursor or NEWEST
    return (cursor.at, *cursor.keys, *[""] * (keys - len(cursor.keys)))


def row_place(before: int | None) -> int:
    """The same for lists that are sorted by the numbers of their rows."""
    return _LAST_ROW if before is None else before
