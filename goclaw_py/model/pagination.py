"""Where a page of a long list ends, so that the next one can begin behind it (SPEC OPS-2).

A place is told by what the list is sorted by, not by how many rows come before it: rows that are
added or deleted meanwhile shift nothing, and a page deep in the list costs as much as the first.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import UTC, datetime

MAX_CURSOR_CHARS = 8_192


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """The place of a row in a list that is sorted by an instant, and then by texts.

    A later place is greater. Lists show the greatest first, and ``before`` a cursor come those that
    are smaller.
    """

    at: datetime
    keys: tuple[str, ...]

    def __str__(self) -> str:
        """As it stands in an address: letters, digits, ``-`` and ``_``."""
        raw = json.dumps([self.at.astimezone(UTC).isoformat(), *self.keys], separators=(",", ":"))
        return urlsafe_b64encode(raw.encode()).rstrip(b"=").decode()

    @classmethod
    def parse(cls, text: str, *, keys: int = 1) -> Cursor:
        """Read what ``str`` has written. Raises ``ValueError`` for anything else."""
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
"""Behind which every row of a list comes."""
