"""What an operator can see and do: offered by the gateway, used by CLI and HTTP API.

Three things implement it: the gateway itself, a client that reaches the gateway over its socket,
and, when no gateway runs, the database alone. A command needs to know none of that.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from goclaw_py.core.ids import LaneName, NodeId, RunId, SessionKey
from goclaw_py.core.pagination import Cursor
from goclaw_py.operations.approvals.operations import Approvals
from goclaw_py.operations.audit import AuditReader
from goclaw_py.operations.deliveries.operations import Deliveries
from goclaw_py.operations.explanation import Explanation
from goclaw_py.operations.heartbeats.operations import HeartbeatService
from goclaw_py.operations.jobs import JobService
from goclaw_py.operations.people.operations import People
from goclaw_py.operations.runs.operations import Runs
from goclaw_py.operations.settings.operations import SettingsService
from goclaw_py.operations.web_access import WebAccessControl
from goclaw_py.records import (
    ALL_SESSIONS,
    Node,
    Session,
    SessionFilter,
    StoredEntry,
    Unanswered,
)
from goclaw_py.runs.events.live import LiveEvent
from goclaw_py.runs.usage_report import DayTimes, UsageQuery, UsageReport
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.scheduler.views import (
    GatewayStatus,
    LanesView,
    LaneView,
    RunView,
    StopReport,
)


@dataclass(frozen=True, slots=True)
class NodesView:
    """The nodes of this database at one instant (SPEC NODE-1).

    Args:
        here: The node that answered, None if the database was read directly.
        nodes: The oldest first, including expired ones that are not recovered yet.
    """

    at: datetime
    here: NodeId | None
    nodes: tuple[Node, ...]

    def is_live(self, node: Node) -> bool:
        """Return whether the lease of a node is valid."""
        return node.is_live(self.at)

    def health(self, node: Node) -> str:
        """Return the health of a node in one word: ``live``, ``draining`` or ``dead``."""
        return node.health(self.at)


@dataclass(frozen=True, slots=True)
class Submitted:
    """A message that was stored and will be answered.

    ``run`` is the run that will answer it, None if another node owns its session.
    """

    session: SessionKey
    run: RunId | None = None


@dataclass(frozen=True, slots=True)
class SessionFork:
    """A new session with a copy of another one's history.

    Args:
        origin: The session that was copied.
        entries: The number of history entries in the copy.
        chat: The name of its console chat; None if its agent does not answer at the console.
    """

    session: SessionKey
    origin: SessionKey
    entries: int
    chat: str | None


@dataclass(frozen=True, slots=True)
class Resized:
    """A lane with its new size. ``before`` is its previous size."""

    before: int
    lane: LaneView


@dataclass(frozen=True, slots=True)
class QueueView:
    """The running, waiting and unanswered messages of a session at one instant (SPEC OPS-4).

    ``live`` is False if no gateway answered: then ``running`` comes from the database, and
    ``waiting`` is empty.
    """

    session: SessionKey
    at: datetime
    live: bool
    running: tuple[RunView, ...]
    waiting: tuple[RunView, ...]
    """The next one first."""
    policy: QueuePolicy | None
    """The queue policy of the session's newest request, None without one."""
    messages: tuple[Unanswered, ...]
    """The oldest messages that have not ended, including those of a run in progress."""
    unanswered: tuple[Unanswered, ...]
    """The newest messages that ended without an answer."""
    unmentioned_at: datetime | None = None
    """When its group last had a message that was not for the bot."""


