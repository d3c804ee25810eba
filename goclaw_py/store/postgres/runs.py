"""Runs, sessions and their history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple, Protocol, TypeVar

import orjson

from goclaw_py.core.errors import Fenced, NeverBegan, StoreError, StoreUnavailable
from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.requests import Mode
from goclaw_py.ports.agent import HistoryEntry
from goclaw_py.ports.store import Begun, NewRun, Notice, RunEnd
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.drafts import close_forsaken
from goclaw_py.store.postgres.group import Group
from goclaw_py.store.postgres.part import Part, claim
from goclaw_py.store.postgres.pool import Connection, Pool, Row
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("runs")
_INBOX = queries("inbox")

_FLIGHTS = 2
_MOST = 32
"""How many runs share a transaction: each that begins reads its history."""


class _OfRun(Protocol):
    @property
    def id(self) -> RunId: ...


Item = TypeVar("Item", bound=_OfRun)


class _Beginning(NamedTuple):
    run: NewRun
    """As it is stored."""
    node: NodeId


class _Ending(NamedTuple):
    id: RunId
    """The run's, as it is stored."""
    end: RunEnd
    node: NodeId


class Runs(Part):
    """Implements ``RunStore`` but for what ``Records`` reads.

    Runs that begin, or end, while others are being committed share the next transaction.
    """

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self._beginnings = self._ending(
            Group(
                self._begin,
                keys=_session_of,
                kind=attrgetter("node"),
                flights=_FLIGHTS,
                most=_MOST,
            )
        )
        self._endings = self._ending(
            Group(self._finish, keys=_run_of, flights=_FLIGHTS, most=_MOST)
        )

    async def begin_run(self, run: NewRun, *, node: NodeId) -> Begun:
        """Beginning the same run again counts no second attempt, so a lost answer can be repeated.

        A node that has not joined, or was declared dead, is fenced too. A run of a session whose
        chat was given another id begins in the session of the new one.
        """
        return await self._beginnings(_Beginning(storable(run), node))

    async def _begin(self, runs: Sequence[_Beginning]) -> list[Begun | StoreError]:
        """As a rule the sessions are ours, since their messages were accepted here."""
        async with self._pool.connection() as connection:
            begun, left_over = await _begin(
                connection, _once([one.run for one in runs]), runs[0].node
            )
        if left_over:
            async with self._pool.transaction() as connection:
                await close_forsaken(connection, now=runs[0].run.started_at)
        return [begun.get(one.run.id) or await self._begin_anyhow(*one) for one in runs]

    async def _begin_anyhow(self, run: NewRun, node: NodeId) -> Begun | StoreError:
        """Begin a run that was begun before, or in a session that is to be made or claimed."""
        try:
            async with self._pool.transaction() as connection:
                key = await _own_session(connection, run, node)
                begun, left_over = await _begin(connection, [replace(run, session=key)], node)
                if left_over:
                    await close_forsaken(connection, now=run.started_at)
                return begun.get(run.id) or await _begun_before(connection, run, node, key)
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
            ending = _once(
                one for one, error in zip(endings, refused, strict=True) if error is None
            )
            for one in ending:
                if (summary := one.end.summary) is not None:
                    # Before the end, which nothing may follow.
                    await connection.fetch(_SQL["summarize"], one.id, summary.text, summary.upto)
            if ending:
                told = await connection.row(_SQL["finish"], *_end_columns(ending))
                # Also one of a message that this run has taken in.
                if (told and told["left_over"]) or any(one.end.taken_in for one in ending):
                    now = max(one.end.finished_at for one in ending)
                    await close_forsaken(connection, now=now)
        return refused

    async def reset_session(self, key: SessionKey, *, now: datetime) -> None:
        """A session that does not exist has a fresh history already."""
        async with self._pool.connection() as connection:
            await connection.fetch(_SQL["reset"], key, now)

    async def pin(self, key: SessionKey, pinned: Collection[str], *, run: RunId) -> bool:
        """Waits for whoever takes the session over; then the run has ended, and it is False too."""
        async with self._pool.transaction() as connection:
            await connection.fetch(_SQL["lock_sessions_of_runs"], [run])
            return await connection.row(_SQL["pin"], key, list(pinned), run) is not None

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
    return (beginning.run.session,)


