"""Runs, sessions and their history."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final, Protocol

from goclaw_py.core.ids import (
    AgentName,
    HeartbeatRunId,
    LaneName,
    NodeId,
    OccurrenceId,
    RunId,
    SessionKey,
)
from goclaw_py.core.messages import HistoryEntry, LostDraft, OutboundMessage, Target
from goclaw_py.core.outcomes import Outcome, Reason, Trigger
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.run_events import NO_USAGE, RunNote, Usage
from goclaw_py.core.run_steps import ResponseStep, RunStep
from goclaw_py.core.values import value
from goclaw_py.records.approvals import NewApproval
from goclaw_py.records.filters import (
    ALL_RUNS,
    MOST_RUNS_COUNTED,
    NEWEST_RUNS,
    NEWEST_SESSIONS,
    RunFilter,
    RunOrder,
    RunQuery,
    SessionQuery,
)
from goclaw_py.records.inbox import DroppedMessage
from goclaw_py.records.tool_calls import ToolCall
from goclaw_py.runs.usage_report import (
    MAX_GROUPS,
    DaySpan,
    DayTimes,
    Grouping,
    MessageCounts,
    UsageTable,
)
from goclaw_py.schedule.heartbeat.models import HeartbeatRunEnd
from goclaw_py.schedule.jobs.execution_models import OccurrenceEnd
from goclaw_py.scheduler.models import Mode
from goclaw_py.scheduler.views import RunState, RunView


@dataclass(frozen=True, slots=True)
class SubagentTask:
    """What is needed to continue a background subagent, whose result comes into a chat later.

    ``sender``: the person who requested the run that started it, "" if there is none.
    """

    prompt: str
    label: str
    sender: str = ""


@value(frozen=True, slots=True)
class NewRun:
    """A run that is about to start. ``inbox`` are the ids of the rows that it answers."""

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
    """The session whose daily budget is charged: the parent's for a child run; None: its own."""
    submitted_at: datetime | None = None
    """When it was put into the queue; None: same as ``started_at``."""
    occurrence: OccurrenceId | None = None
    """The job occurrence that this run executes."""
    heartbeat_run: HeartbeatRunId | None = None
    """The heartbeat run that this run executes."""
    dropped: tuple[DroppedMessage, ...] = ()
    """Dropped inbox rows of its session that have not been announced yet (SPEC QUEUE-5)."""
    call_key: str = ""
    """The idempotency key of the tool call that waits for it: it continues an earlier run for the
    same call. "" if no call waits."""
    task: SubagentTask | None = None
    """The task of a background subagent: it continues the earlier run in its session."""
    durable: bool = True
    """Whether the start must survive a crash of the database server. If not, the store may return
    before the disk has it; every later write of the run is durable and includes it."""


@value(frozen=True, slots=True)
class RunStartResult:
    """What a run continues from, read when it was stored as started.

    Args:
        history: The entries since the last reset that ``summary`` does not replace.
        draft: The channel's id of the draft of an earlier run for the same inbox rows, to continue.
        lost: A draft that the earlier run may have posted without learning its id.
        places: The position of each entry of ``history``, for ``Summary.upto``.
        summary: The text that replaces older entries, "" if there is none.
        pinned: Facts that compaction must keep.
        ended: Inbox rows of this run that have ended already; it does not answer them.
        cut_calls: Tool calls of earlier runs for the same rows that were interrupted, in order.
        cut_usage: What those runs have used.
        steps: The steps of those runs, in order. None if one of them cannot be read.
        is_restarted: Whether a crash or a shutdown interrupted the last run for the same rows.
    """

    history: tuple[HistoryEntry, ...] = ()
    draft: str | None = None
    lost: LostDraft | None = None
    places: tuple[int, ...] = ()
    summary: str = ""
    pinned: tuple[str, ...] = ()
    ended: frozenset[int] = frozenset()
    cut_calls: tuple[ToolCall, ...] = ()
    cut_usage: Usage = NO_USAGE
    steps: tuple[RunStep, ...] | None = ()
    is_restarted: bool = False

    @property
    def uncounted(self) -> Usage:
        """Return ``cut_usage``, unless the run of a model replays those runs and counts it."""
        replays = any(isinstance(step, ResponseStep) for step in self.steps or ())
        return NO_USAGE if replays else self.cut_usage


@dataclass(frozen=True, slots=True)
class Summary:
    """A text that replaces the entries of a history up to and including position ``upto``.

    It is stored only if the conversation was not reset since the run started, and if no stored
    summary covers as many entries.
    """

    text: str
    upto: int


@dataclass(frozen=True, slots=True)
class RunSoFar:
    """The part of a run in progress that is stored, so that it survives a crash.

    ``steps`` are new ones; the first is step ``seq`` of the run. A step is stored once.
    """

    tools: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    model: str = ""
    steps: tuple[RunStep, ...] = ()
    seq: int = 0


