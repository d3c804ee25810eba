"""Reads stored data (sessions, runs, messages, people) from a gateway over its socket."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar
from urllib.parse import quote

from goclaw_py.cli.client.ask import Params, RequestSender, given
from goclaw_py.model.ids import RunId, SessionKey
from goclaw_py.model.pagination import Cursor
from goclaw_py.ports.control import RunRecord
from goclaw_py.ports.store import (
    ALL_RUNS,
    Chat,
    DeadLetter,
    LastActivity,
    OutboxRow,
    OutboxState,
    Person,
    RunFilter,
    RunSpan,
    Session,
    StoredEntry,
    StoredRun,
)
from goclaw_py.web.api import wire

T = TypeVar("T")


class RemoteLists:
    """Implements the part of ``Control`` that only reads the database."""

    def __init__(self, ask: RequestSender) -> None:
        self._ask = ask

    async def sessions(self, *, limit: int = 50, before: Cursor | None = None) -> list[Session]:
        """Return sessions, most recently active first."""
        return await self._list(Session, "/api/sessions", given(limit=limit, before=before))

    async def session(self, key: str) -> Session:
        """Return the session with this key or unique part of a key."""
        return wire.read(Session, await self._ask("GET", f"/api/sessions/{segment(key)}"))

    async def history(self, key: SessionKey, *, limit: int = 200) -> list[StoredEntry]:
        """Return the history of a session, oldest first."""
        path = f"/api/sessions/{segment(key)}/history"
        return await self._list(StoredEntry, path, given(limit=limit))

    async def runs(
        self,
        *,
        limit: int = 50,
        session: SessionKey | None = None,
        active: bool = False,
        only: RunFilter = ALL_RUNS,
        before: Cursor | None = None,
    ) -> list[StoredRun]:
        """Return runs, newest first."""
        params = given(
            limit=limit,
            session=session,
            active=active,
            agent=only.agent,
            trigger=only.trigger,
            outcome=only.outcome,
            before=before,
        )
        return await self._list(StoredRun, "/api/runs", params)

    async def runs_between(
        self, since: datetime, until: datetime, *, limit: int = 2000, after: Cursor | None = None
    ) -> list[RunSpan]:
        """Return runs that were in progress then, oldest first."""
        params = given(since=since, until=until, limit=limit, after=after)
        return await self._list(RunSpan, "/api/runs/timeline", params)

    async def run(self, prefix: str) -> StoredRun:
        """Return the run whose id starts with this."""
        return wire.read(StoredRun, await self._ask("GET", f"/api/runs/{segment(prefix)}"))

    async def run_record(self, prefix: str) -> RunRecord:
        """Return that run with its history entries and messages."""
        path = f"/api/runs/{segment(prefix)}/record"
        return wire.read(RunRecord, await self._ask("GET", path))

    async def outbox(
        self,
        *,
        limit: int = 50,
        state: OutboxState | None = None,
        run: RunId | None = None,
        before: int | None = None,
    ) -> list[OutboxRow]:
        """Return outgoing messages, newest first."""
        params = given(limit=limit, state=state, run=run, before=before)
        return await self._list(OutboxRow, "/api/outbox", params)

    async def outbox_row(self, row_id: int) -> OutboxRow:
        """Return one outgoing message."""
        return wire.read(OutboxRow, await self._ask("GET", f"/api/outbox/{row_id}"))

    async def letters(
        self, *, waiting: bool = False, limit: int = 50, before: int | None = None
    ) -> list[DeadLetter]:
        """Return incoming messages that failed, or that are not done yet."""
        params = given(waiting=waiting, limit=limit, before=before)
        return await self._list(DeadLetter, "/api/inbox", params)

    async def letter(self, row_id: int) -> DeadLetter:
        """Return one incoming message."""
        return wire.read(DeadLetter, await self._ask("GET", f"/api/inbox/{row_id}"))

    async def people(self, *, limit: int = 1000, before: Cursor | None = None) -> list[Person]:
        """Return approved people."""
        return await self._list(Person, "/api/people", given(limit=limit, before=before))

    async def heard(self, *, limit: int = 50, before: Cursor | None = None) -> list[LastActivity]:
        """Return chats and threads in which approved people wrote, most recent first."""
        return await self._list(LastActivity, "/api/heard", given(limit=limit, before=before))

    async def chats(self, *, limit: int = 1000, before: Cursor | None = None) -> list[Chat]:
        """Return stored chats, most recently seen first."""
        return await self._list(Chat, "/api/chats", given(limit=limit, before=before))

    async def _list(self, kind: type[T], path: str, params: Params) -> list[T]:
        return wire.read(list[kind], await self._ask("GET", path, params=params))  # type: ignore[valid-type]


def segment(text: str) -> str:
    """Quote a text as one segment of a URL path."""
    return quote(text, safe="")