def _run_of(ending: _Ending) -> tuple[RunId]:
    return (ending.id,)


def _once(items: Iterable[Item]) -> list[Item]:
    """The first item of each run: another one is the same call again."""
    first: dict[RunId, Item] = {}
    for item in items:
        first.setdefault(item.id, item)
    return list(first.values())


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


async def _begun_before(
    connection: Connection, run: NewRun, node: NodeId, session: SessionKey
) -> Begun:
    """What a run was told that this node has begun before. Raises ``Fenced`` for any other."""
    told = await connection.fetch(_SQL["begun_before"], run.id, session)
    if not told or told[0]["node"] != node or told[0]["outcome"] is not None:
        raise Fenced(f"run {run.id} is not this node's any more")
    return _begun(told)


async def _begin(
    connection: Connection, runs: Sequence[NewRun], node: NodeId
) -> tuple[dict[RunId, Begun], bool]:
    """Begin those of the runs that are new, in sessions that are the node's own.

    Also tells whether a draft is left over that none of them goes on with.
    """
    found = await connection.fetch(
        _SQL["begin"],
        node,
        orjson.dumps([_line(run) for run in runs]).decode(),
        [run.session for run in runs],
        [row for run in runs for row in run.inbox],
    )
    begun = {RunId(run_id): _begun(told) for run_id, told in _each(found).items()}
    return begun, any(row["left_over"] for row in found[:1])


def _each(found: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each run."""
    of_run: defaultdict[str, list[Row]] = defaultdict(list)
    for row in found:
        of_run[row["id"]].append(row)
    return of_run


def _begun(told: Sequence[Row]) -> Begun:
    """What ``runs.begin`` tells of one run."""
    first, entries = told[0], [row for row in told if row["role"]]
    return Begun(
        tuple(map(rows.entry, entries)),
        draft=first["draft"],
        unsure=first["unsure"],
        places=tuple(row["place"] for row in entries),
        summary=first["summary"],
        pinned=tuple(first["pinned"]),
    )


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


def _line(run: NewRun) -> dict[str, object]:
    """One record of what ``runs.begin`` takes."""
    place = rows.Place.of(run.target)
    return {
        "id": run.id,
        "session": run.session,
        "agent": run.agent,
        "trigger": run.trigger,
        "lane": run.lane,
        "parent": run.parent,
        "model": run.model,
        "channel": place.channel,
        "account": place.account,
        "chat": place.chat,
        "thread": place.thread,
        "started_at": run.started_at,
        "payer": run.payer,
        "submitted_at": run.submitted_at,
        "inbox": run.inbox,
    }


def _end_columns(endings: Sequence[_Ending]) -> tuple[object, ...]:
    entries = [(one.id, entry) for one in endings for entry in one.end.history]
    said = [(one.id, message) for one in endings for message in one.end.say]
    return (
        orjson.dumps([_end_line(one) for one in endings]).decode(),
        [one.id for one in endings],
        [row for one in endings for row in one.end.taken_in],
        [run_id for run_id, _ in entries],
        *_entry_columns([entry for _, entry in entries]),
        [run_id for run_id, _ in said],
        *rows.outbox_columns([message for _, message in said]),
        Notice.OUTBOX,
    )


def _end_line(ending: _Ending) -> dict[str, object]:
    """One record of what ``runs.finish`` takes."""
    end, usage = ending.end, ending.end.usage
    line: dict[str, object] = {
        "id": ending.id,
        "outcome": end.outcome,
        "finished_at": end.finished_at,
        "reason": end.reason,
        "error": storable(end.error),
        "model": storable(end.model) or None,
        "tools": storable(end.tools) or None,
        "first_text_at": end.first_text_at,
        "taken_in": end.taken_in,
    }
    if usage is not None:
        line |= {
            "requests": usage.requests,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cached_tokens": usage.cached_tokens,
            "cost_usd": None if usage.cost_usd is None else str(usage.cost_usd),
        }
    return line


def _entry_columns(entries: Sequence[HistoryEntry]) -> tuple[object, ...]:
    return (
        [entry.role for entry in entries],
        [entry.text for entry in entries],
        [entry.native for entry in entries],
        [entry.format for entry in entries],
    )
