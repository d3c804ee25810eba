"""Where a message belongs, and whether its sender may talk."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.core.messages import InboundMessage, PeerKind, Target

DEFAULT_ACCOUNT = "default"

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


class Access(StrEnum):
    """What becomes of a message."""

    ALLOWED = "allowed"
    PAIR = "pair"
    """Its sender gets a pairing code and nothing else."""
    IGNORED = "ignored"


class DirectPolicy(StrEnum):
    """Who may talk to an agent in direct chats (SPEC CHAN-5)."""

    PAIRING = "pairing"
    ALLOWLIST = "allowlist"
    OPEN = "open"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class AccessRules:
    """The rules of one account of a channel. ``allow`` holds sender ids.

    ``trusted``: whoever reaches the channel is the operator.
    """

    direct: DirectPolicy = DirectPolicy.PAIRING
    allow: frozenset[str] = frozenset()
    trusted: bool = False


def access(message: InboundMessage, rules: AccessRules, known: Collection[str]) -> Access:
    """Decide whether a message is taken. ``known`` holds the sender ids that were approved.

    Groups are silent until they are allowed (SPEC CHAN-5).
    """
    if rules.trusted:
        return Access.ALLOWED
    if message.peer is not PeerKind.DIRECT or rules.direct is DirectPolicy.DISABLED:
        return Access.IGNORED
    sender = message.sender.id
    if rules.direct is DirectPolicy.OPEN or sender in rules.allow:
        return Access.ALLOWED
    if rules.direct is DirectPolicy.PAIRING:
        return Access.ALLOWED if sender in known else Access.PAIR
    return Access.IGNORED
