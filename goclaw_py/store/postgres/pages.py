"""Cursors as arguments of queries."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from goclaw_py.core.pagination import NEWEST, Cursor
from goclaw_py.store.text import storable

OLDEST: Final = Cursor(datetime(1, 1, 2, tzinfo=UTC), ())
"""A position after the last row of every list."""

_LAST_ROW: Final = 2**63 - 1


def place(cursor: Cursor | None, *, keys: int = 1) -> tuple[object, ...]:
    """Return an instant and ``keys`` texts to compare with; None is before the first row."""
    cursor = cursor or NEWEST
    return (cursor.at, *cursor.keys, *[""] * (keys - len(cursor.keys)))


def prefix_range(prefix: str) -> tuple[str, str]:
    """Return the first and the last text with a prefix."""
    prefix = storable(prefix)
    return prefix, prefix + chr(0x10FFFF)


def row_place(before: int | None) -> int:
    """Return the number of a row to compare with; None is before the first row."""
    return _LAST_ROW if before is None else before
