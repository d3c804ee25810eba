"""The tables of a database in memory, and the operations that all parts of the store share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce

from goclaw_py.core.errors import Fenced
from goclaw_py.core.ids import AgentName, NodeId, RunId, SessionKey
from goclaw_py.core.messages import InboundMessage, LostDraft, OutboundMessage, Target
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_events import NO_USAGE, Usage
from goclaw_py.core.run_steps import RunStep
from goclaw_py.records import (
    AuditEntry,
    Chat,
    DroppedMessage,
    InboxKind,
    InboxRow,
    Incident,
    LastActivity,
    NewInbox,
    NewRun,
    Node,
    Notice,
    OutboxRow,
    OutboxState,
    PairingRequest,
    Person,
    RunEnd,
    RunSoFar,
    SeenName,
    SettingEdit,
    SignIn,
    StoredEntry,
    StoredWorkItem,
    Token,
    ToolCall,
    Topic,
    Unanswered,
    UnmentionedRow,
    WebLink,
)
from goclaw_py.scheduler.models import Mode
from goclaw_py.store import rules
from tests.support.memory_store import sql_rules
from tests.support.memory_store.approval_tables import ApprovalTables
from tests.support.memory_store.cluster.tables import CallTable, LeaseRecord, PlaceTable
from tests.support.memory_store.heartbeat.tables import HeartbeatTables
from tests.support.memory_store.jobs.tables import JobTables

CUT = (Outcome.LOST, Outcome.INTERRUPTED)
"""The outcomes of runs that later runs may continue."""
ExternalKey = tuple[str, str, str]
"""Channel, account, external id."""
ChatKey = tuple[str, str, str]
"""Channel, account, chat."""
PersonKey = tuple[str, str, str]
"""Channel, account, sender id."""


@dataclass(frozen=True, slots=True)
class HistoryRecord:
    """A row of ``history``."""

    id: int
    epoch: int
    """That of its session when it was said; ``-1 - epoch`` once it was undone."""
    entry: StoredEntry
    undone_at: datetime | None = None


@dataclass(slots=True)
class SessionRecord:
    """A row of ``sessions`` with its history."""

    key: SessionKey
    agent: AgentName
    target: Target | None
    created_at: datetime
    last_active_at: datetime
    owner: NodeId | None = None
    fence: int = 0
    epoch: int = 0
    history: list[HistoryRecord] = field(default_factory=list)
    pending: dict[int, InboxRecord] = field(default_factory=dict)
    """Inbox rows that have not ended."""
    unanswered: list[InboxRecord] = field(default_factory=list)
    """Messages that ended without an answer."""
    active: set[RunId] = field(default_factory=set)
    """Runs that have not ended."""
    mode: Mode | None = None
    """The queue mode that was chosen in its chat."""
    heard: LastActivity | None = None
    """The last activity of approved people."""
    summary: str = ""
    summarized_upto: int = 0
    """The last history entry that the summary covers."""
    summaries: int = 0
    pinned: tuple[str, ...] = ()

    @property
    def claim(self) -> rules.Claim:
        """Its owner and its epoch."""
        return rules.Claim(self.owner, self.fence, self.epoch)

    def current(self) -> list[HistoryRecord]:
        """The history since the last reset."""
        return [record for record in self.history if record.epoch == self.epoch]


@dataclass(slots=True)
class InboxRecord:
    """A row of ``inbox``."""

    id: int
    message: InboundMessage
    session: SessionKey
    agent: AgentName
    kind: InboxKind
    received_at: datetime
    attempts: int = 0
    run_id: RunId | None = None
    last_run: RunId | None = None
    finished_at: datetime | None = None
    outcome: Outcome | None = None
    reason: Reason | None = None
    dropped: DroppedMessage | None = None
    dismissed: bool = False
    is_parked: bool = False
    """It waits for the answer to a question of its run."""
    joined: int | None = None

    @property
    def is_unanswered(self) -> bool:
        """Whether it is a message that ended without an answer."""
        ended = self.outcome not in (None, Outcome.COMPLETED)
        return ended and self.kind is InboxKind.MESSAGE

    def row(self, mode: Mode | None = None) -> InboxRow:
        """Return the row as callers see it; ``mode`` is that of its session."""
        return InboxRow(
            id=self.id,
            message=self.message,
            session=self.session,
            agent=self.agent,
            kind=self.kind,
            attempts=self.attempts,
            received_at=self.received_at,
            mode=mode,
            dropped=self.dropped,
            joined=self.joined,
            last_run=self.last_run,
        )

    def unanswered(self) -> Unanswered:
        asking = self.last_run if self.is_parked else None
        ended = self.finished_at, self.outcome, self.reason
        return Unanswered(self.id, self.message, self.run_id, self.received_at, *ended, asking)


@dataclass(slots=True)
class RunRow:
    """A row of ``runs``. ``end`` is None while it is running."""

    new: NewRun
    node: NodeId
    fence: int
    epoch: int
    asked: sql_rules.RunOrigin = sql_rules.NOBODY
    end: RunEnd | None = None
    known: RunSoFar = field(default_factory=RunSoFar)
    """The progress stored by ``note_run``."""
    steps: list[RunStep] = field(default_factory=list)
    follows: RunId | None = None
    is_stopped: bool = False


@dataclass(slots=True)
class DraftRecord:
    """A row of ``drafts``. ``inbox`` are the messages that its run answers."""

    run_id: RunId
    target: Target
    inbox: frozenset[int]
    opened_at: datetime
    opened_by: RunId
    after: str | None
    external_id: str | None = None

    @property
    def lost(self) -> LostDraft | None:
        """How to search for it if its id is unknown."""
        return LostDraft(self.opened_by, self.after) if self.external_id is None else None


@dataclass(slots=True)
class OutboxRecord:
    """A row of ``outbox``."""

    id: int
    message: OutboundMessage
    session: SessionKey | None
    created_at: datetime
    next_attempt_at: datetime
    state: OutboxState = OutboxState.WAITING
    attempts: int = 0
    possible_duplicate: bool = False
    owner: NodeId | None = None
    fence: int = 0
    finished_at: datetime | None = None
    external_id: str | None = None
    error: str | None = None

    @property
    def chat(self) -> ChatKey:
        target = self.message.target
        return target.channel, target.account, target.chat

    def row(self) -> OutboxRow:
        """Return the row as callers see it."""
        return OutboxRow(
            id=self.id,
            message=self.message,
            session=self.session,
            state=self.state,
            attempts=self.attempts,
            possible_duplicate=self.possible_duplicate,
            fence=self.fence,
            created_at=self.created_at,
            next_attempt_at=self.next_attempt_at,
            sent_at=self.finished_at if self.state is OutboxState.SENT else None,
            external_id=self.external_id,
            error=self.error,
        )


class MemoryDatabase:
    """A database that several ``MemoryStore`` objects share, as processes share one."""

    def __init__(self) -> None:
        self.nodes: dict[NodeId, Node] = {}
        self.leases: dict[str, LeaseRecord] = {}
        self.calls = CallTable()
        self.lane_permits = PlaceTable()
        self.sessions: dict[SessionKey, SessionRecord] = {}
        self.inbox: dict[int, InboxRecord] = {}
        self.known: dict[ExternalKey, InboxRecord] = {}
        self.pending: dict[int, InboxRecord] = {}
        self.approvals = ApprovalTables()
        self.unmentioned: dict[ExternalKey, UnmentionedRow] = {}
        self.last_inbox_id = self.last_outbox_id = self.last_audit_entry = 0
        self.last_unmentioned_id = self.last_history_id = self.last_setting_edit = 0
        self.moved: dict[SessionKey, SessionKey] = {}
        self.drafts: dict[RunId, DraftRecord] = {}
        self.chats: dict[ChatKey, Chat] = {}
        self.topics: dict[Target, Topic] = {}
        self.names: dict[Target, tuple[SeenName, datetime]] = {}
        self.incidents: dict[str, Incident] = {}
        self.runs: dict[RunId, RunRow] = {}
        self.outbox: dict[int, OutboxRecord] = {}
        self.deleted_messages: list[tuple[datetime, AgentName | None, bool]] = []
        self.unsent: dict[ChatKey, dict[int, OutboxRecord]] = {}
        self.people: dict[PersonKey, Person] = {}
        self.requests: dict[PersonKey, PairingRequest] = {}
        self.kept: dict[PersonKey, list[NewInbox]] = {}  # of senders with an access request
        self.web_links: dict[str, WebLink] = {}
        self.sign_ins: dict[str, tuple[SignIn, str, str]] = {}
        self.tokens: dict[str, tuple[Token, str]] = {}
        self.hearers: dict[object, list[Callable[[Notice], None]]] = {}
        self.cron = JobTables()
        self.heartbeat_runs = HeartbeatTables()
        self.work: dict[int, StoredWorkItem] = {}
        self.setting_edits: list[SettingEdit] = []
        self.audit: list[AuditEntry] = []

    def present_key(self, key: SessionKey) -> SessionKey:
        """Return the present key of a session whose chat may have a new id."""
        return key if key in self.sessions else self.moved.get(key, key)

    def notify(self, *notices: Notice) -> None:
        """Call all listeners in the event loop, after the present step."""
        loop = asyncio.get_running_loop()
        for notice in notices:
            for hear in (hear for hearers in self.hearers.values() for hear in hearers):
                loop.call_soon(hear, notice)

    def nodes_by_age(self) -> list[Node]:
        """Return all nodes, the oldest first."""
        return sorted(self.nodes.values(), key=lambda node: (node.started_at, node.id))

    def is_live(self, node: NodeId | None, now: datetime) -> bool:
        """Return whether other nodes must not take what this node owns."""
        return node is not None and node in self.nodes and self.nodes[node].is_live(now)

    def claim(self, session: SessionRecord, node: NodeId, now: datetime) -> bool:
        """Claim a session without a live owner; return whether its owner changed."""
        # After an outage no lease is valid, and then two nodes would take sessions from each other.
        if session.owner == node or not self.is_live(node, now) or self.is_live(session.owner, now):
            return False
        left = session.pending and session.owner in self.nodes  # and to be recovered first
        if left or any(self.runs[run].node != node for run in session.active):
            return False
        session.owner = node
        session.fence += 1
        return True

    def end_row(
        self, row: InboxRecord, outcome: Outcome, reason: Reason | None, now: datetime
    ) -> None:
        """End an inbox row."""
        session = self.sessions[row.session]
        self.pending.pop(row.id, None)
        session.pending.pop(row.id, None)
        row.outcome, row.reason, row.finished_at = outcome, reason, now
        if row.is_unanswered:
            session.unanswered.append(row)

    def rows_of(self, runs: Collection[RunId]) -> list[InboxRecord]:
        """Return the pending rows of some runs."""
        rows = [
            (run, self.pending.get(row_id)) for run in runs for row_id in self.runs[run].new.inbox
        ]
        return [row for run, row in rows if row is not None and row.run_id == run]

    def continued(self, run: RunId | None) -> list[RunRow]:
        """Return ``run`` and those before it, as far as a later run continues them, oldest first.

        The caller of a tool does not know how a run for the call ended, so that one is continued.
        A run that was cancelled for a further message had another prompt.
        """
        chain: list[RunRow] = []
        while run is not None and (record := self.runs.get(run)) is not None:
            if record.end is None or record.end.reason in (Reason.MERGED, Reason.NOT_CONTINUED):
                break
            if record.end.outcome not in CUT and not record.new.call_key:
                break
            chain.insert(0, record)
            run = record.follows
        return chain

    def interrupted_work(self, run: RunId | None) -> tuple[tuple[ToolCall, ...], Usage]:
        """Return the tool calls and the usage of a run and its predecessors, if interrupted."""
        calls: tuple[ToolCall, ...] = ()
        used = NO_USAGE
        while run is not None and (record := self.runs.get(run)) is not None:
            if record.end is not None and record.end.outcome in CUT:
                calls = (*record.end.tools, *calls)
                used = used.plus(record.end.usage or NO_USAGE)
            run = record.follows
        return calls, used

    def free_rows(self, runs: Collection[RunId], *, attempts_back: int) -> None:
        """Make the pending rows of some runs free, so that they run again."""
        for row in self.rows_of(runs):
            row.run_id = None
            row.attempts = max(0, row.attempts - attempts_back)

    def remember(self, session: SessionRecord, epoch: int, entries: Iterable[StoredEntry]) -> None:
        """Append entries to one epoch of a session's history."""
        for entry in entries:
            self.last_history_id += 1
            session.history.append(HistoryRecord(self.last_history_id, epoch, entry))

    def move_unmentioned(self, old: SessionKey, new: SessionKey | None) -> None:
        """Move group messages without a mention to another session, or delete them."""
        for key, row in list(self.unmentioned.items()):
            if row.session == old and new is None:
                del self.unmentioned[key]
            elif row.session == old and new is not None:
                self.unmentioned[key] = replace(row, session=new)

    def close_abandoned_drafts(self, now: datetime) -> None:
        """Close the drafts of ended runs without a waiting message."""
        abandoned = [
            draft
            for draft in self.drafts.values()
            if self.runs[draft.run_id].end is not None and not self.is_wanted(draft)
        ]
        for draft in abandoned:
            del self.drafts[draft.run_id]
            run = self.runs[draft.run_id]
            left = draft.external_id or LostDraft(draft.opened_by, draft.after)
            closing = rules.closing(draft.run_id, draft.target, left, self._became_of(draft))
            self.enqueue([closing], session=run.new.session, now=now)

    def is_wanted(self, draft: DraftRecord) -> bool:
        """Return whether another run will answer a draft's messages."""
        return any(
            row in self.pending or (row in self.inbox and self.inbox[row].is_parked)
            for row in draft.inbox
        )

    def _became_of(self, draft: DraftRecord) -> Outcome:
        """Return the outcome of a draft's messages, or of its run if it had none."""
        rows = [self.inbox[row] for row in sorted(draft.inbox) if row in self.inbox]
        outcomes = [row.outcome for row in rows if row.outcome]
        if Outcome.CANCELLED in outcomes:
            return Outcome.CANCELLED
        end = self.runs[draft.run_id].end
        assert end is not None
        return outcomes[-1] if outcomes else end.outcome

    def end_run(self, run: RunRow, end: RunEnd) -> None:
        """End a run; usage and tools that its end lacks stay as noted."""
        known = run.known
        run.end = replace(
            end,
            tools=end.tools or known.tools,
            usage=end.usage or known.usage,
            model=end.model or known.model,
        )
        self.sessions[run.new.session].active.discard(run.new.id)
        self.heartbeat_runs.is_over(run.new)

    def end_runs(
        self, cut: Iterable[RunRow], outcome: Outcome, reason: Reason, now: datetime, error: str
    ) -> list[RunRow]:
        """End runs, the oldest first; as cancelled if their messages have ended by a stop."""
        for run in (cut := list(cut)):
            rows = (self.inbox.get(row) for row in sorted(run.new.inbox))
            mine = (row for row in rows if row is not None and row.run_id == run.new.id)
            stopped = next((row for row in mine if row.outcome is Outcome.CANCELLED), None)
            end = RunEnd(run.new.id, outcome, now, reason, error or None)
            if stopped is not None:
                end = replace(end, outcome=Outcome.CANCELLED, reason=stopped.reason)
            elif run.is_stopped:
                end = replace(end, outcome=Outcome.CANCELLED, reason=Reason.STOPPED)
            self.end_run(run, end)
        return sorted(cut, key=lambda run: (run.new.started_at, run.new.id))

    def free(self, nodes: Collection[NodeId]) -> None:
        """Release everything that these nodes own, remove them, and notify the others."""
        sending = [row for line in self.unsent.values() for row in line.values() if row.owner]
        freed = [row for row in sending if row.owner in nodes]
        for row in freed:
            row.state = OutboxState.WAITING
            row.owner = None
            row.possible_duplicate = True
            row.fence += 1
        owned: Iterable[SessionRecord | LeaseRecord] = (
            *self.sessions.values(),
            *self.leases.values(),
        )
        for record in owned:
            if record.owner in nodes:
                record.owner = None
        for node in nodes:
            del self.nodes[node]
        self.calls.remove(nodes)
        self.lane_permits.remove(nodes)
        notices = (Notice.INBOX, Notice.CRON, Notice.SUBAGENTS, Notice.NODES)
        self.notify(*notices, *([Notice.OUTBOX] if freed else []))

    def enqueue(
        self, messages: Sequence[OutboundMessage], *, session: SessionKey | None, now: datetime
    ) -> None:
        """Add messages to the outbox and notify the senders."""
        for message in messages:
            self.last_outbox_id += 1
            row = OutboxRecord(self.last_outbox_id, message, session, now, now)
            self.outbox[row.id] = row
            self.unsent.setdefault(row.chat, {})[row.id] = row
            self.heartbeat_runs.queued(row.id, message)
        if messages:
            self.notify(Notice.OUTBOX)

    def check_alive(self, node: NodeId) -> None:
        """Raise ``Fenced`` if a node has expired and was recovered."""
        if node not in self.nodes:
            raise Fenced(f"node {node} is not alive")

    def attempts(self, runs: Iterable[RunId]) -> int:
        """Count the runs that are attempts: all except those that a shutdown interrupted."""
        ends = [self.runs[run].end for run in runs]
        return sum(end is None or end.outcome is not Outcome.INTERRUPTED for end in ends)

    def used(self, runs: Iterable[RunId]) -> Usage | None:
        """Return the usage of some runs together; None if all are unknown."""
        ends = [self.runs[run].end for run in runs]
        used = [end.usage for end in ends if end is not None and end.usage is not None]
        return reduce(Usage.plus, used) if used else None

    def began(self, runs: Iterable[RunId]) -> datetime | None:
        """Return when the first of some runs started."""
        return min((self.runs[run].new.started_at for run in runs), default=None)


class MemoryPart:
    """The base class of the parts of ``MemoryStore``."""

    def __init__(self, database: MemoryDatabase) -> None:
        self._db = database
