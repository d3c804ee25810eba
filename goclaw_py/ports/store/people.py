"""Who may talk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol

from goclaw_py.model.messages import PeerKind, Sender
from goclaw_py.model.pagination import Cursor
from goclaw_py.model.pairing_codes import AccessVerdict
from goclaw_py.model.web_links import WEB, guest_of
from goclaw_py.ports.store.chats import Chat
from goclaw_py.ports.store.nodes import Place

_PAGE: Final = 1000
"""The number of people that are read at once."""


class Standing(StrEnum):
    """The role of an approved person."""

    OWNER = "owner"
    GUEST = "guest"


@dataclass(frozen=True, slots=True)
class Person:
    """A person who may talk to the agent through a channel account."""

    channel: str
    account: str
    sender: Sender
    standing: Standing
    approved_at: datetime

    @property
    def cursor(self) -> Cursor:
        """The position in a list of people."""
        return Cursor(self.approved_at, (self.channel, self.account, self.sender.id))


@dataclass(frozen=True, slots=True)
class PairingRequest:
    """A request for access: of an unknown person who wrote, or of a group.

    Args:
        sender: The person; for a group, its id and name.
        code_hash: The hash of the pairing code; "" for a group, which has no code.
        id: The id used in buttons; it grants nothing by itself.
        chat: The direct chat or group.
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
        """Whether a group requests access, not a person."""
        return self.peer is PeerKind.GROUP


class PeopleQuery(Protocol):
    """Returns a page of approved people, as ``PeopleStore.people`` does."""

    async def __call__(self, *, limit: int, before: Cursor | None) -> list[Person]:
        """Return people before a position, the newest first."""


async def unapproved(people: PeopleQuery, chats: Iterable[Chat]) -> list[Chat]:
    """Return the direct chats of people who are not approved, including denied ones."""
    left = [
        chat
        for chat in chats
        if chat.peer is PeerKind.DIRECT and (chat.allowed is not None or not chat.gone)
    ]
    before: Cursor | None = None
    while left:
        page = await people(limit=_PAGE, before=before)
        approved = {(one.channel, one.account, one.sender.id) for one in page}
        left = [one for one in left if (one.channel, one.account, _person(one)) not in approved]
        if len(page) < _PAGE:
            break
        before = page[-1].cursor
    return left


def _person(chat: Chat) -> str:
    """Return the id of the person of a direct chat."""
    return guest_of(chat.chat) if chat.channel == WEB else chat.chat


class PeopleStore(Protocol):
    """Approved people and access requests (SPEC CHAN-5)."""

    async def people(
        self, *, limit: int | None = None, before: Cursor | None = None
    ) -> list[Person]:
        """Return approved people, the newest first."""

    async def pairing_requests(self, *, now: datetime) -> list[PairingRequest]:
        """Return valid requests of people and groups, the oldest first."""

    async def approve(self, code_hash: str, *, guest: bool, now: datetime) -> Person | None:
        """Approve the person of a valid request, and remove it; None if there is no such request.

        With ``guest`` the person becomes a guest, also as the first of the account; others become
        owners. In the same transaction the person is notified, their messages go into the
        inbox, to be answered in one turn, and the messages that asked the owners show the
        decision. Sends ``Notice.PEOPLE``, ``Notice.OUTBOX``, and ``Notice.INBOX`` for messages.
        """

    async def decide(
        self, request_id: str, verdict: AccessVerdict, *, place: Place, by: str, now: datetime
    ) -> PairingRequest | None:
        """Apply an owner's decision about a request of ``place``, and remove the request.

        ``by`` is the owner's name, shown to other owners. An approval works as ``approve``. A
        denied person is not notified and cannot ask again.

        Returns the request, or None if it is not stored. An expired request is not changed.
        """

    async def revoke(self, channel: str, account: str, sender_id: str) -> bool:
        """Remove a person. Returns False if they are not stored."""
