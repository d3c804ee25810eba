"""Who may talk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from goclaw_py.model.messages import PeerKind, Sender
from goclaw_py.model.pagination import Cursor
from goclaw_py.model.pairing_codes import AccessVerdict
from goclaw_py.ports.store.chats import Chat
from goclaw_py.ports.store.nodes import Place


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
    """Somebody unknown who wrote, or a group in which somebody did.

    Args:
        sender: Who asks; of a group its id and name.
        code_hash: All that is stored of the code; "" for a group, which has none.
        id: What buttons name it by; it permits nothing by itself.
        chat: Where it asks: a direct chat, or the group.
    """

    channel: str
    account: str
    sender: Sender
    code_hash: str
    created_at: datetime
    expires_at: datetime
    id: str
    chat: str
    peer: PeerKind = PeerKind.DIRECT

    @property
    def is_group(self) -> bool:
        """Whether a group asks, not a person."""
        return self.peer is PeerKind.GROUP


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
        """Requests that are still valid, of people and of groups, oldest first."""

    async def approve(self, code_hash: str, *, guest: bool, now: datetime) -> Person | None:
        """Turn a valid request into a person and remove it; None if there is no such request.

        The first person of a channel account becomes owner, and so does everybody else unless
        ``guest``. They are told, and what they wrote is in the inbox, to be answered in one turn;
        the owners who were asked see that it is decided. All of that is one transaction. Sends
        ``Notice.PEOPLE``, ``Notice.OUTBOX`` and, if they wrote something, ``Notice.INBOX``.
        """

    async def decide(
        self, request_id: str, verdict: AccessVerdict, *, place: Place, by: str, now: datetime
    ) -> PairingRequest | None:
        """Carry out an owner's decision about a request of ``place``, and remove the request.

        ``by`` is the owner's name, for other owners. An approval is as by ``approve``, but a guest
        is never the first owner. Whoever is denied is told nothing and may not ask again.

        Returns the request. None if there is no such request any more; nothing happens to one that
        has expired.
        """

    async def revoke(self, channel: str, account: str, sender_id: str) -> bool:
        """Forget a person. False if there was none."""
