"""Runs, sessions and their history."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from goclaw_py.heartbeat.models import HeartbeatRunEnd
from goclaw_py.jobs.execution_models import OccurrenceEnd
from goclaw_py.model.ids import (
    AgentName,
    HeartbeatRunId,
    LaneName,
    NodeId,
    OccurrenceId,
    RunId,
    SessionKey,
)
from goclaw_py.model.messages import LostDraft, OutboundMessage, Target
from goclaw_py.model.outcomes import Outcome, Reason, Trigger
from goclaw_py.model.pagination import Cursor
from goclaw_py.model.run_events import Usage
from goclaw_py.ports.agent import HistoryEntry
from goclaw_py.ports.store.inbox import DroppedMessage
from goclaw_py.runs.usage_report import MAX_GROUPS, DaySpan, Grouping, UsageTable
from goclaw_py.scheduler.models import Mode


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run about to start. ``inbox`` are the rows it answers."""

    id: RunId
    session: SessionKey
    agent: AgentName
    trigger: Trigger
    lane: LaneName
    inbox: tuple[int, ...]
    target: Target | None
    started_at: datetime
    parent: RunId | None = None
    model: str = ""
    payer: SessionKey | None = None
    """The session whose daily budget it uses: of a child that of its parent; None: its own."""
    submitted_at: datetime | None = None
    """When it was asked for; None: when it started."""
    occurrence: OccurrenceId | None = None
    """The time of a job for which it works."""
    heartbeat_run: HeartbeatRunId | None = None
    """The heartbeat run for which it works."""
    dropped: tuple[DroppedMessage, ...] = ()
    """Rows of its session that were dropped before it; nobody has been told yet (SPEC QUEUE-5)."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that a run has called. ``ok`` is None if it never came back.

    ``arguments`` is their JSON text; it and ``result`` may be cut.
    """

    name: str
    arguments: str
    started_at: datetime
    side_effects: bool = True
    seconds: float | None = None
    ok: bool | None = None
    result: str = ""


@dataclass(frozen=True, slots=True)
class RunStartResult:
    """A run that has begun.

    ``draft`` is the channel's id of the draft that an earlier run for the same messages left, to go
    on with. ``lost``: that run may have posted one whose id nobody knows.

    Args:
        history: The entries since the last reset that ``summary`` does not stand for.
        places: Where each of them is, for ``Summary.upto``.
        summary: What stands for older entries, "" if nothing does.
        pinned: What the conversation must not forget.
        ended: Those of its inbox rows that were done before; it does not answer them.
        cut_calls: What earlier runs for the same had called before a crash or a shutdown cut them,
            the first call first.
    """

    history: tuple[HistoryEntry, ...] = ()
    draft: str | None = None
    lost: LostDraft | None = None
    places: tuple[int, ...] = ()
    summary: str = ""
    pinned: tuple[str, ...] = ()
    ended: frozenset[int] = frozenset()
    cut_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """A text that stands for the entries of a history up to and including the one at ``upto``.

    It is kept only if the conversation was not reset since the run began, and if no other summary
    stands for as much by now.
    """

    text: str
    upto: int


