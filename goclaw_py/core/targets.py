"""Targets as people write them (``telegram.work:-100123:7``), routes, and owners of jobs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from goclaw_py.core.ids import Owner
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.session_keys import DEFAULT_ACCOUNT

TARGET_FORM: Final = "channel[.account]:chat[:thread], such as telegram:12345"
"""The form in words, for errors."""

_NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
_ID = r"[^\s:\x00-\x1f\x7f]{1,128}"
_TARGET = re.compile(rf"({_NAME})(?:\.({_NAME}))?:({_ID})(?::({_ID}))?")


def parse_target(text: str) -> Target | None:
    """Parse a target; None if it has another form."""
    found = _TARGET.fullmatch(text)
    if found is None:
        return None
    channel, account, chat, thread = found.groups()
    return Target(channel, account or DEFAULT_ACCOUNT, chat, thread)


def target_text(target: Target) -> str:
    """Return a target as text. The account ``default`` is left out, as in session keys (IO-7)."""
    account = "" if target.account == DEFAULT_ACCOUNT else f".{target.account}"
    thread = "" if target.thread is None else f":{target.thread}"
    return f"{target.channel}{account}:{target.chat}{thread}"


NOBODY: Final = "no owner has spoken to this agent where it could answer"


@dataclass(frozen=True, slots=True)
class Route:
    """The current destination of an alert, or of a job's result.

    Args:
        target: None: there is none.
        detail: How it was determined, for people.
        problem: Why a message would not arrive, "" if it would.
    """

    target: Target | None
    detail: str = ""
    problem: str = ""


class Maker(StrEnum):
    """The kind of maker of a job."""

    OPERATOR = "operator"
    MODEL = "model"
    PERSON = "person"
    """A person in a chat, with a button."""


def owner_of(target: Target, peer: PeerKind) -> Owner:
    """Return the owner of jobs that are created in a chat: the chat, with all its threads.

    In a direct chat that is the person; in a group, everybody who may talk there.
    """
    account = "" if target.account == DEFAULT_ACCOUNT else f".{target.account}"
    return Owner(f"{target.channel}{account}:{peer.value}:{target.chat}")


def chat_of(owner: Owner) -> tuple[Target, PeerKind] | None:
    """Return the chat of an owner, without a thread; None if the owner is not a chat.

    The inverse of ``owner_of``.
    """
    match owner.split(":", 2):
        case [place, PeerKind.DIRECT.value | PeerKind.GROUP.value as kind, chat]:
            channel, dot, account = place.partition(".")
            account = account if dot else DEFAULT_ACCOUNT
            target, peer = Target(channel, account, chat), PeerKind(kind)
            known = channel and account and chat and owner_of(target, peer) == owner
            return (target, peer) if known else None
    return None
