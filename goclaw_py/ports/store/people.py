"""Who may talk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from goclaw_py.core.messages import PeerKind, Sender
from goclaw_py.core.pages import Cursor
from goclaw_py.ports.store.chats import Chat


class Standing(StrEnum):
    """What a known person may do."""

    OWNER = "owner"
    GUEST = "guest"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who may talk to the agent on this account of a channel."""

    channel: str
    account: str
    sender: Sender
    standing: Standing
    approved_at: datetime

    @property
    def cursor(self) -> Cursor:
        """Their place in a list."""
        return Cursor(self.approved_at, (self.channel, self.account, self.sender.id))


@dataclass(frozen=True, slots=True)
class PairingRequest:
    """Somebody unknown who wrote. The code itself is stored only as ``code_hash``."""

    channel: str
    account: str
    sender: Sender
    code_hash: str
    created_at: datetime
    expires_at: datetime


def unapproved(people: Iterable[Person], chats: Iterable[Chat]) -> list[Chat]:
    """Direct chats in which somebody talks, or is denied, whom nobody has approved."""
    approved = {(one.channel, one.account, one.sender.id) for one in people}
    return [
        chat
        for chat in chats
        if chat.peer is PeerKind.DIRECT
        and (chat.channel, chat.account, chat.chat) not in approved
        and (chat.allowed is not None or not chat.gone)
    ]


class PeopleStore(Protocol):
    """Who may talk (SPEC CHAN-5)."""

    async def people(
        self, *, limit: int | None = None, before: Cursor | None = None
    ) -> list[Person]:
        """Everybody who was approved, the newest first."""

    async def pairing_requests(self, *, now: datetime) -> list[PairingRequest]:
        """Requests that are still valid, oldest first."""

    async def approve(self, code_hash: str, *, guest: bool, now: datetime) -> Person | None:
        """Turn a valid request into a person and remove it; None if there is no such request.

        The first person of a channel account becomes owner, and so does everybody else unless
        ``guest``.
        """

    async def revoke(self, channel: str, account: str, sender_id: str) -> bool:
        """Forget a person. False if there was none."""
