"""The database, as the runtime sees it.

The caller passes every instant, timezone-aware in UTC; no implementation reads a clock. Every
method is one transaction. Any method may raise ``StoreUnavailable``; methods that write on behalf
of a node raise ``Fenced`` if the row belongs to another node by now.

**Leases.** A node renews one lease, its own (``nodes.lease_until``). Sessions, outbox rows and
named leases store the node as ``owner`` and increase ``fence`` with each change of owner, so a
claim is live exactly as long as its node is (docs/adr/0004).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum
from typing import Protocol

from goclaw_py.records.approvals import WAITING_APPROVALS, ApprovalQuery, ApprovalStore, NewApproval
from goclaw_py.records.audit import ALL_ENTRIES, AuditEntry, AuditFilter, AuditStore
from goclaw_py.records.background import BackgroundStore, Unmentioned, UnmentionedRow
from goclaw_py.records.chats import (
    ALL_ACTIVITY,
    NO_ACCOUNTS,
    ActivityQuery,
    Aside,
    Chat,
    ChatAccounts,
    ChatStore,
    FixedAccounts,
    LastActivity,
    ListedOwner,
    SeenChat,
    Topic,
)
from goclaw_py.records.filters import (
    ALL_RUNS,
    MOST_RUNS_COUNTED,
    MOST_RUNS_ORDERED,
    MOST_RUNS_SEARCHED,
    NEWEST_RUNS,
    NEWEST_SESSIONS,
    RunFilter,
    RunOrder,
    RunQuery,
    SessionQuery,
    SessionState,
)
from goclaw_py.records.heartbeats import HeartbeatStore
from goclaw_py.records.inbox import (
    ALL_DEAD_LETTERS,
    AcceptedMessages,
    DeadLetter,
    DeadLetterCounts,
    DeadLetterQuery,
    DroppedMessage,
    InboxKind,
    InboxRow,
    InboxState,
    InboxStore,
    IncomingState,
    NewInbox,
    NewPairing,
    Stops,
    Unanswered,
)
from goclaw_py.records.incidents import Incident, IncidentStore
from goclaw_py.records.jobs import (
    AHEAD_AT_ONCE,
    MOST_COUNTED,
    GatewayJobStore,
    JobOrder,
    JobPage,
    JobQuery,
    JobStore,
)
from goclaw_py.records.nodes import (
    CallStore,
    InterruptedRun,
    LaneGrant,
    LaneShare,
    LaneStore,
    MembershipStore,
    Node,
    NodeCall,
    NodeState,
    NodeStore,
    Place,
    RecoveryReport,
    Renewed,
)
from goclaw_py.records.outbox import (
    ALL_MESSAGES,
    ALL_OUTGOING,
    ChatsDue,
    Draft,
    DraftStore,
    MessageFilter,
    OutboxQuery,
    OutboxRow,
    OutboxState,
    OutboxStore,
)
from goclaw_py.records.people import (
    NameKind,
    NameStore,
    PairingRequest,
    PeopleStore,
    Person,
    SeenName,
    Standing,
    unapproved,
)
from goclaw_py.records.rewind import LastTurn, RewindStore, StoredStep
from goclaw_py.records.runs import (
    PROMPT_CHARS,
    InterruptedSubagent,
    NewRun,
    RunDensity,
    RunEnd,
    RunSoFar,
    RunSpan,
    RunStartResult,
    RunStore,
    Session,
    StoredEntry,
    StoredRun,
    SubagentTask,
    Summary,
)
from goclaw_py.records.settings import NewSettingEdit, SettingEdit, SettingStore
from goclaw_py.records.tokens import SignIn, SignInMethod, SignInStore, Token, TokenStore
from goclaw_py.records.tool_calls import ToolCall
from goclaw_py.records.upkeep import RetentionReport, UpkeepStore
from goclaw_py.records.web_links import WebLink, WebLinkStore
from goclaw_py.records.work import NewWork, StoredWorkItem, WorkState, WorkStore
from goclaw_py.scheduler.views import Backlog

__all__ = [
    "AHEAD_AT_ONCE",
    "ALL_ACTIVITY",
    "ALL_DEAD_LETTERS",
    "ALL_ENTRIES",
    "ALL_MESSAGES",
    "ALL_OUTGOING",
    "ALL_RUNS",
    "MOST_COUNTED",
    "MOST_RUNS_COUNTED",
    "MOST_RUNS_ORDERED",
    "MOST_RUNS_SEARCHED",
    "NEWEST_RUNS",
    "NEWEST_SESSIONS",
    "NO_ACCOUNTS",
    "PROMPT_CHARS",
    "WAITING_APPROVALS",
    "AcceptedMessages",
    "ActivityQuery",
    "ApprovalQuery",
    "ApprovalStore",
    "Aside",
    "AuditEntry",
    "AuditFilter",
    "AuditStore",
    "BackgroundStore",
    "CallStore",
    "Chat",
    "ChatAccounts",
    "ChatStore",
    "ChatsDue",
    "DeadLetter",
    "DeadLetterCounts",
    "DeadLetterQuery",
    "Draft",
    "DraftStore",
    "DroppedMessage",
    "FixedAccounts",
    "GatewayJobStore",
    "HeartbeatStore",
    "InboxKind",
    "InboxRow",
    "InboxState",
    "InboxStore",
    "Incident",
    "IncidentStore",
    "IncomingState",
    "InterruptedRun",
    "InterruptedSubagent",
    "JobOrder",
    "JobPage",
    "JobQuery",
    "JobStore",
    "LaneGrant",
    "LaneShare",
    "LaneStore",
    "LastActivity",
    "LastTurn",
    "ListedOwner",
    "MembershipStore",
    "MessageFilter",
    "NameKind",
    "NameStore",
    "NewApproval",
    "NewInbox",
    "NewPairing",
    "NewRun",
    "NewSettingEdit",
    "NewWork",
    "Node",
    "NodeCall",
    "NodeState",
    "NodeStore",
    "Notice",
    "OutboxQuery",
    "OutboxRow",
    "OutboxState",
    "OutboxStore",
    "PairingRequest",
    "PeopleStore",
    "Person",
    "Place",
    "RecoveryReport",
    "Renewed",
    "RetentionReport",
    "RewindStore",
    "RunDensity",
    "RunEnd",
    "RunFilter",
    "RunOrder",
    "RunQuery",
    "RunSoFar",
    "RunSpan",
    "RunStartResult",
    "RunStore",
    "SeenChat",
    "SeenName",
    "Session",
    "SessionQuery",
    "SessionState",
    "SettingEdit",
    "SettingStore",
    "SignIn",
    "SignInMethod",
    "SignInStore",
    "Standing",
    "Stops",
    "Store",
    "StoredEntry",
    "StoredRun",
    "StoredStep",
    "StoredWorkItem",
    "SubagentTask",
    "Summary",
    "Token",
    "TokenStore",
    "ToolCall",
    "Topic",
    "Unanswered",
    "Unmentioned",
    "UnmentionedRow",
    "UpkeepStore",
    "WebLink",
    "WebLinkStore",
    "WorkState",
    "WorkStore",
    "unapproved",
]


class Notice(StrEnum):
    """The table that changed; a hint that replaces waiting for the next poll (SPEC DB-3)."""

    INBOX = "goclaw_inbox"
    OUTBOX = "goclaw_outbox"
    PEOPLE = "goclaw_people"
    CRON = "goclaw_cron"
    NODES = "goclaw_nodes"
    LANES = "goclaw_lanes"
    SUBAGENTS = "goclaw_subagents"
    """A background subagent may continue."""
    SETTINGS = "goclaw_settings"
    """A setting was edited."""


class Store(
    NodeStore,
    CallStore,
    LaneStore,
    InboxStore,
    BackgroundStore,
    RunStore,
    ApprovalStore,
    RewindStore,
    DraftStore,
    OutboxStore,
    PeopleStore,
    WebLinkStore,
    SignInStore,
    TokenStore,
    ChatStore,
    NameStore,
    IncidentStore,
    GatewayJobStore,
    WorkStore,
    HeartbeatStore,
    SettingStore,
    AuditStore,
    UpkeepStore,
    Protocol,
):
    """The whole database."""

    async def backlog(self, served: Collection[Place] | None = None) -> Backlog:
        """Return the numbers of unfinished rows of all nodes.

        ``served`` are the places that nodes have: other places with unfinished messages are
        ``Backlog.unserved``. None: they are not counted.
        """

    async def ping(self) -> None:
        """Raise ``StoreUnavailable`` if the database does not answer."""

    def on_notice(self, callback: Callable[[Notice], None]) -> None:
        """Call ``callback`` in the event loop for each notice from any process."""

    async def close(self) -> None:
        """Close all connections."""
