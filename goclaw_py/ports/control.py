"""What an operator can see and do: offered by the gateway, used by CLI and HTTP API.

Three things implement it: the gateway itself, a client that reaches the gateway over its socket,
and, when no gateway runs, the database alone. A command needs to know none of that.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from goclaw_py.model.explanation import Explanation
from goclaw_py.model.ids import LaneName, NodeId, RunId, SessionKey
from goclaw_py.model.messages import Sender
from goclaw_py.model.pagination import Cursor
from goclaw_py.model.run_events import RunEnded, RunStarted, RunText, RunTool
from goclaw_py.ports.heartbeat import HeartbeatService
from goclaw_py.ports.jobs import JobService
from goclaw_py.ports.store import (
    ALL_RUNS,
    Chat,
    DeadLetter,
    LastActivity,
    Node,
    OutboxRow,
    OutboxState,
    Person,
    RunFilter,
    RunSpan,
    Session,
    StoredEntry,
    StoredRun,
    Unanswered,
)
from goclaw_py.runs.live_events import LiveEvent
from goclaw_py.runs.usage_report import UsageQuery, UsageReport
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.scheduler.views import (
    ActiveRuns,
    GatewayStatus,
    LanesView,
    LaneView,
    RunView,
    StopReport,
)


@dataclass(frozen=True, slots=True)
class NodesView:
    """The gateways on this database at one instant (SPEC NODE-1).

    Args:
        here: The one that was asked, None if none was.
        nodes: The oldest first; those whose lease has ended are dead, until somebody recovers them.
    """

    at: datetime
    here: NodeId | None
    nodes: tuple[Node, ...]

    def is_live(self, node: Node) -> bool:
        """Whether a node has renewed its lease in time."""
        return node.is_live(self.at)

    def health(self, node: Node) -> str:
        """How a node is, in a word: ``live``, ``draining`` or ``dead``."""
        return node.health(self.at)


@dataclass(frozen=True, slots=True)
class Submitted:
    """A message that is stored and will be worked on.

    ``run`` is the run that is to answer it, None if another process works on its session.
    """

    session: SessionKey
    run: RunId | None = None


@dataclass(frozen=True, slots=True)
class Resized:
    """A lane with its new size. ``before`` is the size that it had."""

    before: int
    lane: LaneView


@dataclass(frozen=True, slots=True)
class QueueView:
    """One session at one instant: what runs, what waits, and what got no answer (SPEC OPS-4).

    ``live`` is False if no gateway was asked: then the database tells what has started, and
    nothing is known to wait but ``messages``.
    """

    session: SessionKey
    at: datetime
    live: bool
    running: tuple[RunView, ...]
    waiting: tuple[RunView, ...]
    """The next one first."""
    policy: QueuePolicy | None
    """How the newest request of the session queues, while there is one."""
    messages: tuple[Unanswered, ...]
    """The oldest that are not done, those that a run is working on included."""
    unanswered: tuple[Unanswered, ...]
    """The newest that ended otherwise than with an answer."""
    unmentioned_at: datetime | None = None
    """When its group was heard last by a message that was not meant for the bot."""


@dataclass(frozen=True, slots=True)
class PairingApplicant:
    """An unknown person with a pairing code.

    Without its hash: codes are short enough to be found from that (SPEC SEC-2).
    """

    channel: str
    account: str
    sender: Sender
    created_at: datetime
    expires_at: datetime
    chat: str
    """Their direct chat: denied by ``Control.allow_chat``."""


@dataclass(frozen=True, slots=True)
class TerminalMessage:
    """A message for the person at a terminal; to be confirmed with its receipt once shown."""

    receipt: str
    text: str
    run_id: RunId | None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run with what is stored of it beside its row.

    Args:
        entries: What it has added to the history of its session: what was asked, what was answered.
        said: Its messages to chats, the oldest first.
    """

    run: StoredRun
    entries: tuple[StoredEntry, ...]
    said: tuple[OutboxRow, ...]


