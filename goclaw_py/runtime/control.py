"""The operator's view, over the database and, inside a gateway, over what runs in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from goclaw_py.core.ids import SessionKey
from goclaw_py.core.pairing import code_hash
from goclaw_py.core.status import Status
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.control import NoGateway, NotFound, StopReport
from goclaw_py.ports.store import (
    OutboxRow,
    OutboxState,
    PairingRequest,
    Person,
    Run,
    Session,
    Store,
    StoredEntry,
)
from goclaw_py.runtime.commands import Commands

T = TypeVar("T")

_SEARCHED = 1000


class StoreControl:
    """What can be seen and done with the database alone. See ``ports.control.Control``."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def status(self) -> Status:
        """Raises ``NoGateway``: without one there is nothing that has a state."""
        raise NoGateway("no gateway is running here; start one with: goclaw run")

    async def stop(self, session: SessionKey, *, everything: bool) -> StopReport:
        """Raises ``NoGateway``: without one nothing runs."""
        del everything
        raise NoGateway(f"no gateway is running here, so nothing runs in {session}")

    async def sessions(self, *, limit: int = 50) -> list[Session]:
        """See ``Control``."""
        return await self._store.sessions(limit=limit)

    async def session(self, key: str) -> Session:
        """See ``Control``."""
        exact = await self._store.session(SessionKey(key))
        if exact is not None:
            return exact
        known = await self._store.sessions(limit=_SEARCHED)
        return _only(known, lambda s: key in s.key, lambda s: s.key, f"session {key!r}")

    async def history(self, key: SessionKey, *, limit: int = 200) -> list[StoredEntry]:
        """See ``Control``."""
        return await self._store.history(key, limit=limit)

    async def reset(self, key: SessionKey) -> None:
        """See ``Control``."""
        await self._store.reset_session(key, now=self._clock.now())

    async def runs(
        self, *, limit: int = 50, session: SessionKey | None = None, active: bool = False
    ) -> list[Run]:
        """See ``Control``."""
        return await self._store.runs(limit=limit, session=session, active=active)

    async def run(self, prefix: str) -> Run:
        """See ``Control``."""
        found = await self._store.find_run(prefix)
        return _only(found, lambda _: True, lambda run: run.id, f"run {prefix!r}")

    async def outbox(self, *, limit: int = 50, state: OutboxState | None = None) -> list[OutboxRow]:
        """See ``Control``."""
        return await self._store.outbox(limit=limit, state=state)

    async def retry_outbox(self, ids: Collection[int]) -> int:
        """See ``Control``."""
        return await self._store.retry_outbox(ids, now=self._clock.now())

    async def people(self) -> list[Person]:
        """See ``Control``."""
        return await self._store.people()

    async def pairing_requests(self) -> list[PairingRequest]:
        """See ``Control``."""
        return await self._store.pairing_requests(now=self._clock.now())

    async def approve(self, code: str, *, guest: bool) -> Person:
        """See ``Control``."""
        person = await self._store.approve(code_hash(code), guest=guest, now=self._clock.now())
        if person is None:
            raise NotFound(f"no valid pairing request has the code {code!r}; codes last 60 minutes")
        return person

    async def revoke(self, channel: str, account: str, sender_id: str) -> None:
        """See ``Control``."""
        if not await self._store.revoke(channel, account, sender_id):
            raise NotFound(f"nobody with the id {sender_id!r} is known on {channel}/{account}")


class GatewayControl(StoreControl):
    """The same inside a running gateway, which also has a state and can stop runs."""

    def __init__(
        self, store: Store, clock: Clock, commands: Commands, look: Callable[[], Awaitable[Status]]
    ) -> None:
        super().__init__(store, clock)
        self._commands = commands
        self._look = look

    async def status(self) -> Status:
        """See ``Control``."""
        return await self._look()

    async def stop(self, session: SessionKey, *, everything: bool) -> StopReport:
        """See ``Control``."""
        return self._commands.stop(session, everything=everything)

    async def reset(self, key: SessionKey) -> None:
        """See ``Control``."""
        self._commands.stop(key, everything=True)
        await super().reset(key)


def _only(
    candidates: list[T], matches: Callable[[T], bool], name: Callable[[T], str], wanted: str
) -> T:
    found = [candidate for candidate in candidates if matches(candidate)]
    if not found:
        raise NotFound(f"there is no {wanted}")
    if len(found) > 1:
        names = ", ".join(name(candidate) for candidate in found[:3])
        raise NotFound(f"{wanted} is not unique: {names}{', …' if len(found) > 3 else ''}")
    return found[0]
