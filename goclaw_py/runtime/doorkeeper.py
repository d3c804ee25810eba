"""Who may talk: the approved people, kept in memory so that a ``/stop`` needs no database."""

from __future__ import annotations

import secrets
from collections import defaultdict

from goclaw_py.core import wording
from goclaw_py.core.messages import InboundMessage, OutboundMessage, Target
from goclaw_py.core.pairing import VALID_FOR, code_hash, make_code
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import NewPairing, PairingRequest, PeopleStore


class Doorkeeper:
    """Knows the approved people. Until they are loaded it knows nobody, so nobody gets in."""

    def __init__(self, store: PeopleStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[tuple[str, str], frozenset[str]] = {}

    async def refresh(self) -> None:
        """Load the approved people."""
        known: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for person in await self._store.people():
            known[person.channel, person.account].add(person.sender.id)
        self._known = {place: frozenset(ids) for place, ids in known.items()}

    def known(self, target: Target) -> frozenset[str]:
        """Sender ids that were approved for the account of a target."""
        return self._known.get((target.channel, target.account), frozenset())

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
