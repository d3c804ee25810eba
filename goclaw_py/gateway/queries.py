"""The operator's queries of the database, page by page."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final

from goclaw_py.core.display_names import KnownNames, display_name, needed_names
from goclaw_py.core.errors import NotFound, StoreUnavailable
from goclaw_py.core.ids import SessionKey
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.session_keys import agent_of, is_direct_chat
from goclaw_py.operations.lookup import only
from goclaw_py.records import (
    ALL_ENTRIES,
    ALL_SESSIONS,
    AuditEntry,
    AuditFilter,
    Session,
    SessionFilter,
    Store,
    StoredEntry,
)

SEARCHED: Final = 1000
"""The number of sessions among which a part of a key is searched."""

_CANDIDATES: Final = 10
"""The number of sessions that an error lists as candidates."""

_MESSAGES_SHOWN: Final = 1000
"""The number of messages of one run."""


class GatewayQueries:
    """Implements the methods of ``Control`` that only read the database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def sessions(
        self,
        *,
        limit: int = 50,
        search: str = "",
        only: SessionFilter = ALL_SESSIONS,
        before: Cursor | None = None,
    ) -> list[Session]:
        return await self._store.sessions(limit=limit, search=search, only=only, before=before)

    async def audit_entries(
        self, *, limit: int = 50, only: AuditFilter = ALL_ENTRIES, before: int | None = None
    ) -> list[AuditEntry]:
        return await self._store.audit_entries(limit=limit, only=only, before=before)

    async def session(self, key: str) -> Session:
        exact = await self._store.session(SessionKey(key))
        if exact is not None:
            return exact
        found = await self._store.session(await self.find_session(key))
        if found is None:
            raise NotFound(f"session {key!r} is gone")
        return found

    async def find_session(self, part: str, others: Iterable[SessionKey] = ()) -> SessionKey:
        """Return the session with a part in its key, else in the name of its chat, topic or job.

        ``others`` are sessions that may not be stored yet. Raises ``NotFound``.
        """
        keys = {*others, *(one.key for one in await self._store.sessions(limit=SEARCHED))}
        if not any(part in key for key in keys):
            named = await self._store.sessions(limit=_CANDIDATES + 1, search=part)
            return session_named([one.key for one in named], "", part)
        return session_named(keys, part)

    async def history(self, key: SessionKey, *, limit: int = 200) -> list[StoredEntry]:
        return await self._store.history(key, limit=limit)

    async def names(self, keys: Collection[str]) -> dict[str, str]:
        targets, jobs = needed_names(keys)
        known = KnownNames()
        if targets or jobs:
            # Without the database ids are shown: the status of a gateway is needed most then.
            with suppress(StoreUnavailable):
                known = await self._store.names(targets, jobs)
                self._have_read(known)
        return {key: display_name(key, known) for key in keys}

    def _have_read(self, known: KnownNames) -> None:
        """Called with names that were read; a gateway remembers them."""


def session_named(keys: Iterable[SessionKey], part: str, wanted: str = "") -> SessionKey:
    """Return the session with this part in its key; for an agent's name, its only direct chat.

    ``wanted`` is what was asked for, if that is not ``part``. Raises ``NotFound``, with the
    candidates, chats first.
    """
    found = [key for key in keys if part in key]
    chats = [key for key in found if agent_of(key) == part and is_direct_chat(key)]
    candidates = sorted(
        chats if len(chats) == 1 else found, key=lambda key: (key not in chats, key)
    )
    asked = f"session {wanted or part!r}"
    return only(candidates, lambda _: True, str, asked, "sessions list", most=_CANDIDATES)
