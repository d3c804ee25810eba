"""Drafts: messages in a chat that show a growing reply and are finished by an edit (SPEC IO-5)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from goclaw_py.model.ids import RunId
from goclaw_py.model.messages import Target


@dataclass(frozen=True, slots=True)
class Draft:
    """The draft message of a run. ``external_id`` is None until the channel has confirmed it."""

    run_id: RunId
    target: Target
    external_id: str | None


class DraftStore(Protocol):
    """Drafts of started runs.

    After a crash or a shutdown, the draft moves to the next run that answers the same messages
    (``RunStore.begin_run``). It ends with the run (``RunStore.finish_run``).
    """

    async def open_draft(self, run_id: RunId, target: Target, *, now: datetime) -> None:
        """Store that a draft is about to be posted. A run has at most one; may be repeated.

        Call it before sending the request: a stored draft without id may or may not be in the chat.
        Raises ``RunNotStarted`` if the run is not stored or has ended.
        """

    async def draft_posted(self, run_id: RunId, external_id: str) -> bool:
        """Store the channel's id of a draft; may be repeated.

        Returns False if nothing will complete the draft: its run has ended, no later run continues
        it, and no outbox row completes it.
        """

    async def own_messages(self, chat: Target, *, everywhere: bool = False) -> frozenset[str]:
        """Return the channel's ids of our messages and drafts in a chat; the thread is ignored.

        ``everywhere``: in all chats of its account, with those of what came in there.
        They go back as far as a lost draft can be.
        """

    async def newest_before(
        self, chat: Target, at: datetime, *, everywhere: bool = False
    ) -> frozenset[str]:
        """Return the channel's ids of the newest messages that were in a chat at a time.

        Those that had come in or were sent; ``everywhere``: in all chats of its account.
        """

    async def drafts(self) -> list[Draft]:
        """Return all drafts, the oldest first."""