ChatEvent = RunStarted | RunText | RunTool | RunEnded | TerminalMessage


@runtime_checkable
class Terminals(Protocol):
    """The console channel, seen from the terminal's side (SPEC CHAN-9)."""

    def attach(self, chat: str) -> AsyncIterator[ChatEvent]:
        """Events for one terminal, until the iterator is closed.

        ``TerminalMessage`` messages of ``chat`` go to the terminal that attached last and are held
        while none is attached; one that was not confirmed before the terminal went away is shown
        again.
        """

    async def say(self, chat: str, message_id: str, text: str) -> None:
        """Take a line from the terminal; saying the same ``message_id`` again is harmless.

        Raises ``StoreUnavailable`` if it could not be committed.
        """

    def confirm(self, receipt: str) -> None:
        """The person has seen this message. An unknown receipt is ignored."""


class Control(Protocol):
    """The operator's view. Every method may raise ``StoreUnavailable``.

    A list goes on behind a row of it with ``before``: that row's ``cursor``, or its id where rows
    have numbers.
    """

    @property
    def jobs(self) -> JobService:
        """Jobs, and what can be done with them."""

    @property
    def heartbeats(self) -> HeartbeatService:
        """The heartbeats of agents, and what can be done with them."""

    async def status(self) -> GatewayStatus:
        """The gateway's state. Raises ``NoGateway``."""

    async def lanes(self) -> LanesView:
        """Who is in each lane and who waits for it (SPEC LANE-7). Raises ``NoGateway``."""

    async def resize_lane(self, name: LaneName, concurrency: int) -> Resized:
        """Give a lane another size until the gateway ends; no run is cancelled (SPEC LANE-9).

        Raises ``NoGateway``, ``NotFound`` naming the lanes there are, and ``ValueError`` for a
        size that is not from 1 to ``MAX_LANE_SIZE``.
        """

    async def active(self) -> ActiveRuns:
        """All requests that are not done, or what the database knows of them."""

    async def queue(self, key: str) -> QueueView:
        """The session with this key or unique part of a key, from near. Raises ``NotFound``."""

    async def stop(self, session: SessionKey, *, everything: bool) -> StopReport:
        """Like ``/stop`` or ``/stopall`` of an owner in that session's chat.

        What is not sent yet of an answer is given up as well. Raises ``NoGateway``.
        """

    async def sessions(self, *, limit: int = 50, before: Cursor | None = None) -> list[Session]:
        """Sessions, the last active first."""

    async def session(self, key: str) -> Session:
        """The session with this key or unique part of a key. Raises ``NotFound``."""

    async def history(self, key: SessionKey, *, limit: int = 200) -> list[StoredEntry]:
        """A session's history since its last reset, oldest first."""

    async def send_message(self, key: str, text: str, *, queue: bool) -> Submitted:
        """Let the agent work on a message as if it came into the chat of a stored session.

        The reply goes to that chat; in the session of a job it goes where the job tells its
        results, and if that is nowhere it is only in the history. ``key`` is the whole key, and
        ``text`` is never a command. Raises ``NotFound``, ``NotAChat``, ``NoGateway``, and
        ``SessionBusy`` unless it may ``queue`` behind what waits or works in the session (SPEC
        CRON-19).
        """

    async def reset(self, key: SessionKey) -> None:
        """Stop what runs and waits in a session and begin a fresh history."""

    async def runs(
        self,
        *,
        limit: int = 50,
        session: SessionKey | None = None,
        active: bool = False,
        only: RunFilter = ALL_RUNS,
        before: Cursor | None = None,
    ) -> list[StoredRun]:
        """Runs, the newest first."""

    async def runs_between(
        self, since: datetime, until: datetime, *, limit: int = 2000, after: Cursor | None = None
    ) -> list[RunSpan]:
        """Runs that worked at some time from ``since`` to before ``until``, the oldest first."""

    async def run(self, prefix: str) -> StoredRun:
        """The run whose id starts with ``prefix``. Raises ``NotFound``."""

    async def run_record(self, prefix: str) -> RunRecord:
        """That run with its part of the history and its messages. Raises ``NotFound``."""

    async def why(self, about: str | None = None) -> Explanation:
        """Explain why something did or did not happen (SPEC OPS-4).

        ``about``: a conversation, chat, person, run, message, job, agent or node by whatever it is
        called; None: the gateway as a whole. Raises ``NotFound``, with the candidates if several
        things are meant.
        """

    async def usage(self, query: UsageQuery) -> UsageReport:
        """What runs have used that have ended. Raises ``BadUsageQuery`` (SPEC OPS-1)."""

    def follow(
        self, session: str | None = None, *, after: str | None = None
    ) -> AsyncGenerator[LiveEvent]:
        """What runs do from now on, ``LiveNow`` first. Close the iterator.

        With the ``id`` of an event it begins behind that: first comes what happened since then, as
        far as it is still kept, or ``LiveMissed``, and then ``LiveNow``.

        Of all sessions, or of the one with this key or unique part of a key and of the runs that
        it pays for. Whoever reads too slowly is told ``LiveMissed``; no run waits for a reader.
        Ends with the gateway that it is asked of; raises ``NoGateway`` when one in another process
        goes away, or is not there. Raises ``NotFound`` at the first step.
        """

    async def outbox(
        self,
        *,
        limit: int = 50,
        state: OutboxState | None = None,
        run: RunId | None = None,
        before: int | None = None,
    ) -> list[OutboxRow]:
        """Messages on their way out, the newest first; only those of ``run``, if one is named."""

    async def outbox_row(self, row_id: int) -> OutboxRow:
        """One of them. Raises ``NotFound``."""

    async def retry_outbox(self, ids: Collection[int]) -> int:
        """Try dead and dropped messages again; how many there were (SPEC IO-3)."""

    async def drop_outbox(self, ids: Collection[int]) -> int:
        """Give up messages that are dead or wait; how many there were."""

    async def letters(
        self, *, waiting: bool = False, limit: int = 50, before: int | None = None
    ) -> list[DeadLetter]:
        """Messages that could not be worked on, the newest first.

        Those that were dismissed are left out. With ``waiting`` those that are not done instead.
        """

    async def letter(self, row_id: int) -> DeadLetter:
        """One message that came in, whatever became of it. Raises ``NotFound``."""

    async def retry_letters(self, ids: Collection[int]) -> int:
        """Let messages that ended without an answer run again; how many there were."""

    async def dismiss_letters(self, ids: Collection[int]) -> int:
        """Show messages that ended without an answer no more; how many there were."""

    async def nodes(self) -> NodesView:
        """The gateways on this database."""

    async def drain(self, node: str) -> Node:
        """Let a node end as after SIGTERM: it takes nothing new, and what runs may end.

        ``node``: its id, or any unique part of it. Raises ``NotFound`` and ``NodeSilent``.
        """

    async def people(self, *, limit: int = 1000, before: Cursor | None = None) -> list[Person]:
        """Who may talk to the agent, the last one approved first."""

    async def pairing_requests(self) -> list[PairingApplicant]:
        """Who asked to."""

    async def approve(self, code: str, *, guest: bool) -> Person:
        """Let the person with this pairing code talk. Raises ``NotFound``."""

    async def revoke(self, channel: str, account: str, sender_id: str) -> None:
        """Forget a person. Raises ``NotFound``."""

    async def heard(self, *, limit: int = 50, before: Cursor | None = None) -> list[LastActivity]:
        """Chats and threads in which somebody who may talk spoke, the last one first."""

    async def chats(self, *, limit: int = 1000, before: Cursor | None = None) -> list[Chat]:
        """Known chats, the last seen first (SPEC CHAN-5)."""

    async def allow_chat(self, channel: str, account: str, chat: str, *, allowed: bool) -> None:
        """Decide whether the agent listens in a group; one never seen becomes known."""
