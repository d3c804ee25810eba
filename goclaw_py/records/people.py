"""Pairing codes, and decisions about access requests (SPEC CHAN-5)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Final, Protocol

from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.ids import JobId
from goclaw_py.core.messages import PeerKind, Sender, Target
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.web_links import WEB, guest_of
from goclaw_py.records.chats import Chat
from goclaw_py.records.nodes import Place

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Without characters that look alike: I and 1, O and 0."""

CODE_LENGTH = 8
VALID_FOR = timedelta(minutes=60)
GROUP_VALID_FOR = timedelta(days=30)
"""How long the buttons that ask owners about a group work."""


PersonId = tuple[str, str, str]
"""Channel, account and id of a person."""


class AccessVerdict(StrEnum):
    """A decision about a person or a group; the value is part of a button's data."""

    APPROVE = "ok"
    """A person becomes an owner; a group is allowed."""
    GUEST = "guest"
    DENY = "no"


def about_request(request_id: str) -> str:
    """Return the ``alert`` of the messages that ask owners about a request."""
    return f"access:{request_id}"


def make_code(choose: Callable[[str], str]) -> str:
    """Return a new code; ``choose`` picks a random character of a text."""
    return "".join(choose(ALPHABET) for _ in range(CODE_LENGTH))


def code_hash(code: str) -> str:
    """Return the stored form of a code. Case and blanks do not matter."""
    return sha256("".join(code.split()).upper().encode()).hexdigest()


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


async def unapproved(
    people: PeopleQuery, chats: Iterable[Chat], allow: Collection[PersonId] = ()
) -> list[Chat]:
    """Return the direct chats of people who are not approved, including denied ones.

    ``allow``: people whom the settings allow to write; a decision about their chat changes nothing.
    """
    left = [
        chat
        for chat in chats
        if chat.peer is PeerKind.DIRECT and (chat.allowed is not None or not chat.gone)
        if (chat.channel, chat.account, chat.chat) not in allow
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


# Names of chats, topics, people and jobs, for people who read about them (SPEC OPS-9).


class NameKind(StrEnum):
    """Where a name comes from."""

    SEEN = "seen"
    """A message had it; deleted when it was not seen for long."""
    GUESSED = "guessed"
    """The title of a conversation, from its first message; stored only where there is no name."""
    GIVEN = "given"
    """The title that a person has given a conversation."""


@dataclass(frozen=True, slots=True)
class SeenName:
    """The name of a chat or a person. ``target.chat`` is its id; it has no thread.

    Titles (``GUESSED``, ``GIVEN``) are kept until they are forgotten.
    """

    target: Target
    name: str
    username: str | None = None
    kind: NameKind = NameKind.SEEN


class NameStore(Protocol):
    """Names as they were seen last. Only ids identify: names may be equal, and change."""

    async def note_names(self, seen: Sequence[SeenName], *, now: datetime) -> None:
        """Store names; of several for one id the last. A guessed one replaces none."""

    async def names(self, targets: Collection[Target], jobs: Collection[JobId] = ()) -> KnownNames:
        """Return the names of chats, people, topics and jobs. Without a name: ``@username``."""

    async def forget_name(self, target: Target) -> None:
        """Delete the name of a chat or person. Processes that may know it get ``PEOPLE``."""
