"""Secrets that were found valid, so that not every request asks the database (SPEC SEC-6)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Generic, Protocol, TypeVar

from goclaw_py.core.errors import StoreUnavailable

CHECK_S: Final = 5.0
"""Seconds for which a secret that was found valid is not looked up again."""

NOTE_S: Final = 60.0
"""Seconds between two notes that it is used."""

_MOST: Final = 1_000


class Expiring(Protocol):
    """What a secret stands for: a sign-in or a token."""

    @property
    def expires_at(self) -> datetime | None:
        """Return its end; None: it has none."""

    @property
    def last_used_at(self) -> datetime | None:
        """Return the last use that was stored."""


T = TypeVar("T", bound=Expiring)


@dataclass(slots=True)
class _Found(Generic[T]):
    """What was found, and when."""

    value: T
    at_s: float


class CheckedSecrets(Generic[T]):
    """Looks secrets up by their hashes, a valid one at most once in ``CHECK_S``.

    Args:
        look_up: Returns what a hash stands for at an instant; None if it is not valid.
        note_used: Stores that it is used.
        now_s: Returns the Unix time in seconds.
    """

    def __init__(
        self,
        find: Callable[[str, datetime], Awaitable[T | None]],
        note_used: Callable[[T, datetime], Awaitable[None]],
        now_s: Callable[[], float],
    ) -> None:
        self._find = find
        self._note_used = note_used
        self._now_s = now_s
        self._found: dict[str, _Found[T]] = {}

    def has(self, hashed: str) -> bool:
        """Return whether a secret was valid lately."""
        return hashed in self._found

    async def find(self, hashed: str) -> T | None:
        """Return what a secret stands for; None if it is not valid, or not any more.

        While the database is away, what was valid before stays so until its end: nobody can end it
        then, and the page of the health is wanted. Raises ``StoreUnavailable`` for others.
        """
        now_s = self._now_s()
        now = datetime.fromtimestamp(now_s, UTC)
        before = self._found.get(hashed)
        if before is not None and 0 <= now_s - before.at_s < CHECK_S:
            return before.value if _is_valid(before.value, now) else None
        try:
            found = await self._find(hashed, now)
            if found is not None and _is_unnoted(found, now):
                await self._note_used(found, now)
        except StoreUnavailable:
            if before is None or not _is_valid(before.value, now):
                raise
            found = before.value
        self._found.pop(hashed, None)
        if found is not None:
            if len(self._found) >= _MOST:
                del self._found[next(iter(self._found))]
            self._found[hashed] = _Found(found, now_s)
        return found

    def forget(self, hashed: str | None = None) -> None:
        """Forget one, or all: they were ended here."""
        if hashed is None:
            self._found.clear()
        else:
            self._found.pop(hashed, None)

    def recheck(self) -> None:
        """Look all up at their next use: some may have been ended elsewhere."""
        for found in self._found.values():
            found.at_s = -CHECK_S


def _is_valid(value: Expiring, now: datetime) -> bool:
    return value.expires_at is None or value.expires_at > now


def _is_unnoted(value: Expiring, now: datetime) -> bool:
    last = value.last_used_at
    return last is None or (now - last).total_seconds() >= NOTE_S
