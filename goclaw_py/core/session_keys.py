"""Session keys, and the decision whether a message is admitted."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from goclaw_py.core.ids import AgentName, JobId, RunId, SessionKey
from goclaw_py.core.messages import InboundMessage, PeerKind, Target
from goclaw_py.core.outcomes import Trigger

DEFAULT_ACCOUNT = "default"

CONSOLE: Final = "console"
"""The channel of terminals, and of the chat of the dashboard."""

_NO_CHATS: Final = frozenset({"cron", "heartbeat", "subagent", "delegate", "api"})
"""The words in place of a channel in the keys of sessions that are not chats."""

CHAT_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""The pattern of a chat name that a person chooses; the whole name must match."""


FIRST_CHAT: Final = "browser"
"""The conversation that the dashboard shows if none is named."""

_MADE_NAME: Final = rf"{FIRST_CHAT}|fork-.*|[0-9]{{8}}-[0-9]{{6}}-[0-9a-f]{{4}}"

MAX_TITLE_CHARS: Final = 80
"""The longest title of a conversation."""


def is_chat_name(text: str) -> bool:
    """Return whether a person may use this chat name; it becomes part of a session key (IO-7)."""
    return re.fullmatch(CHAT_NAME, text) is not None


def console_chat(session: SessionKey) -> str:
    """Return the name of a conversation of the console; "" for any other session."""
    chat = chat_of(session)
    is_console = chat is not None and (chat.channel, chat.account) == (CONSOLE, DEFAULT_ACCOUNT)
    return chat.chat if chat is not None and is_console else ""


def is_made_name(chat: str) -> bool:
    """Return whether a program has named a chat of the console, so that it needs a title."""
    return re.fullmatch(_MADE_NAME, chat) is not None


def chat_session(agent: AgentName, target: Target, peer: PeerKind) -> SessionKey:
    """Return the session key of a chat (SPEC IO-7).

    ``agent:<a>:<channel>[.<account>]:<direct|group>:<chat>[:thread:<n>]``. The account ``default``
    has no suffix, so that adding accounts renames nothing.
    """
    channel = target.channel
    if target.account != DEFAULT_ACCOUNT:
        channel = f"{channel}.{target.account}"
    thread = f":thread:{target.thread}" if target.thread is not None else ""
    return SessionKey(f"agent:{agent}:{channel}:{peer.value}:{target.chat}{thread}")


def chat_of(session: SessionKey) -> Target | None:
    """Return the chat in a session key, the inverse of ``chat_session``; None if there is none."""
    match session.split(":", 4):
        case ["agent", _, channel, "direct" | "group", rest] if channel not in _NO_CHATS:
            name, _, account = channel.partition(".")
            chat, _, thread = rest.partition(":thread:")
            return Target(name, account or DEFAULT_ACCOUNT, chat, thread or None)
        case _:
            return None


def peer_of(session: SessionKey) -> PeerKind:
    """Return whether a session's chat is direct or a group; direct if it is not a chat."""
    match session.split(":"):
        case [_, _, channel, PeerKind.GROUP.value, _, *_] if channel not in _NO_CHATS:
            return PeerKind.GROUP
        case _:
            return PeerKind.DIRECT


def is_direct_chat(session: SessionKey) -> bool:
    """Return whether a session is a direct chat."""
    match session.split(":"):
        case [_, _, channel, PeerKind.DIRECT.value, _, *_]:
            return channel not in _NO_CHATS
        case _:
            return False


def child_session(agent: AgentName, trigger: Trigger, run: RunId) -> SessionKey:
    """Return the key of a subagent's or delegate's own session (SPEC IO-7)."""
    return SessionKey(f"agent:{agent}:{trigger.value}:{run}")


def first_run(session: SessionKey) -> RunId:
    """Return the run for which a child's session was made, the inverse of ``child_session``."""
    return RunId(session.split(":", 3)[-1])


def heartbeat_session(agent: AgentName, run: RunId) -> SessionKey:
    """Return the key of a heartbeat run's own session (SPEC HB-5)."""
    return SessionKey(f"agent:{agent}:heartbeat:{run}")


def job_session(agent: AgentName, job: JobId, run: RunId | None = None) -> SessionKey:
    """Return the session key of a job, or with ``run`` of one isolated run of it."""
    own = f":{run}" if run is not None else ""
    return SessionKey(f"agent:{agent}:cron:{job}{own}")


def job_of(session: SessionKey) -> JobId | None:
    """Return the job in a session key, the inverse of ``job_session``; None if there is none."""
    match session.split(":"):
        case ["agent", _, "cron", job, *_]:
            return JobId(job)
        case _:
            return None


