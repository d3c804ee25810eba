"""Pages of lists."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Protocol, TypeVar

from goclaw_py.core.pagination import Cursor


class _Placed(Protocol):
    @property
    def cursor(self) -> Cursor: ...


P = TypeVar("P", bound=_Placed)


def newest(rows: Iterable[P], limit: int | None, before: Cursor | None) -> list[P]:
    """Return the first rows before a cursor, the newest first."""
    found = (row for row in rows if before is None or row.cursor < before)
    return sorted(found, key=attrgetter("cursor"), reverse=True)[:limit]
