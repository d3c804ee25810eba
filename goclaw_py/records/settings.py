"""Edits of settings at run time (SPEC OPS-11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SettingEdit:
    """A stored edit of a setting.

    Args:
        value: The new value, written as in an environment variable; None: the value of the
            settings file (or the default) again.
        before: The value that was in effect, for people; None: it was not set.
        after: The value in effect from then on, for people; None: it is not set.
        source: From where the edit came, such as ``dashboard (127.0.0.1)``.
    """

    id: int
    path: str
    value: str | None
    before: str | None
    after: str | None
    source: str
    at: datetime


@dataclass(frozen=True, slots=True)
class NewSettingEdit:
    """A change of a setting.

    Args:
        path: The setting, as in ``goclaw config show``.
        value: The new value, written as in an environment variable; None: the value of the
            settings file (or the default) again.
        before: The value that was in effect, for people; None: it was not set.
        after: The value in effect from now on, for people; None: it is not set.
    """

    path: str
    value: str | None
    before: str | None
    after: str | None


class SettingStore(Protocol):
    """Edits of settings, which only grow: the newest edit of a setting counts."""

    async def setting_edits(self) -> list[SettingEdit]:
        """Return the newest edit of each setting, the oldest first."""

    async def add_setting_edits(
        self, edits: Sequence[NewSettingEdit], *, source: str, expected: int, now: datetime
    ) -> bool:
        """Add edits, all or none, and notify all nodes.

        ``expected`` is the id of the newest edit that the caller has seen, 0 for none. Returns
        False, and adds nothing, if there is a newer one.
        """

    async def setting_history(
        self, *, limit: int = 50, before: int | None = None
    ) -> list[SettingEdit]:
        """Return all edits, the newest first, those before the edit ``before``."""
