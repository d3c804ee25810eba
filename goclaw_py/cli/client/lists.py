"""What operators read of what is stored, asked of a gateway over its socket."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar
from urllib.parse import quote

from goclaw_py.cli.client.ask import Ask, Params, given
from goclaw_py.model.ids import RunId, SessionKey
from goclaw_py.model.pagination import Cursor
from goclaw_py.ports.control import RunRecord
from goclaw_py.ports.store import (
    ALL_RUNS,
    Chat,
    Heard,
    Letter,
    OutboxRow,
    OutboxState,
    Person,
    Run,
    RunFilter,
    RunSpan,
    Session,
    StoredEntry,
)
from goclaw_py.web.api import wire

T = TypeVar("T")


class RemoteLists:
    """Implements the part of ``Control`` that only reads the database."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def sessions(self, *, limit: int = 50, before: Cursor | None = None) -> list[Session]:
        """Sessions, the last active first."""
        return await self._list(Session, "/api/sessions", given(limit=limit, before=before))

    async def session(self, key: str) -> Session:
        """The session with this key or unique part of a key."""
        return wire.read(Session, await self._ask("GET", f"/api/sessions/{segment(key)}"))

    async def history(self, key: SessionKey, *, limit: int = 200) -> list[StoredEntry]:
        """A session's history, oldest first."""
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
    ) -> list[Run]:
        """Runs, the newest first."""
        params = given(
            limit=limit,
            session=session,
            active=active,
            agent=only.agent,
            trigger=only.trigger,
            outcome=only.outcome,
            before=before,
        )
        return await self._list(Run, "/api/runs", params)

    async def runs_between(
        self, since: datetime, until: datetime, *, limit: int = 2000, after: Cursor | None = None
    ) -> list[RunSpan]:
        """Runs that worked then, the oldest first."""
        params = given(since=since, until=until, limit=limit, after=after)
        return await self._list(RunSpan, "/api/runs/timeline", params)

    async def run(self, prefix: str) -> Run:
        """The run whose id starts with this."""
        return wire.read(Run, await self._ask("GET", f"/api/runs/{segment(prefix)}"))

    async def run_record(self, prefix: str) -> RunRecord:
        """That run with its part of the history and its messages."""
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
        """Messages on their way out, the newest first."""
        params = given(limit=limit, state=state, run=run, before=before)
        return await self._list(OutboxRow, "/api/outbox", params)

    async def outbox_row(self, row_id: int) -> OutboxRow:
        """One of them."""
        return wire.read(OutboxRow, await self._ask("GET", f"/api/outbox/{row_id}"))

    async def letters(
        self, *, waiting: bool = False, limit: int = 50, before: int | None = None
    ) -> list[Letter]:
        """Messages that could not be worked on, or that are not done."""
        params = given(waiting=waiting, limit=limit, before=before)
        return await self._list(Letter, "/api/inbox", params)

    async def letter(self, row_id: int) -> Letter:
        """One message that came in."""
        return wire.read(Letter, await self._ask("GET", f"/api/inbox/{row_id}"))

    async def people(self, *, limit: int = 1000, before: Cursor | None = None) -> list[Person]:
        """Who may talk to the agent."""
        return await self._list(Person, "/api/people", given(limit=limit, before=before))

    async def heard(self, *, limit: int = 50, before: Cursor | None = None) -> list[Heard]:
        """Chats and threads in which somebody who may talk spoke, the last one first."""
        return await self._list(Heard, "/api/heard", given(limit=limit, before=before))

    async def chats(self, *, limit: int = 1000, before: Cursor | None = None) -> list[Chat]:
        """Known chats, the last seen first."""
        return await self._list(Chat, "/api/chats", given(limit=limit, before=before))

    async def _list(self, kind: type[T], path: str, params: Params) -> list[T]:
        return wire.read(list[kind], await self._ask("GET", path, params=params))  # type: ignore[valid-type]


def segment(text: str) -> str:
    """A text as one part of a path."""
    return quote(text, safe="")
