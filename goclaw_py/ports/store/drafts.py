"""Drafts: messages in a chat that show a growing reply and are finished by an edit (SPEC IO-5)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from goclaw_py.model.ids import RunId
from goclaw_py.model.messages import Target


@dataclass(frozen=True, slots=True)
class Draft:
    """The draft of a run. ``external_id`` is None until the channel has told it."""

    run_id: RunId
    target: Target
    external_id: str | None


class DraftStore(Protocol):
    """Drafts of runs that have begun.

    The draft of a run that a crash or a shutdown cut goes over to the run that answers the same
    messages, see ``RunStore.begin_run``; it ends with the run, see ``RunStore.finish_run``.
    """

    async def open_draft(self, run_id: RunId, target: Target, *, now: datetime) -> None:
        """Note that a draft is about to be posted. A run has at most one; again is harmless.

        Commit this before the request leaves: a draft without id may be in the chat or not. Raises
        ``RunNotStarted`` for a run that is not known or has ended.
        """

    async def draft_posted(self, run_id: RunId, external_id: str) -> bool:
        """Keep the channel's id of a draft. False if nobody will ever finish it.

        The run has ended then, and neither was the id kept before, for a run that went on with the
        draft, nor is there a message that finishes it. Again is harmless.
        """

    async def own_messages(self, chat: Target) -> frozenset[str]:
        """The channel's ids of our own messages in a chat, as far back as a lost draft may be.

        Those that were sent by the outbox, and drafts. The thread of ``chat`` is ignored.
        """

    async def drafts(self) -> list[Draft]:
        """All of them, the oldest first."""
