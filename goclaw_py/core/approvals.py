"""Decisions of people about tool calls of agents (SPEC AGENT-11)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase

from goclaw_py.core.ids import AgentName, ApprovalId, RunId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.pagination import Cursor


class Decision(StrEnum):
    """A decision. The value is part of the data of its button."""

    ONCE = "once"
    SESSION = "session"
    """Allow the tool until the conversation is reset."""
    ALWAYS = "always"
    DENY = "deny"
    HAPPENED = "happened"
    """The interrupted call took effect."""
    AGAIN = "again"
    """Repeat the interrupted call."""
    SKIP = "skip"
    """Do not repeat the interrupted call; whether it took effect stays unknown."""
    EXPIRED = "expired"
    """Nobody answered in time."""
    STOPPED = "stopped"
    """The run that waited was stopped."""

    @property
    def allows(self) -> bool:
        """Whether the call is made."""
        return self in (
            Decision.ONCE,
            Decision.SESSION,
            Decision.ALWAYS,
            Decision.AGAIN,
        )

    @property
    def grants(self) -> bool:
        """Whether later calls of the tool are allowed too."""
        return self in (Decision.SESSION, Decision.ALWAYS)


ABOUT_APPROVAL = (Decision.ONCE, Decision.SESSION, Decision.ALWAYS, Decision.DENY)
"""The possible answers to whether a call is allowed."""

ABOUT_OUTCOME = (Decision.HAPPENED, Decision.AGAIN, Decision.SKIP)
"""The possible answers about the outcome of an interrupted call."""


class OnUncertain(StrEnum):
    """What happens to a call that an interrupted run had started, and whose outcome is unknown."""

    TELL_MODEL = "tell_model"
    ASK_USER = "ask_user"
    RETRY = "retry"


class Permission(StrEnum):
    """Whether an agent may call a tool."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class ApprovalPolicy:
    """The tools whose calls people must approve, as patterns such as ``bank_*``.

    Args:
        ask, deny, allow: A tool that several of them name is denied rather than asked about, and
            asked about rather than allowed. A tool that none of them names is asked about if it has
            side effects, unless there is no pattern at all.
        timeout_s: The time until a call that nobody has approved counts as denied.
        members: Whether everybody in a group may approve, not only owners.
        on_uncertain: See ``OnUncertain``.
    """

    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    timeout_s: float = 86_400.0
    members: bool = False
    on_uncertain: OnUncertain = OnUncertain.TELL_MODEL

    def permission(self, tool: str, *, side_effects: bool) -> Permission:
        """Return whether a tool may be called."""
        if not (self.ask or self.deny or self.allow):
            return Permission.ALLOW
        for permission, patterns in (
            (Permission.DENY, self.deny),
            (Permission.ASK, self.ask),
            (Permission.ALLOW, self.allow),
        ):
            if any(fnmatchcase(tool, pattern) for pattern in patterns):
                return permission
        return Permission.ASK if side_effects else Permission.ALLOW


NO_APPROVALS = ApprovalPolicy()
"""No questions: the default."""


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A question of a run about one of its tool calls.

    Args:
        arguments: JSON text.
        uncertain: The call was interrupted; the question is whether it took effect. Otherwise the
            question is whether the call is allowed.
        timeout_s, members: As in ``ApprovalPolicy``.
    """

    call_id: str
    tool: str
    arguments: str
    uncertain: bool = False
    timeout_s: float = 86_400.0
    members: bool = False

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The possible answers."""
        return ABOUT_OUTCOME if self.uncertain else ABOUT_APPROVAL


@dataclass(frozen=True, slots=True)
class Asker:
    """A person who asked for a run; a ``guest`` is no owner."""

    name: str
    guest: bool


@dataclass(frozen=True, slots=True)
class ApprovalContext:
    """Who asked for a call and for what, as it was known when the question was asked.

    Args:
        people: Those whose messages the run answers, or the person who created the job.
        chat: The chat in words.
        request: The first words of the messages or of the job's prompt, secrets masked.
        job: The title of the job that the run works for, "" if there is none.
        allowed, denied: The numbers of earlier answers about the tool in the session.
        account: The channel and account whose owners may answer, as in ``telegram/default``; "" if
            all owners may.
        said: What the run that answers the chat had said before it asked, secrets masked; "" if a
            child run asks, or there is no chat.
    """

    people: tuple[Asker, ...] = ()
    chat: str = ""
    request: str = ""
    job: str = ""
    allowed: int = 0
    denied: int = 0
    account: str = ""
    said: str = ""


NO_CONTEXT = ApprovalContext()
"""Nothing is known: of questions of earlier releases, and of runs without a chat."""


@dataclass(frozen=True, slots=True)
class Approval:
    """A stored question; ``decision`` is None while it waits for an answer.

    Args:
        run_id: The run that asked.
        session: The conversation that the run belongs to, also that of a child run.
        target: The chat that was asked, None if there was none.
        decided_by: The person who decided, "" if nobody did.
    """

    id: ApprovalId
    run_id: RunId
    session: SessionKey
    agent: AgentName
    request: ApprovalRequest
    target: Target | None
    asked_at: datetime
    expires_at: datetime
    decision: Decision | None = None
    decided_at: datetime | None = None
    decided_by: str = ""
    context: ApprovalContext = NO_CONTEXT

    @property
    def cursor(self) -> Cursor:
        """The position in a list of questions."""
        return Cursor(self.asked_at, (self.id,))


def about_approval(approval: ApprovalId) -> str:
    """Return the mark of the messages that ask a question; see ``OutboundMessage.alert``."""
    return f"approval:{approval}"


@dataclass(frozen=True, slots=True)
class ToolGrant:
    """A tool that an agent may call without a question; ``session`` is None for every session."""

    agent: AgentName
    tool: str
    session: SessionKey | None
    granted_at: datetime
    granted_by: str
