"""Messages on their way to the channel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from goclaw_py.model.ids import NodeId, RunId, SessionKey
from goclaw_py.model.messages import OutboundMessage, Target
from goclaw_py.ports.store.nodes import Place


class OutboxState(StrEnum):
    """The state of an outbox row. Only ``sent`` means that the channel confirmed it (SPEC IO-6)."""

    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    DEAD = "dead"
    DROPPED = "dropped"
    """An operator gave it up."""


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """An outbox row. ``fence`` is the ticket of the claim; a later claim makes it invalid.

    Args:
        attempts: How often it was claimed to be sent, a claim that lasts included.
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


class OutboxStore(Protocol):
    """Messages on their way to the channel. Order holds per (channel, account, chat)."""

    async def chats_due(self, places: Collection[Place], *, now: datetime) -> dict[Target, int]:
        """Chats (thread None) whose oldest unsent row is pending and due, the longest due first.

        With how many messages are sent then: as many as there are rows of its album, else 1.
        """

    async def claim_next(self, chat: Target, *, node: NodeId, now: datetime) -> OutboxRow | None:
        """Claim the oldest unsent row of a chat if it is pending and due; state ``sending``.

        The claim is committed before anything is sent, so that a crash leaves a trace. A row that
        somebody else is sending, or that is not due, blocks the ones behind it: None. One that
        ``node`` itself has claimed is claimed anew: call it again if the answer was lost, and never
        while you are sending. The thread of ``chat`` is ignored.
        """

    async def claim_album(self, row: OutboxRow, *, node: NodeId) -> list[OutboxRow]:
        """Claim the other waiting rows of the album of a claimed row, whenever they are due.

        In their order. As for ``claim_next`` the answer may be lost: call it again.
        """

    async def mark_sent(
        self, row: OutboxRow, external_id: str, *, now: datetime, beside_draft: bool = False
    ) -> None:
        """The channel confirmed it. Raises ``Fenced`` if the claim is no longer ours.

        ``beside_draft`` marks it ``possible_duplicate``: its lost draft was not found.
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
        """Back to pending with one more attempt. ``maybe_sent`` marks it ``possible_duplicate``.

        ``alone`` takes it out of its album: it is sent by itself from now on.

        Raises ``Fenced`` if the claim is no longer ours.
        """

    async def mark_dead(
        self,
        row: OutboxRow,
        error: str,
        *,
        now: datetime,
        say: Sequence[OutboundMessage] = (),
    ) -> None:
        """It will never be delivered. Raises ``Fenced`` if the claim is no longer ours.

        With ``say``, which belongs to the session of the row, it is said that it is so.
        """

    async def outbox(
        self,
        *,
        limit: int = 50,
        state: OutboxState | None = None,
        run: RunId | None = None,
        before: int | None = None,
    ) -> list[OutboxRow]:
        """Rows, the newest first; only those of a ``run``, and those before the row ``before``."""

    async def outbox_row(self, row_id: int) -> OutboxRow | None:
        """One row."""

    async def cut_answers(
        self,
        session: SessionKey,
        chat: Target,
        *,
        everything: bool,
        run: RunId | None,
        sender: str | None,
        now: datetime,
    ) -> int:
        """Give up what waits of answers in a chat, whatever the thread; how many messages.

        Of ``everything`` that a session says there, else of one ``run``; None: of the one whose
        message is the oldest. With a ``sender`` (``person_at``) only of runs that answer them, by
        their first message. What is being sent is let go on. What jobs and heartbeats say stays.
        Sends ``Notice.OUTBOX``.
        """

    async def drop_outbox(self, ids: Collection[int], *, now: datetime) -> Counter[str]:
        """Give up rows that are dead or wait; what is being sent is left.

        Returns how many there were, by channel.
        """

    async def retry_outbox(self, ids: Collection[int], *, now: datetime) -> int:
        """Make dead and dropped rows pending again, due at once. Returns how many there were."""

    async def next_due(self, places: Collection[Place]) -> datetime | None:
        """When the next pending head of a chat falls due, or None."""
