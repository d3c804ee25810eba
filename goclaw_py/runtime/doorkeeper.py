"""Who may talk: the approved people, kept in memory so that a ``/stop`` needs no database."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable

from goclaw_py.core import wording
from goclaw_py.core.messages import InboundMessage, OutboundMessage, Target
from goclaw_py.core.pairing import VALID_FOR, code_hash, make_code
from goclaw_py.core.routing import AccessRules
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import (
    NewPairing,
    PairingRequest,
    PeopleStore,
    Person,
    Place,
    Standing,
)


class Doorkeeper:
    """Knows the approved people. Until they are loaded it knows nobody, so nobody gets in."""

    def __init__(self, store: PeopleStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[Place, frozenset[str]] = {}
        self._owners: dict[Place, frozenset[str]] = {}

    async def refresh(self) -> None:
        """Load the approved people."""
        people = await self._store.people()
        self._known = _by_place(people)
        self._owners = _by_place(p for p in people if p.standing is Standing.OWNER)

    def known(self, target: Target) -> frozenset[str]:
        """Sender ids that were approved for the account of a target."""
        return self._known.get((target.channel, target.account), frozenset())

    def is_owner(self, message: InboundMessage, rules: AccessRules) -> bool:
        """Whether the sender was let in by the operator, and not as a guest (SPEC CMD-5)."""
        place, sender = (message.target.channel, message.target.account), message.sender.id
        return rules.trusted or sender in rules.allow or sender in self._owners.get(place, ())

    def introduce(self, message: InboundMessage) -> NewPairing:
        """What somebody unknown gets: a code, once, for the operator to approve."""
        now = self._clock.now()
        code = make_code(secrets.choice)
        request = PairingRequest(
            channel=message.target.channel,
            account=message.target.account,
            sender=message.sender,
            code_hash=code_hash(code),
            created_at=now,
            expires_at=now + VALID_FOR,
        )
        minutes = int(VALID_FOR.total_seconds() // 60)
        return NewPairing(request, OutboundMessage(message.target, wording.pairing(code, minutes)))


def _by_place(people: Iterable[Person]) -> dict[Place, frozenset[str]]:
    """The ids of people, by the account that they may talk to."""
    ids: defaultdict[Place, set[str]] = defaultdict(set)
    for person in people:
        ids[person.channel, person.account].add(person.sender.id)
    return {place: frozenset(found) for place, found in ids.items()}
