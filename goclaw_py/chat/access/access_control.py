"""Access control: approved people, kept in memory so that a ``/stop`` needs no database."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from goclaw_py.core.containers import LruCache
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.session_keys import AccessRules
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import Chat, ChatStore, PairingRequest, PeopleStore, Person, Place, Standing

log = logging.getLogger(__name__)

_REMEMBERED = 10_000

_ChatId = tuple[str, str, str]
"""Channel, account, chat."""


class AccessStore(PeopleStore, ChatStore, Protocol):
    """The store operations that this module needs."""


MAX_WAITING = 1_000
"""The number of strangers per account that may wait for approval; others get no answer."""


class AccessControl:
    """The approved people and groups. Until they are loaded, nobody is admitted."""

    def __init__(self, store: AccessStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[Place, frozenset[str]] = {}
        self._owners: dict[Place, frozenset[str]] = {}
        self._decided: dict[_ChatId, bool] = {}
        self._gone: set[_ChatId] = set()
        self._gone_topics: frozenset[Target] = frozenset()
        self._asked: dict[Place, dict[str, datetime]] = {}
        """Strangers with a code, and its expiry."""
        self._greeted: LruCache[_ChatId, str] = LruCache(_REMEMBERED)
        """Chats in which a stranger got a code, with the stranger's id."""

    async def refresh(self) -> None:
        """Load the approved people, the decisions about groups, and chats that are gone."""
        people = await self._store.people()
        chats = await self._store.marked_chats()
        topics = await self._store.gone_topics()
        requests = await self._store.pairing_requests(now=self._clock.now())
        self._known = _by_place(people)
        self._owners = _by_place(p for p in people if p.standing is Standing.OWNER)
        self._decided = {_chat_id(c): c.allowed for c in chats if c.allowed is not None}
        self._gone = {_chat_id(chat) for chat in chats if chat.gone}
        self._gone_topics = frozenset(topic.target for topic in topics)
        # Some may have been approved, and their people forgotten since.
        self._asked = {}
        for request in requests:
            place = request.channel, request.account
            self._asked.setdefault(place, {})[request.sender.id] = request.expires_at

    def known(self, target: Target) -> frozenset[str]:
        """Return the approved sender ids of a target's account."""
        return self._known.get((target.channel, target.account), frozenset())

    def owners(self, place: Place) -> frozenset[str]:
        """Return the sender ids that the operator approved as owners of an account."""
        return self._owners.get(place, frozenset())

    def decided(self, target: Target) -> bool | None:
        """Return the operator's decision about a group; None if there is none."""
        return self._decided.get(_chat_id(target))

    def moved(self, old: Target, new: Target, *, listed: bool | None) -> None:
        """Handle the new id of a group. ``listed``: the settings' decision, None if there is none.

        The next ``refresh`` reads the same from the database.
        """
        decided = self.decided(old) if listed is None else listed
        if decided is not None:
            self._decided.setdefault(_chat_id(new), decided)

    def is_unapproved_chat(self, target: Target) -> bool:
        """Return whether a chat is stored only because a stranger got a code there."""
        sender = self._greeted.get(_chat_id(target))
        return sender is not None and sender not in self.known(target)

    def is_gone(self, target: Target) -> bool:
        """Return whether a chat cannot be reached."""
        return _chat_id(target) in self._gone

    def is_topic_gone(self, target: Target) -> bool:
        """Return whether a topic is closed or deleted; without a thread, the general topic."""
        return target in self._gone_topics

    def is_owner(self, target: Target, sender_id: str, rules: AccessRules) -> bool:
        """Return whether a person was approved as owner by the operator (SPEC CMD-5)."""
        owners = self._owners.get((target.channel, target.account), ())
        return rules.trusted or sender_id in rules.allow or sender_id in owners

    def has_owners(self, target: Target, rules: AccessRules) -> bool:
        """Return whether the account of a target has owners of its own."""
        return bool(rules.allow or self._owners.get((target.channel, target.account)))

    def has_requested(self, place: Place, sender_id: str) -> bool:
        """Return whether a stranger or an unknown group has a valid request."""
        until = self._asked.get(place, {}).get(sender_id)
        return until is not None and self._clock.now() < until

    def may_ask(self, place: Place) -> bool:
        """Return whether there is room for another request (SPEC CHAN-5).

        Strangers have separate limits, so that none can use up those of others; only the total is
        limited.
        """
        now, asked = self._clock.now(), self._asked.get(place, {})
        if len(asked) < MAX_WAITING or sum(now < until for until in asked.values()) < MAX_WAITING:
            return True
        log.warning("pairing_limit_reached", extra={"channel": place[0]})
        return False

    def introduced(self, request: PairingRequest) -> None:
        """Handle that a request is stored."""
        place, now = (request.channel, request.account), self._clock.now()
        if self.has_requested(place, request.sender.id):
            return  # what they said was kept with the request that exists
        if request.peer is PeerKind.DIRECT:
            self._greeted[*place, request.chat] = request.sender.id
        asked = self._asked.setdefault(place, {})
        if len(asked) >= MAX_WAITING:
            for sender in [sender for sender, until in asked.items() if until <= now]:
                del asked[sender]
        asked[request.sender.id] = request.expires_at


def _chat_id(place: Target | Chat) -> _ChatId:
    return place.channel, place.account, place.chat


def _by_place(people: Iterable[Person]) -> dict[Place, frozenset[str]]:
    """Return the ids of people by account."""
    ids: defaultdict[Place, set[str]] = defaultdict(set)
    for person in people:
        ids[person.channel, person.account].add(person.sender.id)
    return {place: frozenset(found) for place, found in ids.items()}
