"""Runs, sessions and their history."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from goclaw_py.core.errors import Fenced, NeverBegan, StoreError, StoreUnavailable
from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.requests import Mode
from goclaw_py.ports.agent import HistoryEntry
from goclaw_py.ports.store import Begun, NewRun, Notice, Run, RunEnd, Session, StoredEntry
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.group import Group
from goclaw_py.store.postgres.part import Part, claim
from goclaw_py.store.postgres.pool import Connection, Pool, Row
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("runs")
_INBOX = queries("inbox")
_LAST_CHARACTER = chr(0x10FFFF)


_MOST = 16
"""How many runs share a transaction: each has a statement of its own, and their sessions wait."""
_FLIGHTS = 2


class _Beginning(NamedTuple):
    run: NewRun
    node: NodeId


class _Ending(NamedTuple):
    id: RunId
    """The run's, as it is stored."""
    end: RunEnd
    node: NodeId


class Runs(Part):
    """Implements ``RunStore``.

    Runs that begin, or end, while others are being committed share the next transaction.
    """

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self._beginnings = self._ending(
            Group(self._begin, keys=_session_of, flights=_FLIGHTS, most=_MOST)
        )
        self._endings = self._ending(
            Group(self._finish, keys=_run_of, flights=_FLIGHTS, most=_MOST)
        )

    async def begin_run(self, run: NewRun, *, node: NodeId) -> Begun:
        """Beginning the same run again counts no second attempt, so a lost answer can be repeated.

        A node that has not joined, or was declared dead, is fenced too. A run of a session whose
        chat was given another id begins in the session of the new one.
        """
        return await self._beginnings(_Beginning(run, node))

    async def _begin(self, runs: Sequence[_Beginning]) -> list[Begun | StoreError]:
        """As a rule the sessions are ours, since their messages were accepted here."""
        if len(runs) == 1:
            async with self._pool.connection() as connection:
                begun = [await _begin(connection, *runs[0])]
        else:
            async with self._pool.transaction() as connection:
                begun = await _begin_in_turn(connection, runs)
        return [
            first or await self._begin_anyhow(*one) for first, one in zip(begun, runs, strict=True)
        ]

    async def _begin_anyhow(self, run: NewRun, node: NodeId) -> Begun | StoreError:
        """Begin a run that was begun before, or in a session that is to be made or claimed."""
        try:
            async with self._pool.transaction() as connection:
                key = await _own_session(connection, run, node)
                begun = await _begin(connection, replace(run, session=key), node)
                return begun or await _begun_before(connection, run, node, key)
        except Fenced as error:
            return error

    async def finish_run(self, end: RunEnd, *, node: NodeId) -> None:
        """The history goes to the epoch in which the run began, even after a reset.

        Raises ``NeverBegan`` too.
        """
        await self._endings(_Ending(storable(end.id), end, node))

    async def _finish(self, endings: Sequence[_Ending]) -> list[StoreError | None]:
        ids = [ending.id for ending in endings]
        async with self._pool.transaction() as connection:
            locked = await connection.fetch(_SQL["lock_sessions_of_runs"], ids)
            found = {row["id"]: row for row in locked}
            refused = [_refusal(one.end, found.get(one.id), one.node) for one in endings]
            for ending, error in zip(endings, refused, strict=True):
                if error is None:
                    await connection.fetch(_SQL["finish"], *_end_columns(ending.end))
        return refused

    async def runs(
        self, *, limit: int = 50, session: SessionKey | None = None, active: bool = False
    ) -> list[Run]:
        """Each kind of question has its own index."""
        async with self._pool.connection() as connection:
            if active:
                found = await connection.fetch(_SQL["active"], limit, session)
            elif session is not None:
                found = await connection.fetch(_SQL["newest_of_session"], limit, session)
            else:
                found = await connection.fetch(_SQL["newest"], limit)
        return [rows.run(row) for row in found]

    async def find_run(self, prefix: str) -> list[Run]:
        """The prefix is compared character by character; nothing in it is a pattern."""
        async with self._pool.connection() as connection:
            found = await connection.fetch(_SQL["find"], prefix, prefix + _LAST_CHARACTER)
        return [rows.run(row) for row in found]

    async def sessions(self, *, limit: int = 50) -> list[Session]:
        """A message, a run and a reset are activity."""
        async with self._pool.connection() as connection:
            return [rows.session(row) for row in await connection.fetch(_SQL["sessions"], limit)]

    async def session(self, key: SessionKey) -> Session | None:
        """None if nobody ever wrote or ran there."""
        async with self._pool.connection() as connection:
            row = await connection.row(_SQL["session"], key)
        return None if row is None else rows.session(row)

    async def history(self, key: SessionKey, *, limit: int = 200) -> list[StoredEntry]:
        """Empty for a session that does not exist."""
        async with self._pool.connection() as connection:
            newest_first = await connection.fetch(_SQL["history"], key, limit)
        return [rows.stored_entry(row) for row in reversed(newest_first)]

    async def reset_session(self, key: SessionKey, *, now: datetime) -> None:
        """A session that does not exist has a fresh history already."""
        async with self._pool.connection() as connection:
            await connection.fetch(_SQL["reset"], key, now)

    async def choose_mode(self, key: SessionKey, mode: Mode | None) -> None:
        """Stays through a reset."""
        async with self._pool.connection() as connection:
            await connection.fetch(_SQL["choose_mode"], key, mode)

    async def note(
        self, key: SessionKey, entry: HistoryEntry, *, rows: Collection[int], now: datetime
    ) -> None:
        """Without rows it is added in any case, if the session exists."""
        async with self._pool.transaction() as connection:
            session = await connection.row(_SQL["lock_session"], key)
            ended = await connection.fetch(
                _INBOX["settle"], list(rows), Outcome.COMPLETED, None, now
            )
            if session is not None and (ended or not rows):
                await connection.fetch(
                    _SQL["remember"], key, session["epoch"], now, *_entry_columns([entry])
                )


