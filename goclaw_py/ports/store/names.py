"""Names of chats, topics, people and jobs, for people who read about them (SPEC OPS-9)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from goclaw_py.model.display_names import KnownNames
from goclaw_py.model.ids import JobId
from goclaw_py.model.messages import Target


class NameKind(StrEnum):
    """Where a name comes from."""

    SEEN = "seen"
    """A message had it; deleted when it was not seen for long."""
    GUESSED = "guessed"
    """The title of a conversation, from its first message; stored only where there is no name."""
    GIVEN = "given"
    """The title that a person has given a conversation."""


@dataclass(frozen=True, slots=True)
class SeenName:
    """The name of a chat or a person. ``target.chat`` is its id; it has no thread.

    Titles (``GUESSED``, ``GIVEN``) are kept until they are forgotten.
    """

    target: Target
    name: str
    username: str | None = None
    kind: NameKind = NameKind.SEEN


class NameStore(Protocol):
    """Names as they were seen last. Only ids identify: names may be equal, and change."""

    async def note_names(self, seen: Sequence[SeenName], *, now: datetime) -> None:
        """Store names; of several for one id the last. A guessed one replaces none."""

    async def names(self, targets: Collection[Target], jobs: Collection[JobId] = ()) -> KnownNames:
        """Return the names of chats, people, topics and jobs. Without a name: ``@username``."""

    async def forget_name(self, target: Target) -> None:
        """Delete the name of a chat or person."""