class Control(WebAccessControl, AuditReader, Protocol):
    """The operator's view. Every method may raise ``StoreUnavailable``.

    The next page of a list starts after the row ``before``: its ``cursor``, or its id where rows
    have numbers.
    """

    @property
    def jobs(self) -> JobService:
        """The job service."""

    @property
    def heartbeats(self) -> HeartbeatService:
        """The heartbeat service."""

    @property
    def settings(self) -> SettingsService:
        """The service that shows and edits settings."""

    @property
    def approvals(self) -> Approvals:
        """The questions of runs about their tool calls, and what their answers allow."""

    @property
    def people(self) -> People:
        """People, groups, and guests of the web chat."""

    @property
    def runs(self) -> Runs:
        """The runs of agents, in progress and stored."""

    @property
    def deliveries(self) -> Deliveries:
        """Outgoing messages, and incoming ones that failed."""

    async def status(self) -> GatewayStatus:
        """Return the gateway's state. Raises ``NoGateway``."""

    async def lanes(self) -> LanesView:
        """Return the running and waiting runs of each lane (LANE-7). Raises ``NoGateway``."""

    async def resize_lane(self, name: LaneName, concurrency: int) -> Resized:
        """Resize a lane until the gateway restarts; no run is cancelled (SPEC LANE-9).

        Raises ``NoGateway``, ``NotFound`` with the names of the lanes, and ``ValueError`` for a
        size that is not from 1 to ``MAX_LANE_SIZE``.
        """

    async def queue(self, key: str) -> QueueView:
        """Return the queue of a session by key or unique part of a key. Raises ``NotFound``."""

    async def stop(self, session: SessionKey, *, everything: bool) -> StopReport:
        """Stop as an owner's ``/stop`` (``everything``: ``/stopall``) in the session's chat does.

        Waiting parts of answers are dropped too. Raises ``NoGateway``.
        """

    async def sessions(
        self,
        *,
        limit: int = 50,
        search: str = "",
        only: SessionFilter = ALL_SESSIONS,
        before: Cursor | None = None,
    ) -> list[Session]:
        """Return sessions, the most recently active first.

        ``search``: a text in the key or in the name of the chat, topic or job, in any case.
        """

    async def session(self, key: str) -> Session:
        """Return a session by key or unique part of a key. Raises ``NotFound``."""

    async def history(self, key: SessionKey, *, limit: int = 200) -> list[StoredEntry]:
        """Return a session's history since its last reset, the oldest entry first."""

    async def send_message(self, key: str, text: str, *, queue: bool) -> Submitted:
        """Send a message to the agent as if it came from the chat of a stored session (CRON-19).

        The reply goes to that chat; in the session of a job it goes to the job's target, or only
        into the history if the job has none. ``key`` is the whole key; ``text`` is never a command.
        Raises ``NotFound``, ``NotAChat``, ``NoGateway``, and ``SessionBusy`` if the session is busy
        and ``queue`` is False.
        """

    async def reset(self, key: SessionKey) -> None:
        """Cancel the running and waiting runs of a session, and start a new history."""

    async def rename(self, key: SessionKey, title: str) -> str:
        """Give a conversation of the console a title; return it without invisible characters.

        "" removes the title. Raises ``NotFound``, ``NotAChat`` for any other session, and
        ``ValueError`` for a title of more than ``MAX_TITLE_CHARS``.
        """

    async def delete(self, key: SessionKey) -> None:
        """Stop a conversation of the console or the web chat, and delete what was said in it.

        Its title is deleted too; the usage of its runs is kept. Raises ``NotFound``, ``NotAChat``
        for any other session, and ``SessionBusy`` if a run does not end in time, or nothing can
        stop it here.
        """

    async def fork(self, key: SessionKey, *, at: str | None = None) -> SessionFork:
        """Copy a session's history, summary and pinned facts into a new session of the console.

        ``at`` is the beginning of the id of a run of the session: the copy is what was remembered
        when it ended, also if it was undone since. The original is unchanged. Raises ``NotFound``,
        and ``NotRewindable`` if there is nothing to copy.
        """

    async def why(self, about: str | None = None) -> Explanation:
        """Explain why something did or did not happen (SPEC OPS-4).

        ``about`` is an id, key or name of a session, chat, person, run, message, job, agent or
        node; None is the whole gateway. Raises ``NotFound``, with the candidates if it is
        ambiguous.
        """

    async def usage(self, query: UsageQuery) -> UsageReport:
        """Return usage of ended runs, and messages (SPEC OPS-1). Raises ``BadUsageQuery``."""

    async def run_times(self, query: UsageQuery) -> list[DayTimes]:
        """Return the days of a query with their runs and how long people waited.

        The groups of the query are ignored. Raises ``BadUsageQuery``.
        """

    def follow(
        self, session: str | None = None, *, after: str | None = None
    ) -> AsyncGenerator[LiveEvent]:
        """Yield the events of runs from now on, starting with ``LiveNow``. Close the iterator.

        With ``after``, the id of an event, the stored events since then come first, or
        ``LiveMissed`` if some are no longer stored; then ``LiveNow``.

        ``session`` (a key or unique part of a key) selects the runs of a session and those that
        are charged to it. A slow reader gets ``LiveMissed``; runs do not wait for readers. Ends
        with its gateway. Raises ``NoGateway`` if a gateway in another process is or becomes
        unreachable, and ``NotFound`` at the first step.
        """

    async def nodes(self) -> NodesView:
        """Return the nodes of this database."""

    async def drain(self, node: str) -> Node:
        """Shut a node down gracefully, as SIGTERM does: runs in progress may finish.

        ``node`` is its id or a unique part of it. Raises ``NotFound`` and ``NodeSilent``.
        """

    async def names(self, keys: Collection[str]) -> dict[str, str]:
        """Return the display names of sessions, by key, and of people (``channel/account/id``).

        While the database is unavailable they are made from the ids alone.
        """
