"""Runs, sessions and their history."""

from __future__ import annotations

from datetime import datetime

from goclaw_py.core.errors import Fenced, NeverBegan, StoreError
from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.requests import Mode
from goclaw_py.ports.agent import HistoryEntry
from goclaw_py.ports.store import NewRun, Run, RunEnd, Session, StoredEntry
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.part import Part, claim, enqueue
from goclaw_py.store.postgres.pool import Connection, Row
from goclaw_py.store.sql import queries

_SQL = queries("runs")
_NODES = queries("nodes")
_LAST_CHARACTER = chr(0x10FFFF)


class Runs(Part):
    """Implements ``RunStore``."""

    async def begin_run(self, run: NewRun, *, node: NodeId) -> list[HistoryEntry]:
        """Beginning the same run again counts no second attempt, so a lost answer can be repeated.

        A node that has not joined, or was declared dead, is fenced too.
        """
        async with self._pool.transaction() as connection:
            fence, epoch = await _own_session(connection, run, node)
            begun = await connection.row(
                _SQL["begin"], *_columns(run, node=node, fence=fence, epoch=epoch)
            )
            if begun is None:
                stored = await connection.row(_SQL["owner_of_run"], run.id)
                if stored is None or stored["node"] != node or stored["outcome"] is not None:
                    raise Fenced(f"run {run.id} is not this node's any more")
            newest_first = await connection.fetch(_SQL["history"], run.session, None)
        return [rows.stored_entry(row).entry for row in reversed(newest_first)]

    async def finish_run(self, end: RunEnd, *, node: NodeId) -> None:
        """The history goes to the epoch in which the run began, even after a reset.

        Raises ``NeverBegan`` too.
        """
        async with self._pool.transaction() as connection:
            run = await connection.row(_SQL["lock_session_of_run"], end.id)
            if run is None:
                raise NeverBegan(f"run {end.id} never began")
            if run["outcome"] is not None and run["node"] == node and run["node_exists"]:
                return
            if (run["node"], run["owner"], run["session_fence"]) != (node, node, run["fence"]):
                raise Fenced(f"session {run['session']} has changed hands since {end.id} began")
            if await _finish(connection, end):
                await _finish_rest(connection, end, run)

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


async def _own_session(connection: Connection, run: NewRun, node: NodeId) -> tuple[int, int]:
    """Lock the run's session, claimed for the node; its fence and epoch. Raises ``Fenced``."""
    session = await connection.row(_SQL["lock_session"], run.session)
    if session is None:
        place = rows.Place.of(run.target)
        await connection.fetch(
            _SQL["enter_session"],
            run.session,
            run.agent,
            place.channel,
            place.account,
            place.chat,
            place.thread,
            run.started_at,
        )
        session = await connection.row(_SQL["lock_session"], run.session)
    if session is None:
        raise StoreError(f"session {run.session} vanished while a run began in it")
    if session["owner"] == node:
        return session["fence"], session["epoch"]
    if not await claim(connection, [run.session], node=node, now=run.started_at):
        raise Fenced(f"session {run.session} belongs to {session['owner'] or 'nobody'}, not {node}")
    return session["fence"] + 1, session["epoch"]


def _columns(run: NewRun, *, node: NodeId, fence: int, epoch: int) -> tuple[object, ...]:
    place = rows.Place.of(run.target)
    return (
        run.id,
        run.session,
        run.agent,
        run.trigger,
        run.lane,
        node,
        fence,
        epoch,
        run.parent,
        run.model,
        place.channel,
        place.account,
        place.chat,
        place.thread,
        run.started_at,
        list(run.inbox),
    )


async def _finish(connection: Connection, end: RunEnd) -> bool:
    """End the run's own row. False if it had ended while we waited for its session."""
    row = await connection.row(
        _SQL["finish"],
        end.id,
        end.outcome,
        end.finished_at,
        end.reason,
        end.error,
        *rows.usage_columns(end.usage),
    )
    return row is not None


async def _finish_rest(connection: Connection, end: RunEnd, run: Row) -> None:
    """All that goes with the end of a run."""
    if end.outcome is Outcome.INTERRUPTED:
        await connection.fetch(_NODES["free_rows"], [end.id], 1)
    else:
        how = (end.id, end.outcome, end.reason, end.finished_at)
        await connection.fetch(_SQL["finish_rows"], *how)
        if end.taken_in:
            await connection.fetch(_SQL["finish_taken_in"], *how, list(end.taken_in))
    if end.history:
        await connection.fetch(
            _SQL["remember"],
            run["session"],
            run["epoch"],
            RunId(end.id),
            end.finished_at,
            [entry.role for entry in end.history],
            [entry.text for entry in end.history],
            [entry.native for entry in end.history],
            [entry.format for entry in end.history],
        )
    session = SessionKey(run["session"])
    await enqueue(connection, end.say, session=session, now=end.finished_at)