def _session_of(beginning: _Beginning) -> tuple[SessionKey]:
    return (storable(beginning.run.session),)


def _run_of(ending: _Ending) -> tuple[RunId]:
    return (ending.id,)


def _refusal(end: RunEnd, run: Row | None, node: NodeId) -> StoreError | None:
    """Why a run cannot be ended; None if it can, or has been ended by this node before."""
    if run is None:
        return NeverBegan(f"run {end.id} never began")
    if run["outcome"] == Outcome.LOST:
        return Fenced(f"run {end.id} was given up: {run['error'] or 'its node was dead'}")
    if run["outcome"] is not None and run["node"] == node and run["node_exists"]:
        return None
    if (run["node"], run["owner"], run["session_fence"]) != (node, node, run["fence"]):
        return Fenced(f"session {run['session']} has changed hands since {end.id} began")
    return None


async def _begin_in_turn(connection: Connection, runs: Sequence[_Beginning]) -> list[Begun | None]:
    """Begin runs in the order of their sessions, as everybody locks those."""
    begun: list[Begun | None] = [None] * len(runs)
    for place in sorted(range(len(runs)), key=lambda place: _session_of(runs[place])):
        begun[place] = await _begin(connection, *runs[place])
    return begun


async def _begun_before(
    connection: Connection, run: NewRun, node: NodeId, session: SessionKey
) -> Begun:
    """What a run was told that this node has begun before. Raises ``Fenced`` for any other."""
    stored = await connection.row(_SQL["owner_of_run"], run.id)
    if stored is None or stored["node"] != node or stored["outcome"] is not None:
        raise Fenced(f"run {run.id} is not this node's any more")
    return _begun(stored, await connection.fetch(_SQL["history"], session, None))


async def _begin(connection: Connection, run: NewRun, node: NodeId) -> Begun | None:
    """Begin a run if its session is the node's own and the run is new."""
    found = await connection.fetch(_SQL["begin"], *_columns(run, node))
    return _begun(found[0], found if found[0]["role"] is not None else ()) if found else None


def _begun(draft: Row, newest_first: Sequence[Row]) -> Begun:
    history = tuple(rows.stored_entry(row).entry for row in reversed(newest_first))
    return Begun(history, draft=draft["draft"], unsure=draft["unsure"])


async def _own_session(connection: Connection, run: NewRun, node: NodeId) -> SessionKey:
    """Lock the run's session, claimed for the node; its key now. Raises ``Fenced``."""
    row = await connection.row(_SQL["lock_session"], run.session)
    if row is None:
        row = await _enter_session(connection, run)
    key, owner = SessionKey(row["key"]), row["owner"]
    if owner != node and not await claim(connection, [key], node=node, now=run.started_at):
        raise Fenced(f"session {key} belongs to {owner or 'nobody'}, not {node}")
    return key


async def _enter_session(connection: Connection, run: NewRun) -> Row:
    """Lock the session that a run's session has moved into, or make it."""
    moved = await connection.row(_SQL["moved_to"], run.session)
    key = run.session if moved is None else SessionKey(moved["moved_to"])
    if moved is None:
        place = rows.Place.of(run.target)
        await connection.fetch(
            _SQL["enter_session"],
            key,
            run.agent,
            place.channel,
            place.account,
            place.chat,
            place.thread,
            run.started_at,
        )
    session = await connection.row(_SQL["lock_session"], key)
    if session is None:
        raise StoreUnavailable(f"session {key} moved on while a run began in it")
    return session


def _columns(run: NewRun, node: NodeId) -> tuple[object, ...]:
    place = rows.Place.of(run.target)
    return (
        run.id,
        run.session,
        run.agent,
        run.trigger,
        run.lane,
        node,
        run.parent,
        run.model,
        place.channel,
        place.account,
        place.chat,
        place.thread,
        run.started_at,
        list(run.inbox),
    )


def _end_columns(end: RunEnd) -> tuple[object, ...]:
    return (
        end.id,
        end.outcome,
        end.finished_at,
        end.reason,
        end.error,
        *rows.usage_columns(end.usage),
        list(end.taken_in),
        *_entry_columns(end.history),
        *rows.outbox_columns(end.say),
        Notice.OUTBOX,
    )


def _entry_columns(entries: Sequence[HistoryEntry]) -> tuple[object, ...]:
    return (
        [entry.role for entry in entries],
        [entry.text for entry in entries],
        [entry.native for entry in entries],
        [entry.format for entry in entries],
    )
