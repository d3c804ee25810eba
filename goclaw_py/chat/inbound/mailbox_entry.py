"""A message of this process on its way to the agent; see ``mailbox`` for its life."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from goclaw_py.core.chat_commands import Command, StopCommand
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.messages import ExternalId, InboundMessage, external_id
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.records import InboxKind, InboxRow, NewInbox, Stops


class MessageState(Enum):
    """See ``mailbox``."""

    ARRIVED = auto()
    WAITING = auto()
    STARTING = auto()
    TAKEN = auto()


@dataclass(slots=True, eq=False)
class MailboxEntry:
    """A message of this process.

    Args:
        row: Its row, set once it is committed.
        accepting: How many deliveries of it wait for their commit.
        cancelled: Why it gets no answer, if a later stop has cancelled it.
        acted: Whether it is a stop that was executed.
        stops: The messages that it has cancelled, to be committed with it.
        announce: Announces what it has stopped; called once it is known that no other node owns the
            session.
        run: The run that was to answer it at first; it may be a part of another one since.
        unstored: Why it was stopped, until that is stored.
        tried: For an executed stop: set once its commit was tried. Until then the ends of the
            messages that it cancelled are not stored.
    """

    message: InboundMessage
    session: SessionKey
    agent: AgentName
    command: Command | None = None
    state: MessageState = MessageState.ARRIVED
    row: InboxRow | None = None
    accepting: int = 0
    cancelled: Reason | None = None
    acted: bool = False
    stops: Stops | None = None
    announce: Callable[[], None] | None = None
    run: RunId | None = None
    unstored: Reason | None = None
    tried: asyncio.Event | None = None
    key: ExternalId = field(init=False)
    """Its identity in its channel."""

    def __post_init__(self) -> None:
        self.key = external_id(self.message)

    def new_row(self) -> NewInbox:
        """Return the row to commit."""
        outcome, reason = None, None
        if self.cancelled is not None:
            outcome, reason = Outcome.CANCELLED, self.cancelled
        elif isinstance(self.command, StopCommand) and self.acted:
            outcome = Outcome.COMPLETED
        return NewInbox(
            message=self.message,
            session=self.session,
            agent=self.agent,
            kind=InboxKind.MESSAGE if self.command is None else InboxKind.COMMAND,
            outcome=outcome,
            reason=reason,
            stops=self.stops,
        )

    def commit_tried(self) -> None:
        """Allow the ends of the messages that it cancelled to be stored."""
        if self.tried is not None:
            self.tried.set()

    @property
    def is_answered(self) -> bool:
        """Return whether it is a stop that was executed and answered: it must hold."""
        return self.acted and self.announce is None

    def stopped_keys(self) -> list[ExternalId]:
        """Return the messages that it has cancelled as a stop."""
        channel, account, _ = self.key
        return [(channel, account, name) for name in (self.stops.messages if self.stops else ())]

    def announce_now(self) -> None:
        """Announce what it has stopped, once."""
        announce, self.announce = self.announce, None
        if announce is not None:
            announce()
