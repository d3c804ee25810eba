"""Messages on their way to the channel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.values import value
from goclaw_py.records.nodes import Place


class OutboxState(StrEnum):
    """The state of a delivery. Only ``sent`` means that the channel confirmed it (SPEC IO-6)."""

    WAITING = "waiting"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    DROPPED = "dropped"
    """An operator dropped it."""

    @classmethod
    def _missing_(cls, value: object) -> OutboxState | None:
        """Accept the words of the database, which other releases read and write, too.

        Commands and requests accepted them before 0.1.0; they may until 1.0.
        """
        return {"pending": cls.WAITING, "dead": cls.FAILED}.get(str(value))


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Selects incoming or outgoing messages; a field that is None or empty selects all.

    Args:
        chat: In any thread.
        since: When they were received or created, at the earliest.
        text: A part of their texts. The case of the letters A to Z is ignored.
        account: That of their chat, and of the session that answers incoming ones: by this nodes
            claim them.
    """

    channel: str | None = None
    chat: Target | None = None
    since: datetime | None = None
    text: str = ""
    account: str | None = None


ALL_MESSAGES = MessageFilter()


@dataclass(frozen=True, slots=True)
class OutboxQuery:
    """Selects outgoing messages, the newest first.

    Args:
        run: Only those that this run has written.
        before: Only those after this row in the list: the id of the last one of a page.
    """

    state: OutboxState | None = None
    run: RunId | None = None
    only: MessageFilter = ALL_MESSAGES
    limit: int = 50
    before: int | None = None


ALL_OUTGOING: Final = OutboxQuery()


@value(frozen=True, slots=True)
class OutboxRow:
    """A delivery. ``fence`` identifies its claim; a later claim makes it invalid.

    Args:
        attempts: The number of claims, including one in progress.
    """

    id: int
    message: OutboundMessage
    session: SessionKey | None
    state: OutboxState
    attempts: int
    possible_duplicate: bool
    fence: int
    created_at: datetime
    next_attempt_at: datetime
    sent_at: datetime | None
    external_id: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class ChatsDue:
    """Chats to which something is to be sent.

    Args:
        counts: The chats (thread None) whose oldest unsent row is due, the longest due first, with
            the number of messages to send: the size of the row's album, otherwise 1.
        next_at: When the oldest row of another chat is due; None if there is none.
    """

    counts: dict[Target, int]
    next_at: datetime | None


class OutboxStore(Protocol):
    """The outbox: messages to send, in order per (channel, account, chat)."""

    async def chats_due(self, places: Collection[Place], *, now: datetime) -> ChatsDue:
        """Return the chats whose oldest unsent row is due, and when the next one is.

        Rows that a node is sending are never due.
        """

    async def claim_next(self, chat: Target, *, node: NodeId, now: datetime) -> OutboxRow | None:
        """Claim the oldest unsent row of a chat if it is due; its state becomes ``sending``.

        The claim is committed before anything is sent, so that a crash can be recognised. Returns
        None if the oldest row is not due or another node is sending it. A row that ``node`` has
        claimed is claimed again: repeat the call if the response was lost, but never while
        sending. The thread of ``chat`` is ignored.
        """

    async def claim_album(self, row: OutboxRow, *, node: NodeId) -> list[OutboxRow]:
        """Claim the other waiting rows of a claimed row's album, in order, due or not.

        Repeat the call if the response was lost, as with ``claim_next``.
        """

    async def mark_sent(
        self, row: OutboxRow, external_id: str, *, now: datetime, beside_draft: bool = False
    ) -> bool:
        """Store that the channel confirmed a row. Raises ``Fenced`` if the claim is invalid.

        Returns False if no other message of the chat was waiting then, due or not.
        ``beside_draft`` marks it ``possible_duplicate``: its lost draft was not found.
        """

    async def clear_duplicate(self, row: OutboxRow) -> None:
        """Store that a sent row is in its chat once only. May be repeated.

        Does nothing if it was claimed again since.
        """

    async def mark_failed(
        self,
        row: OutboxRow,
        error: str,
        *,
        retry_at: datetime,
        maybe_sent: bool,
        alone: bool = False,
    ) -> None:
        """Let a row wait again after a failed attempt.

        ``maybe_sent`` marks it ``possible_duplicate``; ``alone`` removes it from its album. Raises
        ``Fenced`` if the claim is invalid.
        """

    async def mark_dead(
        self,
        row: OutboxRow,
        error: str,
        *,
        now: datetime,
        say: Sequence[OutboundMessage] = (),
    ) -> None:
        """Make a row a dead letter. Raises ``Fenced`` if the claim is invalid.

        ``say`` are messages about the failure, for the session of the row.
        """

    async def outbox(self, query: OutboxQuery = ALL_OUTGOING) -> list[OutboxRow]:
        """Return rows, the newest first."""

    async def outbox_counts(self, only: MessageFilter = ALL_MESSAGES) -> dict[OutboxState, int]:
        """Return how many rows are in each state."""

    async def outbox_row(self, row_id: int) -> OutboxRow | None:
        """Return a row, or None if it is not stored."""

    async def drop_answers(
        self,
        session: SessionKey,
        chat: Target,
        *,
        everything: bool,
        run: RunId | None,
        sender: str | None,
        now: datetime,
    ) -> int:
        """Drop waiting answers in a chat, in any thread; return the number of messages.

        With ``everything`` all answers of the session there, otherwise those of ``run``; None is
        the run with the oldest message. ``sender`` (``person_at``) selects runs whose first
        message is theirs. A message that is being sent, and messages of jobs and heartbeats, are
        not dropped. Sends ``Notice.OUTBOX``.
        """

    async def drop_outbox(self, ids: Collection[int], *, now: datetime) -> Counter[str]:
        """Drop failed and waiting rows that are not being sent; return counts by channel."""

    async def advance_outbox(self, *, after: datetime, by: timedelta) -> None:
        """Make waiting rows that are due after a time due earlier: the clock has gone back.

        A time so far ahead is one of the former clock.
        """

    async def retry_outbox(self, ids: Collection[int], *, now: datetime) -> int:
        """Make failed and dropped rows wait and due again. Returns their number."""


# Drafts: messages in a chat that show a growing reply and are finished by an edit (SPEC IO-5).


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
