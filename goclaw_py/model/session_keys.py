"""Where a message belongs, and whether its sender may talk."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from goclaw_py.model.ids import AgentName, JobId, RunId, SessionKey
from goclaw_py.model.messages import InboundMessage, PeerKind, Target
from goclaw_py.model.outcomes import Trigger

DEFAULT_ACCOUNT = "default"

_NO_CHATS: Final = frozenset({"cron", "heartbeat", "subagent", "delegate", "api"})
"""What stands in the place of the channel in the keys of sessions that are no chats."""

CHAT_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""The pattern of a chat's name that a person chose; the whole name must match."""


def is_chat_name(text: str) -> bool:
    """Whether a person may call a chat this: the name becomes part of a session key (SPEC IO-7)."""
    return re.fullmatch(CHAT_NAME, text) is not None


def chat_session(agent: AgentName, target: Target, peer: PeerKind) -> SessionKey:
    """The session key of a chat (SPEC IO-7).

    ``agent:<a>:<channel>[.<account>]:<direct|group>:<chat>[:thread:<n>]``. The account ``default``
    has no suffix, so that adding accounts renames nothing.
    """
    channel = target.channel
    if target.account != DEFAULT_ACCOUNT:
        channel = f"{channel}.{target.account}"
    thread = f":thread:{target.thread}" if target.thread is not None else ""
    return SessionKey(f"agent:{agent}:{channel}:{peer.value}:{target.chat}{thread}")


def peer_of(session: SessionKey) -> PeerKind:
    """With whom the chat of a session is; direct for sessions that are no chats."""
    match session.split(":"):
        case [_, _, channel, PeerKind.GROUP.value, _, *_] if channel not in _NO_CHATS:
            return PeerKind.GROUP
        case _:
            return PeerKind.DIRECT


def is_direct_chat(session: SessionKey) -> bool:
    """Whether a session is the chat of one person."""
    match session.split(":"):
        case [_, _, channel, PeerKind.DIRECT.value, _, *_]:
            return channel not in _NO_CHATS
        case _:
            return False


def child_session(agent: AgentName, trigger: Trigger, run: RunId) -> SessionKey:
    """The session key of a subagent or a delegate: each works in one of its own (SPEC IO-7)."""
    return SessionKey(f"agent:{agent}:{trigger.value}:{run}")


def heartbeat_session(agent: AgentName, run: RunId) -> SessionKey:
    """The session key of a heartbeat run: each works in one of its own (SPEC HB-5)."""
    return SessionKey(f"agent:{agent}:heartbeat:{run}")


def job_session(agent: AgentName, job: JobId, run: RunId | None = None) -> SessionKey:
    """The session key of a job, or of one run of it that has a conversation of its own."""
    own = f":{run}" if run is not None else ""
    return SessionKey(f"agent:{agent}:cron:{job}{own}")


def job_of(session: SessionKey) -> JobId | None:
    """The job in the key of its session, the inverse of ``job_session``; None if it is another."""
    match session.split(":"):
        case ["agent", _, "cron", job, *_]:
            return JobId(job)
        case _:
            return None


def agent_of(session: SessionKey) -> AgentName | None:
    """The agent in a session key; None if that has another form."""
    match session.split(":"):
        case ["agent", agent, _, *_]:
            return AgentName(agent)
        case _:
            return None


def announcement_id(run: RunId) -> str:
    """The external id of the message by which a subagent's result comes into its chat.

    There is one for each run, so that a result comes in once, whoever brings it.
    """
    return f"subagent:{run}"


def run_of_announcement(external_id: str) -> RunId:
    """The run whose result a message brings, the inverse of ``announcement_id``."""
    return RunId(external_id.removeprefix("subagent:"))


class AccessDecision(StrEnum):
    """Whether a message is admitted, and why not."""

    ALLOWED = "allowed"
    PAIR = "pair"
    """Its sender gets a pairing code and nothing else."""
    UNKNOWN_GROUP = "unknown_group"
    """Silence; the operator sees that the group is there."""
    UNMENTIONED = "unmentioned"
    """Said in an allowed group, but not to the agent: context for what is."""
    IGNORED = "ignored"


class DirectPolicy(StrEnum):
    """Who may talk to an agent in direct chats (SPEC CHAN-5)."""

    PAIRING = "pairing"
    ALLOWLIST = "allowlist"
    OPEN = "open"
    DISABLED = "disabled"


class GroupPolicy(StrEnum):
    """In which groups an agent listens (SPEC CHAN-5)."""

    ALLOWLIST = "allowlist"
    OPEN = "open"
    DISABLED = "disabled"


class StopPolicy(StrEnum):
    """What a member of a group may stop there; owners and admins stop everything (SPEC CMD-6)."""

    OWN = "own"
    """Runs that answer their own messages, and those messages."""
    ANYONE = "anyone"
    """Everything."""


@dataclass(frozen=True, slots=True)
class AccessRules:
    """The rules of one account of a channel, or of one of its chats.

    Args:
        direct: Who may talk in direct chats.
        allow: Sender ids that may, besides those who were approved.
        group: In which groups the agent listens.
        listed: What the settings say of this group, None if nothing.
        mention: In groups the agent is meant only if it is mentioned.
        trusted: Whoever reaches the channel is the operator.
    """

    direct: DirectPolicy = DirectPolicy.PAIRING
    allow: frozenset[str] = frozenset()
    group: GroupPolicy = GroupPolicy.ALLOWLIST
    listed: bool | None = None
    mention: bool = True
    trusted: bool = False


def access(
    message: InboundMessage,
    rules: AccessRules,
    known: Collection[str],
    *,
    decided: bool | None = None,
) -> AccessDecision:
    """Decide whether a message is taken.

    ``known`` holds the sender ids that were approved. ``decided``: whether the operator allowed or
    denied the chat, None if neither; what the settings say goes before it.
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
        return AccessDecision.ALLOWED if sender in known else AccessDecision.PAIR
    return AccessDecision.IGNORED


def hears_group(rules: AccessRules, *, decided: bool | None) -> bool | None:
    """Whether the agent listens in a group; None if nobody has decided. As for ``access``."""
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
