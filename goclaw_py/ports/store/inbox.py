"""Messages on their way to the agent."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from goclaw_py.model.ids import AgentName, NodeId, RunId, SessionKey
from goclaw_py.model.messages import InboundMessage, OutboundMessage
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.ports.store.nodes import Place
from goclaw_py.ports.store.people import PairingRequest
from goclaw_py.scheduler.models import Mode


class InboxKind(StrEnum):
    """What an inbox row asks for."""

    MESSAGE = "message"
    COMMAND = "command"


class InboxState(StrEnum):
    """The state of an inbox row. ``pending`` covers waiting and running; ``run_id`` tells which."""

    PENDING = "pending"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Stops:
    """What a ``/stop`` stopped: messages of its own account, by their external ids."""

    messages: tuple[str, ...]
    reason: Reason


@dataclass(frozen=True, slots=True)
class NewInbox:
    """An inbox row to be committed.

    ``outcome`` is set when it was dealt with before the commit: a ``/stop`` that has acted, or a
    message that a ``/stop`` behind it in the same batch covers. ``stops`` is what it has stopped.
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
    """A dropped inbox row, and how it ends when its sender has been notified."""

    row: int
    outcome: Outcome
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class InboxRow:
    """A committed, unfinished inbox row. ``attempts`` counts runs that started with it.

    ``mode`` is the queue mode that had been chosen in its chat by then, None if none had.
    ``dropped`` is how it was dropped, if it was and nobody has been told yet; it is not worked on.
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


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A message without an answer. It waits or is worked on while ``outcome`` is None.

    ``run_id`` is the run that has begun with it, if one has.
    """

    id: int
    message: InboundMessage
    run_id: RunId | None
    received_at: datetime
    finished_at: datetime | None = None
    outcome: Outcome | None = None
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An inbox row for operators: with the session it belongs to and how often it was tried."""

    row: Unanswered
    session: SessionKey
    agent: AgentName
    attempts: int


@dataclass(frozen=True, slots=True)
class NewPairing:
    """A request for access. Kept, and ``say`` said, unless the same sender has a live one.

    Nothing comes of it where a decision was made meanwhile; what somebody wrote who was let in by
    then goes into the inbox.

    Args:
        say: What its sender is told, with the code, and what owners are asked.
        rows: What its sender wrote, to be answered once they are let in. A request that exists
            keeps it too: the newest few messages.
    """

    request: PairingRequest
    say: tuple[OutboundMessage, ...] = ()
    rows: tuple[NewInbox, ...] = ()


@dataclass(frozen=True, slots=True)
class AcceptedMessages:
    """What a commit brought: rows that were new and are this node's to work on, in batch order.

    Rows whose session another live node owns are committed too but not listed here; that node is
    notified. ``duplicates`` holds the external ids that were known already.

    Args:
        before: Rows that wait in the sessions of ``rows`` since before. One that a process does not
            know goes first: another one has accepted it, or the answer was lost.
    """

    rows: tuple[InboxRow, ...] = ()
    duplicates: frozenset[str] = frozenset()
    before: frozenset[int] = frozenset()


class InboxStore(Protocol):
    """Messages on their way to the agent."""

    async def accept(
        self,
        batch: Sequence[NewInbox],
        *,
        node: NodeId,
        now: datetime,
        pairings: Sequence[NewPairing] = (),
    ) -> AcceptedMessages:
        """Commit a batch in one transaction and claim its sessions for ``node`` where possible.

        Rows whose (channel, account, external id) is known are left as they are. Rows that come
        with an outcome are stored as done and not listed in the result, but for commands: a
        command row is listed if it was new, done or not. What a row ``stops`` ends ``cancelled``
        with it, as by ``settle``. Updates the session's last activity.

        Only a session's owner decides in it: where another node owns it, rows come to wait for
        that one, whatever their outcome is, and are not listed; and nothing is stopped.
        """

    async def claim_pending(
        self,
        node: NodeId,
        *,
        now: datetime,
        places: Collection[Place],
        known: Collection[int] = (),
    ) -> list[InboxRow]:
        """Claim the sessions with pending rows that are free or whose owner is dead.

        Only those of ``places``: what a node cannot answer is left for those that can.

        Returns the pending rows of every session that ``node`` owns by now, but for those that are
        ``known`` to it: rows that crashed a run twice last, otherwise in order of arrival.
        """

    async def ended(self, rows: Collection[int]) -> set[int]:
        """Those of some inbox rows that are done."""

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
        """End rows that no run will answer, and put ``say`` into the outbox with it.

        For a ``node`` those of a session that another one owns are as if they were done.

        A run that works with one is not touched by that; it ends by ``finish_run`` all the same, or
        as ``cancelled`` with the node. A draft that an earlier run for one of them has left is
        closed: a message that finishes it goes into the outbox.

        Rows that are done already stay as they are; ``say`` is then dropped too unless another of
        the rows was still pending, or ``rows`` is empty.
        """

    async def unanswered(
        self, session: SessionKey, *, ended: bool, limit: int = 50
    ) -> list[Unanswered]:
        """Messages of a session, no commands.

        With ``ended`` those that ended otherwise than with an answer, the newest first; else those
        that are not done, in order of arrival.
        """

    async def amend(self, edit: InboxRow) -> bool:
        """Let an edit replace the message that it edits, and end the edit's row, if that waits.

        The edited row gets the text, attachments and quote of the edit and keeps everything else.
        False: a run has begun with it, or it has ended, or is not known; then nothing was changed.
        """

    async def is_known(self, channel: str, account: str, external_id: str) -> bool:
        """Whether a message was taken in, and is still kept."""

    async def letters(
        self, *, ended: bool, limit: int = 50, before: int | None = None
    ) -> list[DeadLetter]:
        """Messages of all sessions, no commands, the newest first; those before row ``before``.

        With ``ended`` those that could not be worked on: they failed, timed out, were dropped,
        rejected, abandoned or lost, and nobody has dismissed them. Else those that are not done.
        """

    async def letter(self, row_id: int) -> DeadLetter | None:
        """One inbox row, whatever became of it."""

    async def letter_named(self, channel: str, account: str, external_id: str) -> DeadLetter | None:
        """The row of a message by the id under which it came in."""

    async def letters_of(self, run: RunId) -> list[DeadLetter]:
        """The rows that a run answers, or has answered, in order of arrival."""

    async def retry_letters(self, ids: Collection[int], *, now: datetime) -> int:
        """Let messages that ended without an answer run again, all attempts before them.

        Also those that were stopped. Their sessions are free to be claimed by whoever looks next;
        sends ``Notice.INBOX``. Returns how many there were.
        """

    async def dismiss_letters(self, ids: Collection[int]) -> int:
        """Show messages that ended without an answer no more. Returns how many there were."""

    async def release_sessions(
        self, node: NodeId, sessions: Collection[SessionKey], *, waiting: bool = False
    ) -> None:
        """Give back sessions that are idle here.

        One with pending rows stays owned; with ``waiting`` it is given back too, for others to work
        on at once: that sends ``Notice.INBOX``.
        """
