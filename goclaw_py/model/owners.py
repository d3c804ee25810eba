"""Owners and makers of jobs."""

from __future__ import annotations

from enum import StrEnum

from goclaw_py.model.ids import Owner
from goclaw_py.model.messages import PeerKind, Target
from goclaw_py.model.session_keys import DEFAULT_ACCOUNT


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
