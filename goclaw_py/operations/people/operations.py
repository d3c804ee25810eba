"""What operators do with people, groups, and guests of the web chat (SPEC CHAN-5, CHAN-13)."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from goclaw_py.core.actors import Least
from goclaw_py.core.errors import AlreadyInvited, NotFound
from goclaw_py.core.messages import PeerKind, Sender, Target
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.session_keys import DirectPolicy, chat_of
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.web_links import (
    LINK_LASTS,
    SECRET_BYTES,
    WEB,
    WEB_PLACE,
    guest_name,
    guest_of,
    join_path,
    searched_part,
    secret_hash,
)
from goclaw_py.operations.declare import operation
from goclaw_py.operations.people import changes
from goclaw_py.records import (
    ActivityQuery,
    Chat,
    LastActivity,
    Person,
    Place,
    SessionQuery,
    Store,
)
from goclaw_py.records.people import PersonId, code_hash
from goclaw_py.runs.session_settings import ChatRules

log = logging.getLogger(__name__)

_SEARCHED: Final = 1000
"""The number of sessions among which earlier conversations of a guest are searched."""


@dataclass(frozen=True, slots=True)
class PairingApplicant:
    """A person who requests access with a pairing code.

    The hash of the code is left out: codes are short enough to be found from it (SPEC SEC-2).
    """

    channel: str
    account: str
    sender: Sender
    created_at: datetime
    expires_at: datetime
    chat: str
    """Their direct chat: denied by ``People.allow_chat``."""


@dataclass(frozen=True, slots=True)
class DirectAccess:
    """Who may write to an account in direct chats by the settings alone.

    Args:
        direct: The policy for people who are not in ``allow``.
        allow: People who need no approval; they are owners. Some may have never written.
    """

    channel: str
    account: str
    direct: DirectPolicy
    allow: tuple[Sender, ...]

    def ids(self) -> set[PersonId]:
        """Return the people in ``allow``."""
        return {(self.channel, self.account, one.id) for one in self.allow}


@dataclass(frozen=True, slots=True)
class WebGuest:
    """A person who is invited to the web chat (SPEC CHAN-13).

    Args:
        link_until: When the unused link expires, which may be past; None if there is none.
        browsers: The number of browsers that are signed in.
    """

    name: str
    invited_at: datetime
    link_until: datetime | None
    browsers: int


@dataclass(frozen=True, slots=True)
class WebInvitation:
    """A personal link to the web chat. ``path`` contains its secret, which is not stored."""

    name: str
    path: str = field(repr=False)
    expires_at: datetime


def no_request(code: str) -> NotFound:
    """Return the error for a pairing code that nobody has."""
    text = f"no valid pairing request has the code {code!r}; codes last 60 minutes"
    return NotFound(text, hint="; see: goclaw people list")


class People:
    """Every method may raise ``StoreUnavailable``, and ``NoGateway`` from another process."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        chat_rules: Callable[[], Mapping[Place, ChatRules]] = dict,
    ) -> None:
        self._store = store
        self._clock = clock
        self._chat_rules = chat_rules

    @operation("POST /api/people/revoke", Least.ADMIN, changes.REVOKE)
    async def revoke(
        self, channel: str, account: str, sender_id: str, *, forget: bool = False
    ) -> None:
        """Remove a person, with ``forget`` also the stored name. Raises ``NotFound``.

        The browsers of a guest of the web chat are signed out.
        """
        if forget:
            await self._store.forget_name(Target(channel, account, sender_id))
        if not await self._store.revoke(channel, account, sender_id):
            text = f"nobody with the id {sender_id!r} is known on {channel}/{account}"
            raise NotFound(text, hint="; see: goclaw people list")

    @operation("GET /api/people/requests", Least.VIEWER, former="/api/pairing")
    async def requests(self, *, code: str | None = None) -> list[PairingApplicant]:
        """Return the people who request access with a pairing code; only the one with ``code``."""
        return [
            PairingApplicant(
                one.channel, one.account, one.sender, one.created_at, one.expires_at, one.chat
            )
            for one in await self._store.pairing_requests(now=self._clock.now())
            if one.peer is PeerKind.DIRECT and (code is None or one.code_hash == code_hash(code))
        ]

    @operation(
        "POST /api/people/approve", Least.ADMIN, changes.APPROVE, former="/api/pairing/approve"
    )
    async def approve(self, code: str, *, guest: bool) -> Person:
        """Approve the person with this pairing code. Raises ``NotFound``."""
        person = await self._store.approve(code_hash(code), guest=guest, now=self._clock.now())
        if person is None:
            raise no_request(code)
        return person

    @operation("GET /api/heard", Least.VIEWER)
    async def activity(
        self, *, limit: int = 50, before: Cursor | None = None
    ) -> list[LastActivity]:
        """Return the last activity of approved people per chat and thread, newest first."""
        return await self._store.activity(ActivityQuery(limit=limit, before=before))

    @operation("GET /api/people/access", Least.VIEWER)
    async def direct_access(self) -> list[DirectAccess]:
        """Return whom the settings allow to write, by account, with their stored names."""
        rules = {
            place: one.access
            for place, one in sorted(self._chat_rules().items())
            if not one.access.trusted and not one.access.invited
        }
        targets = [Target(*place, one) for place, own in rules.items() for one in sorted(own.allow)]
        names = (await self._store.names(targets)).targets if targets else {}
        return [
            DirectAccess(
                *place,
                own.direct,
                tuple(
                    Sender(one.chat, names.get(one, ""))
                    for one in targets
                    if (one.channel, one.account) == place
                ),
            )
            for place, own in rules.items()
        ]

    @operation("GET /api/chats", Least.VIEWER)
    async def chats(self, *, limit: int = 1000, before: Cursor | None = None) -> list[Chat]:
        """Return stored chats, the most recently seen first (SPEC CHAN-5)."""
        return await self._store.chats(limit=limit, before=before)

    @operation("POST /api/chats/allow", Least.ADMIN, changes.ALLOW_CHAT)
    async def allow_chat(self, channel: str, account: str, chat: str, *, allowed: bool) -> None:
        """Allow or deny a chat; one that is not stored is stored as a group."""
        now = self._clock.now()
        await self._store.allow_chat(channel, account, chat, allowed=allowed, now=now)
        facts = {"channel": channel, "account": account, "chat": chat, "allowed": allowed}
        log.info("chat_access_changed", extra=facts)

    @operation("GET /api/web/guests", Least.VIEWER)
    async def guests(self) -> list[WebGuest]:
        """Return the people who are invited to the web chat, the most recently invited first.

        ``revoke`` removes them.
        """
        links, now = await self._store.web_links(), self._clock.now()
        found = []
        for person in await self._store.people():
            if (person.channel, person.account) != WEB_PLACE:
                continue
            own = [link for link in links if link.name == person.sender.id]
            unused = [link.expires_at for link in own if link.used_at is None]
            browsers = sum(link.used_at is not None and link.expires_at > now for link in own)
            link_until = unused[0] if unused else None
            found.append(WebGuest(person.sender.id, person.approved_at, link_until, browsers))
        return found

    @operation("POST /api/web/guests", Least.ADMIN, changes.INVITE)
    async def invite(self, name: str, *, again: bool = False) -> WebInvitation:
        """Invite a person to the web chat, as guest, by a link that one browser can use.

        ``again``: another link for the same person, instead of unused ones, also after they were
        removed: they see their earlier conversations. Raises ``AlreadyInvited`` if the name was
        used before, with ``again`` ``NotFound`` if it was not, and ``ValueError`` for a wrong name.
        """
        name = guest_name(name)
        is_known = await self._is_known_guest(name)
        if again and not is_known:
            raise NotFound(f"nobody called {name} is invited; see: goclaw people web list")
        now = self._clock.now()
        secret, until = secrets.token_urlsafe(SECRET_BYTES), now + LINK_LASTS
        stored = secret_hash(secret)
        # A person who was removed has left conversations: they are for nobody else of this name.
        if (is_known and not again) or not await self._store.invite(
            name, stored, again=again, now=now, expires_at=until
        ):
            raise AlreadyInvited(
                f"{name} is, or was, invited: take another name, or for the same person: "
                f"goclaw people web invite {name} --again"
            )
        log.info("web_guest_invited", extra={"person": name, "again": again})
        return WebInvitation(name, join_path(secret), until)

    async def _is_known_guest(self, name: str) -> bool:
        """Return whether a person is invited, or has conversations from before."""
        people = await self._store.people()
        if any((*WEB_PLACE, name) == (one.channel, one.account, one.sender.id) for one in people):
            return True
        query = SessionQuery(search=f":{WEB}:direct:{searched_part(name)}", limit=_SEARCHED)
        found = await self._store.sessions(query)
        chats = filter(None, (chat_of(one.key) for one in found))
        return any(one.channel == WEB and guest_of(one.chat) == name for one in chats)

    # The last one: below it, ``list`` in a signature would be this method.
    @operation("GET /api/people", Least.VIEWER)
    async def list(self, *, limit: int = 1000, before: Cursor | None = None) -> list[Person]:
        """Return approved people, the most recently approved first."""
        return await self._store.people(limit=limit, before=before)
