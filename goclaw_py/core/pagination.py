"""Cursors: where a page of a long list ends and the next one begins (SPEC OPS-2).

A cursor consists of the values that the list is sorted by, not of a count of rows: added and
deleted rows move nothing, and every page costs the same.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import UTC, datetime

MAX_CURSOR_CHARS = 8_192

FOUND = 4
"""How many rows a search for the beginning of an id returns: candidates, and one if there are more.

The queries repeat it.
"""


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """The position of a row in a list that is sorted by an instant, then by texts.

    A later position is greater. Lists show the greatest first; the rows ``before`` a cursor are
    smaller.
    """

    at: datetime
    keys: tuple[str, ...]

    def __str__(self) -> str:
        """Return its form in a URL: letters, digits, ``-`` and ``_``."""
        raw = json.dumps([self.at.astimezone(UTC).isoformat(), *self.keys], separators=(",", ":"))
        return urlsafe_b64encode(raw.encode()).rstrip(b"=").decode()

    @classmethod
    def parse(cls, text: str, *, keys: int = 1) -> Cursor:
        """Parse the result of ``str``. Raises ``ValueError`` for anything else."""
        try:
            raw = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
            at, *found = json.loads(raw)
            instant = datetime.fromisoformat(at).astimezone(UTC)
            cursor = cls(instant, tuple(found))
            # A list of another kind has other keys, and a text that says the same twice is none.
            is_whole = len(found) == keys and all(isinstance(key, str) for key in found)
            if is_whole and str(cursor) == text:
                return cursor
        except (ValueError, TypeError, OverflowError, RecursionError, AttributeError):
            pass
        raise ValueError("this is no place in this list; take it from the Link of a page of it")


NEWEST = Cursor(datetime(9999, 12, 31, tzinfo=UTC), ())
"""A position before the first row of every list."""