@value(frozen=True, slots=True)
class RunEnd:
    """The end of a run, and everything that is stored with it in one transaction.

    Args:
        history: Entries to append to the session's history.
        say: Messages to add to the outbox.
        taken_in: Inbox rows that joined the run after its start; they end with it.
        model: The model that answered; "" if it is the one that the run started with.
        tools: The tool calls, in order.
        first_text_at: When the run emitted its first text.
        summary: The new summary of the older part of the session's history.
        occurrence: The end of the job occurrence that the run executed. Another node's occurrence
            raises ``Fenced``; if it has ended already, ``say`` is not stored.
        heartbeat_run: The end of the heartbeat run that the run executed, with the same rules.
        notes: What is unusual about it.
        approvals: Its questions. An interrupted run with the reason ``APPROVAL`` leaves its inbox
            rows waiting for the answers, if it has asked something, or a child run has.
        asked_at: When its prompt was received, for the history; None: when the run was submitted.
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
    approvals: tuple[NewApproval, ...] = ()
    notes: tuple[RunNote, ...] = ()
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A stored run. ``outcome`` is None while it is running.

    Args:
        sender: Who asked for it, or for its parent: ``channel/account/id``, ``api``; None: nobody.
        prompt: The first characters of what it was asked, in lists or without a history; "" if that
            is not known.
        follows: The run that it continues: interrupted to ask a person or by a shutdown, or lost.
    """

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
    sender: str | None = None
    notes: tuple[RunNote, ...] = ()
    prompt: str = ""
    follows: RunId | None = None

    @property
    def cursor(self) -> Cursor:
        """The position in a list of runs."""
        return Cursor(self.started_at, (self.id,))

    def place_in(self, order: RunOrder) -> tuple[Decimal, Cursor]:
        """Return the position in a list in another order, the largest first."""
        ended, used = self.finished_at, self.usage or NO_USAGE
        # Running ones last longer than all others, and of them those that started earlier.
        since = 1e12 - self.started_at.timestamp()
        lasted = since if ended is None else (ended - self.started_at).total_seconds()
        amount = {RunOrder.DURATION: lasted, RunOrder.TOKENS: used.tokens}
        return Decimal(amount.get(order, used.cost_usd or 0)), self.cursor

    def view(self, now: datetime) -> RunView:
        """Return a run in progress as a scheduler would show it."""
        for_s = (now - self.started_at).total_seconds()
        where = self.session, self.agent, self.lane
        return RunView(self.id, *where, RunState.RUNNING, for_s, parent=self.parent)


PROMPT_CHARS: Final = 200
"""The number of characters of a prompt in a list of runs."""


@dataclass(frozen=True, slots=True)
class InterruptedSubagent:
    """The last run of a background subagent that was interrupted.

    Args:
        crashes: How many of its runs a crash has interrupted.
        calls: The tool calls of all of its runs, in order.
    """

    run: StoredRun
    task: SubagentTask
    crashes: int
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class RunDensity:
    """How many runs of a lane started in one of equal parts of a time, from 0, by outcome."""

    lane: LaneName
    part: int
    outcome: Outcome | None
    runs: int


@dataclass(frozen=True, slots=True)
class RunSpan:
    """A run in a timeline: only the fields that drawing many runs needs."""

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
        """The position in a list of runs."""
        return Cursor(self.started_at, (self.id,))


@dataclass(frozen=True, slots=True)
class Session:
    """A stored session. ``owner`` is the node that owns it now, if any."""

    key: SessionKey
    agent: AgentName
    target: Target | None
    created_at: datetime
    last_active_at: datetime
    owner: NodeId | None
    fence: int
    waiting: int
    """The number of inbox rows that wait for a run, or for an approval."""
    entries: int
    """The number of history entries since the last reset."""
    summaries: int = 0
    """How often its history was compacted since the last reset."""
    pinned: tuple[str, ...] = ()
    running: int = 0
    """The number of inbox rows that a run answers."""

    @property
    def cursor(self) -> Cursor:
        """The position in a list of sessions; each activity moves it."""
        return Cursor(self.last_active_at, (self.key,))


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """A history entry: when, by which run, and after how many resets of its conversation."""

    entry: HistoryEntry
    at: datetime
    run_id: RunId | None
    resets: int = 0