@dataclass(frozen=True, slots=True)
class RunSoFar:
    """What is stored of a run in progress, so that it survives the process."""

    tools: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    model: str = ""


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended and everything that is stored with it in one transaction.

    ``taken_in`` are inbox rows that joined the run after it had begun; they end with it.

    Args:
        model: The model that has answered, "": the one that it began with.
        tools: What it has called, in order.
        first_text_at: When it said its first word.
        summary: What stands for the older part of its session's history from now on.
        occurrence: The end of what it worked for, in the same transaction. ``Fenced`` if that is
            another node's by now. If it has ended already, ``say`` falls out.
        heartbeat_run: The same of the heartbeat run that it worked for.
    """

    id: RunId
    outcome: Outcome
    finished_at: datetime
    reason: Reason | None = None
    error: str | None = None
    history: tuple[HistoryEntry, ...] = ()
    say: tuple[OutboundMessage, ...] = ()
    usage: Usage | None = None
    taken_in: tuple[int, ...] = ()
    model: str = ""
    tools: tuple[ToolCall, ...] = ()
    first_text_at: datetime | None = None
    summary: Summary | None = None
    occurrence: OccurrenceEnd | None = None
    heartbeat_run: HeartbeatRunEnd | None = None


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A stored run. ``outcome`` is None while it works."""

    id: RunId
    session: SessionKey
    agent: AgentName
    trigger: Trigger
    lane: LaneName
    node: NodeId
    started_at: datetime
    finished_at: datetime | None
    outcome: Outcome | None
    reason: Reason | None
    error: str | None
    usage: Usage | None
    model: str
    parent: RunId | None
    payer: SessionKey
    submitted_at: datetime
    target: Target | None = None
    first_text_at: datetime | None = None
    tools: tuple[ToolCall, ...] = ()
    occurrence: OccurrenceId | None = None

    @property
    def cursor(self) -> Cursor:
        """Its place in a list."""
        return Cursor(self.started_at, (self.id,))


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are meant; None stands for all."""

    agent: AgentName | None = None
    trigger: Trigger | None = None
    outcome: Outcome | None = None


ALL_RUNS = RunFilter()


@dataclass(frozen=True, slots=True)
class RunSpan:
    """A run as a line in time: as little of it as a picture of many needs."""

    id: RunId
    session: SessionKey
    agent: AgentName
    lane: LaneName
    trigger: Trigger
    outcome: Outcome | None
    parent: RunId | None
    submitted_at: datetime
    started_at: datetime
    finished_at: datetime | None
    cost_usd: Decimal | None

    @property
    def cursor(self) -> Cursor:
        """Its place in a list."""
        return Cursor(self.started_at, (self.id,))


@dataclass(frozen=True, slots=True)
class Session:
    """A stored session. ``owner`` is the node that works on it now, if any."""

    key: SessionKey
    agent: AgentName
    target: Target | None
    created_at: datetime
    last_active_at: datetime
    owner: NodeId | None
    fence: int
    waiting: int
    """Inbox rows that are not done."""
    entries: int
    """History entries since the last reset."""
    summaries: int = 0
    """How often its history was compacted since the last reset."""
    pinned: tuple[str, ...] = ()

    @property
    def cursor(self) -> Cursor:
        """Its place in a list, which every activity in it changes."""
        return Cursor(self.last_active_at, (self.key,))


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """A history entry with when and by which run it was written."""

    entry: HistoryEntry
    at: datetime
    run_id: RunId | None


class RunStore(Protocol):
    """Runs, sessions and their history."""

    async def begin_run(self, run: NewRun, *, node: NodeId) -> RunStartResult:
        """Record that a run starts, count an attempt for its inbox rows, return the history.

        A draft that belongs to one of its inbox rows is this run's from now on.

        Claims the session for ``node`` if it is free, and creates it if it does not exist; but for
        inbox rows of which one has ended, or before which others wait, it claims none: somebody
        else has had the session since they were taken up. Raises ``Fenced`` then, if another live
        node owns it, if the run works for a time of a job that is not claimed by ``node``, or has
        ended, or if all of its inbox rows have; ``LeaseExpired`` if ``node`` would have to claim it
        and has to renew its own lease first.
        """

    async def note_run(self, run: RunId, known: RunSoFar, *, node: NodeId) -> None:
        """Store what is known of a run that works; what was stored before gives way.

        Raises ``Fenced`` if it is not this node's any more, or has ended.
        """

    async def finish_run(self, end: RunEnd, *, node: NodeId) -> None:
        """End a run: its row, inbox rows, draft, history and outbox rows, in one transaction.

        Usage, tools and summary are stored whatever the outcome is; where nothing is given, usage
        and tools stay as ``note_run`` stored them.
        With ``Outcome.INTERRUPTED`` the inbox rows stay pending and the attempt is taken back; rows
        that it had taken in stay as they were: no attempt was counted for them. Its draft stays.
        The history entries belong to the conversation in which the run
        began: after a reset meanwhile they are stored but not read any more. What the user said
        has the time at which the run was asked for, the rest that of its end. Finishing a run twice
        changes nothing the second time.

        Raises ``RunNotStarted`` for a run that is not known, and ``Fenced`` if the session has
        changed hands since the run began.
        """

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

    async def run_history(self, run: RunId) -> list[StoredEntry]:
        """What a run has added to the history of its session, in order, even after a reset."""

    async def find_run(self, prefix: str) -> list[StoredRun]:
        """Runs whose id starts with ``prefix``; at most two, enough to see that it is ambiguous."""

    async def sessions(self, *, limit: int = 50, before: Cursor | None = None) -> list[Session]:
        """Sessions, the last active first."""

    async def session(self, key: SessionKey) -> Session | None:
        """One session."""

    async def history(self, key: SessionKey, *, limit: int = 200) -> list[StoredEntry]:
        """The newest ``limit`` entries since the last reset, oldest first."""

    async def reset_session(self, key: SessionKey, *, now: datetime) -> None:
        """Begin a fresh history. Older entries stay stored but are read no more."""

    async def pin(self, key: SessionKey, pinned: Collection[str], *, run: RunId) -> bool:
        """Keep what a conversation must not forget, in place of what was kept.

        False, and nothing happens, if the conversation was reset since the run began, or the run
        has ended.
        """

    async def spent(
        self,
        *,
        since: datetime,
        payer: SessionKey | None = None,
        agent: AgentName | None = None,
    ) -> Usage:
        """What the runs that started at ``since`` or later have used, as far as they have ended.

        Only those that ``payer`` pays for, and only those of ``agent``, where these are given.
        """

    async def usage(
        self, by: Collection[Grouping], span: DaySpan, *, limit: int = MAX_GROUPS
    ) -> UsageTable:
        """What the runs that started in some days have used, as far as they have ended, in groups.

        Each run counts once: for who asked for it, and for the job that it works for, both also
        through the run that is its parent.
        """

    async def unannounced(self, *, since: datetime) -> list[StoredRun]:
        """Lost and interrupted subagents, ended since then, whose chat waits for word of them.

        They have a target, and no inbox row of its account has the external id
        ``routing.announcement_id``. At most 100, the oldest first.
        """

    async def choose_mode(self, key: SessionKey, mode: Mode | None) -> None:
        """Keep the queue mode that was chosen in a chat; None goes back to that of the settings.

        Nothing happens for a session that does not exist.
        """

    async def note(
        self, key: SessionKey, entry: HistoryEntry, *, rows: Collection[int], now: datetime
    ) -> None:
        """Add something to a session's history outside of any run and end ``rows`` with it.

        Nothing is added if none of the rows was pending.
        """
