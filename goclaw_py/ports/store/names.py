"""Names of chats, topics, people and jobs, for people who read about them (SPEC OPS-9)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from goclaw_py.model.display_names import KnownNames
from goclaw_py.model.ids import JobId
from goclaw_py.model.messages import Target


@dataclass(frozen=True, slots=True)
class SeenName:
    """The name of a chat or a person in a message. ``target.chat`` is its id; it has no thread."""

    target: Target
    name: str
    username: str | None = None


class NameStore(Protocol):
    """Names as they were seen last. Only ids identify: names may be equal, and change."""

    async def note_names(self, seen: Sequence[SeenName], *, now: datetime) -> None:
        """Store names; of several for one id the last."""

    async def names(self, targets: Collection[Target], jobs: Collection[JobId] = ()) -> KnownNames:
        """Return the names of chats, people, topics and jobs. Without a name: ``@username``."""

    async def forget_name(self, target: Target) -> None:
        """Delete the name of a chat or person. Processes that may know it get ``PEOPLE``."""