class RunStore(Protocol):
    """Runs, sessions and their history."""

    async def begin_run(self, run: NewRun, *, node: NodeId) -> RunStartResult:
        """Store that a run starts, count an attempt for its inbox rows, and return the history.

        Drafts that belong to its inbox rows now belong to this run. The session is created if it
        does not exist, and claimed for ``node`` if no live node owns it. A free session is not
        claimed if one of the inbox rows has ended or an older row waits: another node has owned
        the session since ``node`` read the rows.

        Raises:
            Fenced: The session was not claimed, another live node owns it, all of the inbox rows
                have ended, the job occurrence has ended or is not claimed by ``node``, or the
                background subagent is running or has ended.
            LeaseExpired: ``node`` must renew its own lease before it can claim the session.
        """

    async def note_run(self, run: RunId, known: RunSoFar, *, node: NodeId) -> None:
        """Add steps to a run, and store its progress in place of what was stored before.

        Raises ``Fenced`` if the run no longer belongs to ``node``, or has ended.
        """

    async def finish_run(self, end: RunEnd, *, node: NodeId) -> None:
        """End a run: its row, inbox rows, draft, history and outbox rows, in one transaction.

        Usage, tools and summary are stored for every outcome. Without usage or tools, those that
        ``note_run`` stored stay. Finishing a run again changes nothing.

        With ``Outcome.INTERRUPTED`` the inbox rows stay pending, their attempt is not counted, and
        the draft stays. Rows that joined the run later are unchanged.

        History entries belong to the conversation in which the run started: after a reset in the
        meantime they are stored but not read again. The user's entries have the time of the
        request, the other entries that of the end.

        Raises ``RunNotStarted`` if the run is not stored, and ``Fenced`` if the session's owner
        has changed since the run started.
        """

    async def runs(self, query: RunQuery = NEWEST_RUNS) -> list[StoredRun]:
        """Return runs, the newest first."""

    async def runs_between(
        self,
        since: datetime,
        until: datetime,
        *,
        limit: int = 2000,
        only: RunFilter = ALL_RUNS,
        after: Cursor | None = None,
    ) -> list[RunSpan]:
        """Return runs that were running at some time in ``since <= t < until``, oldest first."""

    async def run_prompts(self, runs: Collection[RunId]) -> dict[RunId, str]:
        """Return the first ``PROMPT_CHARS`` characters of what each run was asked, if stored."""

    async def run_history(self, run: RunId) -> list[StoredEntry]:
        """Return the history entries that a run added, in order, even after a reset."""

    async def find_run(self, prefix: str) -> list[StoredRun]:
        """Return the run with this id, else at most ``FOUND`` runs whose id starts with it.

        Several mean that ``prefix`` is ambiguous.
        """

    async def run_density(
        self, since: datetime, until: datetime, *, parts: int, only: RunFilter = ALL_RUNS
    ) -> list[RunDensity]:
        """Count the runs that started in ``since <= t < until``, in equal parts, in any order."""

    async def run_counts(
        self, query: RunQuery = NEWEST_RUNS, *, most: int = MOST_RUNS_COUNTED
    ) -> dict[Outcome | None, int]:
        """Return how many runs have each outcome (None: in progress), on all pages of a query.

        Its outcome and ``active`` are ignored. Of the runs that have ended, the newest ``most`` are
        counted.
        """

    async def sessions(self, query: SessionQuery = NEWEST_SESSIONS) -> list[Session]:
        """Return sessions, the most recently active first."""

    async def session(self, key: SessionKey) -> Session | None:
        """Return a session, or None if it is not stored."""

    async def history(
        self, key: SessionKey, *, limit: int = 200, whole: bool = False
    ) -> list[StoredEntry]:
        """Return the newest entries since the last reset, or (``whole``) of all, in order."""

    async def reset_session(self, key: SessionKey, *, now: datetime) -> None:
        """Start a new history. Older entries stay stored, but no run reads them again."""

    async def pin(self, key: SessionKey, pinned: Collection[str], *, run: RunId) -> bool:
        """Replace the pinned facts of a conversation.

        Returns False and changes nothing if the conversation was reset since the run started, or
        the run has ended.
        """

    async def spent(
        self,
        *,
        since: datetime,
        payer: SessionKey | None = None,
        agent: AgentName | None = None,
    ) -> Usage:
        """Return the usage of ended runs that started at ``since`` or later.

        ``payer`` and ``agent`` select the runs charged to a session and the runs of an agent.
        """

    async def usage(
        self, by: Collection[Grouping], span: DaySpan, *, limit: int = MAX_GROUPS
    ) -> UsageTable:
        """Return the usage of ended runs that started on the days of ``span``, in groups.

        Each run counts once. A child run counts for the person and the job of its parent.
        """

    async def run_times(self, span: DaySpan) -> list[DayTimes]:
        """Return each day of ``span``, in order, with its runs and the times that were waited."""

    async def message_counts(self, span: DaySpan) -> MessageCounts:
        """Return the messages received (no subagent results) and delivered, deleted ones too."""

    async def interrupted_subagents(self, *, since: datetime) -> list[InterruptedSubagent]:
        """Return background subagents whose last run is lost or interrupted.

        It ended at ``since`` or later, and no inbox row of the account of its target has the
        external id ``session_keys.announcement_id``. Those that wait for the answer of a person, or
        were stopped meanwhile, are left out. At most 100, the oldest first.
        """

    async def spawned(self, call_key: str) -> RunId | None:
        """Return the first run of the background subagent that a tool call has started, if any."""

    async def choose_mode(self, key: SessionKey, mode: Mode | None) -> None:
        """Store the queue mode that was chosen in a chat; None restores that of the settings.

        Does nothing if the session does not exist.
        """

    async def note(
        self, key: SessionKey, entry: HistoryEntry, *, rows: Collection[int], now: datetime
    ) -> None:
        """Add an entry to a session's history outside of any run, and end ``rows``.

        Adds nothing if none of the rows is pending.
        """