def agent_of(session: SessionKey) -> AgentName | None:
    """Return the agent in a session key; None if the key has another form."""
    match session.split(":"):
        case ["agent", agent, _, *_]:
            return AgentName(agent)
        case _:
            return None


def announcement_id(run: RunId) -> str:
    """Return the external id of the message that brings a subagent's result into its chat.

    ``run``: its first run. So the result comes in once, whichever run and node brings it.
    """
    return f"subagent:{run}"


def run_of_announcement(external_id: str) -> RunId:
    """Return the subagent whose result a message brings, the inverse of ``announcement_id``."""
    return RunId(external_id.removeprefix("subagent:"))


class AccessDecision(StrEnum):
    """Whether a message is admitted, and if not, why."""

    ALLOWED = "allowed"
    PAIR = "pair"
    """The sender gets a pairing code and nothing else."""
    UNKNOWN_GROUP = "unknown_group"
    """No response; operators see the group."""
    UNMENTIONED = "unmentioned"
    """A message of an allowed group that is not for the agent: context for later messages."""
    IGNORED = "ignored"


class DirectPolicy(StrEnum):
    """The people who may talk to an agent in direct chats (SPEC CHAN-5)."""

    PAIRING = "pairing"
    ALLOWLIST = "allowlist"
    OPEN = "open"
    DISABLED = "disabled"


class GroupPolicy(StrEnum):
    """The groups in which an agent listens (SPEC CHAN-5)."""

    ALLOWLIST = "allowlist"
    OPEN = "open"
    DISABLED = "disabled"


class StopPolicy(StrEnum):
    """What a group member may stop there; owners and administrators may stop everything (CMD-6)."""

    OWN = "own"
    """Their own messages, and the runs that answer them."""
    ANYONE = "anyone"
    """Everything."""


@dataclass(frozen=True, slots=True)
class AccessRules:
    """The access rules of a channel account, or of one of its chats.

    Args:
        direct: Who may talk in direct chats.
        allow: Sender ids that may talk without approval.
        group: The groups in which the agent listens.
        listed: The settings' decision about this group, None if there is none.
        mention: Whether the agent answers in groups only if it is mentioned.
        trusted: Whether everybody on the channel is the operator.
        invited: Whether only people whom the operator has invited may talk; others get no code.
    """

    direct: DirectPolicy = DirectPolicy.PAIRING
    allow: frozenset[str] = frozenset()
    group: GroupPolicy = GroupPolicy.ALLOWLIST
    listed: bool | None = None
    mention: bool = True
    trusted: bool = False
    invited: bool = False


def access(
    message: InboundMessage,
    rules: AccessRules,
    known: Collection[str],
    *,
    decided: bool | None = None,
) -> AccessDecision:
    """Decide whether a message is admitted.

    ``known`` contains the ids of approved senders. ``decided`` is the operator's decision about the
    chat, None if there is none; the settings have priority.
    """
    if rules.trusted:
        return AccessDecision.ALLOWED
    if message.peer is PeerKind.GROUP:
        return _group_access(message, rules, decided=decided)
    if rules.direct is DirectPolicy.DISABLED:
        return AccessDecision.IGNORED
    sender = message.sender.id
    if sender in rules.allow:
        return AccessDecision.ALLOWED
    if decided is False:
        return AccessDecision.IGNORED
    if rules.direct is DirectPolicy.OPEN:
        return AccessDecision.ALLOWED
    if rules.direct is DirectPolicy.PAIRING:
        stranger = AccessDecision.IGNORED if rules.invited else AccessDecision.PAIR
        return AccessDecision.ALLOWED if sender in known else stranger
    return AccessDecision.IGNORED


def hears_group(rules: AccessRules, *, decided: bool | None) -> bool | None:
    """Return whether the agent listens in a group; None if undecided. See ``access``."""
    if rules.trusted:
        return True
    if rules.group is GroupPolicy.DISABLED:
        return False
    allowed = decided if rules.listed is None else rules.listed
    return True if allowed is None and rules.group is GroupPolicy.OPEN else allowed


def _group_access(
    message: InboundMessage, rules: AccessRules, *, decided: bool | None
) -> AccessDecision:
    heard = hears_group(rules, decided=decided)
    if heard is None:
        return AccessDecision.UNKNOWN_GROUP
    if not heard:
        return AccessDecision.IGNORED
    return (
        AccessDecision.ALLOWED
        if message.addressed or not rules.mention
        else AccessDecision.UNMENTIONED
    )
