"""The inbox: incoming messages until they are answered."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from goclaw_py.core.ids import AgentName, NodeId, RunId, SessionKey
from goclaw_py.core.messages import InboundMessage, OutboundMessage
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.values import value
from goclaw_py.records.nodes import Place
from goclaw_py.records.outbox import ALL_MESSAGES, MessageFilter
from goclaw_py.records.people import PairingRequest
from goclaw_py.scheduler.models import Mode


class InboxKind(StrEnum):
    """The kind of an inbox row."""

    MESSAGE = "message"
    COMMAND = "command"


class InboxState(StrEnum):
    """The state of an inbox row. A pending row waits or is running; ``run_id`` tells which.

    A waiting one needs an answer to a question of its run (SPEC AGENT-11).
    """

    PENDING = "pending"
    WAITING = "waiting"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Stops:
    """The messages that a ``/stop`` cancelled, by their external ids in the same account.

    With ``everything`` also all that waited in its session when it was stored and was not sent
    later, as by ``InboxStore.stop_session``: other nodes may have stored it. ``by`` limits those to
    one sender (SPEC CMD-6). ``dropped`` were dropped before, and keep that end and their notice.
    """

    messages: tuple[str, ...]
    reason: Reason
    everything: bool = False
    by: str | None = None
    dropped: tuple[DroppedMessage, ...] = ()


@value(frozen=True, slots=True)
class NewInbox:
    """An inbox row to be committed.

    ``outcome`` is set if the row ended before the commit: a ``/stop`` that was executed, or a
    message that a later ``/stop`` of the same batch cancelled. ``stops`` is set for a ``/stop``.
    """

    message: InboundMessage
    session: SessionKey
    agent: AgentName
    kind: InboxKind = InboxKind.MESSAGE
    outcome: Outcome | None = None
    reason: Reason | None = None
    stops: Stops | None = None


@dataclass(frozen=True, slots=True)
class DroppedMessage:
    """A dropped inbox row, and the outcome to store once its sender is notified.

    Or one that a stop has cancelled during a run, of which the end could not be stored.
    """

    row: int
    outcome: Outcome
    reason: Reason | None = None


@value(frozen=True, slots=True)
class InboxRow:
    """A committed, unfinished inbox row. ``attempts`` counts runs that started with it.

    ``mode`` is the queue mode chosen in its chat, None for that of the settings. ``dropped`` is set
    if the row was dropped and its sender has not been notified yet; no run answers it.
    ``joined`` is the row whose run had taken in this one before it was interrupted (SPEC QUEUE-4).
    ``last_run`` is the last run that started with it: rows with the same one are one turn (IO-2).
    """

    id: int
    message: InboundMessage
    session: SessionKey
    agent: AgentName
    kind: InboxKind
    attempts: int
    received_at: datetime
    mode: Mode | None = None
    dropped: DroppedMessage | None = None
    joined: int | None = None
    last_run: RunId | None = None

    def is_behind(self, other: InboxRow) -> bool:
        """Return whether another row was stored before it, and not sent after it.

        What is delivered again is stored behind messages that were sent after it.
        """
        return other.id < self.id and other.message.sent_at <= self.message.sent_at


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A message without an answer. It waits or is running while ``outcome`` is None.

    ``run_id`` is the run that started with it, if any; ``asking_run`` is the run that has asked
    people about a tool call, if the message waits for their answer (SPEC AGENT-11).
    """

    id: int
    message: InboundMessage
    run_id: RunId | None
    received_at: datetime
    finished_at: datetime | None = None
    outcome: Outcome | None = None
    reason: Reason | None = None
    asking_run: RunId | None = None

    def __post_init__(self) -> None:
        """Leave out who has sent the message: the audit log says it, to admins only (SEC-9)."""
        if self.message.by is not None:
            object.__setattr__(self, "message", replace(self.message, by=None))


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An incoming message for operators, with its session and its number of attempts."""

    row: Unanswered
    session: SessionKey
    agent: AgentName
    attempts: int


class IncomingState(StrEnum):
    """What became of an incoming message that has no answer."""

    FAILED = "failed"
    """A dead letter: it failed, timed out, was dropped, rejected, abandoned or lost."""
    WAITING = "waiting"
    """It has not ended, and no run answers it: it waits for a slot, an approval, its agent …"""
    RUNNING = "running"
    """A run answers it."""
    DISMISSED = "dismissed"
    """It failed, and an operator has dismissed it."""


@dataclass(frozen=True, slots=True)
class DeadLetterQuery:
    """Selects unanswered messages of all sessions, without commands, the newest first.

    Args:
        before: Only those after this one in the list: the id of the row of the last one of a page.
    """

    state: IncomingState = IncomingState.FAILED
    only: MessageFilter = ALL_MESSAGES
    limit: int = 50
    before: int | None = None


class DeadLetterCounts(NamedTuple):
    """The numbers of dead letters, of messages that wait, and of dismissed ones.

    ``asking``: those of the waiting ones that wait for an approval.
    """

    failed: int
    waiting: int
    dismissed: int
    asking: int = 0


ALL_DEAD_LETTERS: Final = DeadLetterQuery()


@dataclass(frozen=True, slots=True)
class NewPairing:
    """A request for access.

    If its sender has a live request, that one gets ``rows`` and nothing is sent. If the sender was
    approved or rejected in the meantime, no request is stored; the rows of an approved sender go
    into the inbox.

    Args:
        say: Messages for the sender, with the pairing code, and for the owners.
        rows: The sender's messages, answered after approval. Only the newest few are kept.
    """

    request: PairingRequest
    say: tuple[OutboundMessage, ...] = ()
    rows: tuple[NewInbox, ...] = ()


@value(frozen=True, slots=True)
class AcceptedMessages:
    """The result of committing a batch.

    Args:
        rows: New rows of sessions that this node owns, in batch order. Rows of sessions that
            another live node owns are committed but not listed; that node is notified.
        duplicates: External ids that were stored before.
        before: Older rows that wait in the sessions of ``rows``. If the process does not know one,
            another process accepted it or a response was lost; it must be answered first.
    """

    rows: tuple[InboxRow, ...] = ()
    duplicates: frozenset[str] = frozenset()
    before: frozenset[int] = frozenset()


class InboxStore(Protocol):
    """The inbox: incoming messages until they are answered."""

    async def accept(
        self,
        batch: Sequence[NewInbox],
        *,
        node: NodeId,
        now: datetime,
        pairings: Sequence[NewPairing] = (),
    ) -> AcceptedMessages:
        """Commit a batch in one transaction, and claim its free sessions for ``node``.

        Duplicates, by (channel, account, external id), change nothing. Rows with an outcome are
        stored as done; of these, only new commands are listed in the result. The messages that a
        row ``stops`` are cancelled, as by ``settle``. The session's last activity is updated.

        Only the owner of a session decides in it. In a session of another node, rows are stored as
        pending whatever their outcome is, are not listed, and stop nothing.
        """

    async def claim_pending(
        self,
        node: NodeId,
        *,
        now: datetime,
        places: Collection[Place],
        known: Collection[int] = (),
    ) -> list[InboxRow]:
        """Claim the sessions with pending rows that are free or whose owner has expired.

        Only those of ``places``, because a node leaves sessions that it cannot answer to others.

        Returns the pending rows of all sessions that ``node`` now owns, except those in ``known``,
        in order of arrival; rows whose runs crashed twice come last.
        """

    async def ended(self, rows: Collection[int]) -> set[int]:
        """Return which of these inbox rows are done."""

    async def settle(
        self,
        rows: Collection[int],
        outcome: Outcome,
        *,
        now: datetime,
        reason: Reason | None = None,
        say: Sequence[OutboundMessage] = (),
        node: NodeId | None = None,
    ) -> None:
        """End rows that no run will answer, and add ``say`` to the outbox.

        With ``node``, rows of sessions that another node owns count as done.

        A run in progress for one of the rows is not ended by this. A draft that an earlier run for
        one of them left is completed by a message in the outbox.

        Rows that are done do not change. If ``rows`` is not empty and all of them are done, ``say``
        is not stored.
        """

    async def stop_session(
        self,
        session: SessionKey,
        stops: Stops,
        *,
        node: NodeId,
        now: datetime,
        before: InboxRow | None = None,
    ) -> None:
        """Cancel all waiting messages of a session, or those that came ``before`` a row.

        A message of an unfinished run of the node ends with that run, which may have its answer
        already; but no other run starts with it. In a session of another node nothing happens.
        """

    async def unanswered(
        self, session: SessionKey, *, ended: bool, limit: int = 50
    ) -> list[Unanswered]:
        """Return unanswered messages of a session, without commands.

        With ``ended``, those that ended without an answer, the newest first;
        otherwise those that have not ended, in order of arrival.
        """

    async def chained_turns(self, run: RunId, *, limit: int) -> int:
        """Return the number of turns in a row, up to this run's, that subagents have begun.

        They are the latest turns of its session, at most ``limit``, that answer only results of
        subagents, since a person was last heard there. Runs that begin again do not count.
        """

    async def amend(self, edit: InboxRow) -> bool:
        """Replace the text, attachments and quote of a waiting message by those of its edit.

        The edit's own row ends. Returns False and changes nothing if the edited message is not
        stored, has ended, or a run has started with it.
        """

    async def last_version(
        self, channel: str, account: str, external_id: str, *, before: int
    ) -> InboundMessage | None:
        """Return the newest version of a message that is stored before a row.

        The message, or the last edit of it; None if neither is stored. The external ids of edits
        begin with that of the message and a colon (SPEC IO-1).
        """

    async def is_known(self, channel: str, account: str, external_id: str) -> bool:
        """Return whether a message is stored."""

    async def dead_letters(self, query: DeadLetterQuery = ALL_DEAD_LETTERS) -> list[DeadLetter]:
        """Return unanswered messages, the newest first."""

    async def dead_letter_counts(self, only: MessageFilter = ALL_MESSAGES) -> DeadLetterCounts:
        """Return how many messages the lists of ``dead_letters`` have."""

    async def message_channels(self) -> frozenset[str]:
        """Return the channels of stored incoming messages and of seen chats."""

    async def dead_letter(self, row_id: int) -> DeadLetter | None:
        """Return an inbox row in any state, or None if it is not stored."""

    async def letter_named(self, channel: str, account: str, external_id: str) -> DeadLetter | None:
        """Return the row of a message by its external id, or None if it is not stored."""

    async def letters_of(self, run: RunId) -> list[DeadLetter]:
        """Return the rows that a run began with or took in, in order of arrival.

        Another run, which their ``run_id`` names, answers those that it did not finish.
        """

    async def retry_dead_letters(self, ids: Collection[int], *, now: datetime) -> int:
        """Retry messages that ended without an answer or were stopped, with zero attempts.

        Any node may claim their sessions; sends ``Notice.INBOX``. Returns the number of messages.
        """

    async def dismiss_dead_letters(self, ids: Collection[int], *, now: datetime) -> int:
        """Dismiss dead letters, and cancel messages that wait. Returns their number.

        One that a run has, or that waits for the answer of a person, does not change.
        """

    async def release_sessions(
        self, node: NodeId, sessions: Collection[SessionKey], *, waiting: bool = False
    ) -> None:
        """Release sessions that are idle on this node.

        Sessions with pending rows are released only with ``waiting``: other nodes may claim them
        immediately, which ``Notice.INBOX`` tells them.
        """
