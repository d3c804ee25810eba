"""What one run answers: the messages that became one turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from goclaw_py.core import wording
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.messages import InboundMessage, PeerKind, Sender, Target
from goclaw_py.core.requests import DEFAULT_POLICY, Mode, QueuePolicy
from goclaw_py.ports.agent import AgentResult
from goclaw_py.ports.store import InboxRow, NewRun


@dataclass(slots=True)
class Turn:
    """One request with the messages it answers.

    Grows until its run starts, and by what the run takes in after that. ``policy`` is how its first
    message queued, before any throttle.
    """

    id: RunId
    session: SessionKey
    agent: AgentName
    rows: list[InboxRow]
    policy: QueuePolicy = DEFAULT_POLICY
    run: NewRun | None = None
    """Its row, once its task has begun."""
    said: list[str] = field(default_factory=list)
    """What the agent has streamed so far."""
    result: AgentResult | None = None
    offers: list[RunId] = field(default_factory=list)
    """Messages that wait and that this turn may take in (mode ``steer``)."""

    @property
    def target(self) -> Target:
        """Where the answer goes."""
        return self.rows[-1].message.target

    @property
    def texts(self) -> list[str]:
        """What people said, message by message; a text that the channel cut is whole again."""
        return [text for _, text in _said(self.rows)]

    def prompts(self, rows: Sequence[InboxRow]) -> list[str]:
        """What the agent is told of some of its rows: in a group also who said it (QUEUE-4)."""
        messages = _said(rows)
        if not self._is_of_several:
            return [text for _, text in messages]
        return [wording.said_by(sender, text) for sender, text in messages]

    @property
    def taken_in(self) -> tuple[int, ...]:
        """The ids of the rows that joined its run after that had begun."""
        begun_with = () if self.run is None else self.run.inbox
        return tuple(row.id for row in self.rows if row.id not in begun_with)

    @property
    def _is_of_several(self) -> bool:
        """Whether it answers several people, or gathers several messages of a group."""
        if self.rows[0].message.peer is not PeerKind.GROUP:
            return False
        if len({row.message.sender.id for row in self.rows}) > 1:
            return True
        return self.policy.mode is Mode.COLLECT and len(_said(self.rows)) > 1


def _said(rows: Sequence[InboxRow]) -> list[tuple[Sender, str]]:
    """Who said what; the pieces of a text that the channel cut are one message."""
    messages: list[tuple[Sender, str]] = []
    before: InboundMessage | None = None
    for message in (row.message for row in rows):
        if before is not None and before.cut and before.sender.id == message.sender.id:
            messages[-1] = (message.sender, messages[-1][1] + message.text)
        else:
            messages.append((message.sender, message.text))
        before = message
    return messages
