"""Runs, sessions and their history."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple, Protocol, TypeVar

import orjson

from goclaw_py.core.errors import Fenced, LeaseExpired, RunNotStarted, StoreError
from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.messages import HistoryEntry
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.records import NewRun, Notice, RunEnd, RunSoFar, RunStartResult, StoredEntry
from goclaw_py.scheduler.models import Mode
from goclaw_py.store import rules
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.claims import RunSubjects
from goclaw_py.store.postgres.delivery.drafts import close_abandoned
from goclaw_py.store.postgres.group import Group
from goclaw_py.store.postgres.part import PostgresPart
from goclaw_py.store.postgres.pool import Pool, Row
from goclaw_py.store.postgres.rows import entry_columns, stored_entry_columns
from goclaw_py.store.postgres.runs import steps
from goclaw_py.store.postgres.runs.approvals import ask
from goclaw_py.store.postgres.runs.beginnings import (
    begin,
    begun_before,
    own_session,
    own_sessions,
    with_their_times,
)
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("runs")
_INBOX = queries("inbox")

_FLIGHTS = 2
_MOST = 32
"""Runs that share a transaction: each start reads a history."""
_MOST_SCHEDULED = 500
"""The same for runs of jobs and heartbeats. A thousand jobs may be due at once, and their
transactions have several statements: each is a round trip, which takes long on a busy machine."""


class _OfRun(Protocol):
    @property
    def id(self) -> RunId: ...


Item = TypeVar("Item", bound=_OfRun)


class _Beginning(NamedTuple):
    run: NewRun
    """The run, made storable."""
    node: NodeId


class _Ending(NamedTuple):
    id: RunId
    """The id of the run, made storable."""
    end: RunEnd
    node: NodeId


class _Note(NamedTuple):
    id: RunId
    """The id of the run, made storable."""
    known: RunSoFar
    node: NodeId


class PostgresRuns(PostgresPart):
    """Implements ``RunStore``, except the methods of ``PostgresRunRecords``.

    Starts and ends that come during a transaction share the next one.
    """

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self._beginnings = self._ending(
            Group(
                self._begin,
                keys=_session_of,
                kind=attrgetter("node", "run.durable"),
                flights=_FLIGHTS,
                most=_MOST,
            )
        )
        self._scheduled_beginnings = self._ending(
            Group(
                self._begin_scheduled,
                keys=_session_of,
                kind=attrgetter("node"),
                flights=_FLIGHTS,
                most=_MOST_SCHEDULED,
            )
        )
        self._notes = self._ending(
            Group(self._note, keys=_run_of, kind=attrgetter("node"), flights=_FLIGHTS, most=_MOST)
        )
        self._endings = self._ending(
            Group(self._finish, keys=_run_of, flights=_FLIGHTS, most=_MOST)
        )
        self._scheduled_endings = self._ending(
            Group(self._finish, keys=_run_of, flights=_FLIGHTS, most=_MOST_SCHEDULED)
        )

    async def begin_run(self, run: NewRun, *, node: NodeId) -> RunStartResult:
        """Store that a run starts.

        Repeating it counts no second attempt, so it may be retried after a lost response. A node
        that is not stored is fenced too. A run whose chat has moved to another id starts in the
        session of the new chat.
        """
        begins = self._scheduled_beginnings if _is_scheduled(run) else self._beginnings
        return await begins(_Beginning(storable(run), node))

    async def _begin(self, runs: Sequence[_Beginning]) -> list[RunStartResult | StoreError]:
        """Start runs. Usually this node owns the sessions, because it accepted their messages."""
        async with self._pool.connection() as connection:
            begun, left_over = await begin(
                connection,
                _once([one.run for one in runs]),
                runs[0].node,
                durable=runs[0].run.durable,
            )
        if left_over:
            async with self._pool.transaction() as connection:
                await close_abandoned(connection, now=runs[0].run.started_at)
        strange = _once([one.run for one in runs if one.run.id not in begun])
        begun |= await self._begin_in_strange(strange, runs[0].node)
        return [begun.get(one.run.id) or await self._begin_anyhow(*one) for one in runs]

    async def _begin_scheduled(
        self, runs: Sequence[_Beginning]
    ) -> list[RunStartResult | StoreError]:
        """Start runs of jobs and heartbeats. Usually no node owns their sessions."""
        begun = await self._begin_in_strange(_once([one.run for one in runs]), runs[0].node)
        return [begun.get(one.run.id) or await self._begin_anyhow(*one) for one in runs]

    async def _begin_in_strange(
        self, runs: Sequence[NewRun], node: NodeId
    ) -> dict[RunId, RunStartResult]:
        """Start runs in sessions that must be created or claimed, such as those of jobs.

        Leaves out runs that need separate treatment.
        """
        if len(runs) < 2:
            return {}
        try:
            async with self._pool.transaction() as connection:
                runs = await with_their_times(connection, runs, node)
                if not runs:
                    return {}
                owned = await own_sessions(connection, runs, node)
                runs = [run for run in runs if run.session in owned]
                if not runs:
                    raise Fenced("none of the sessions is to be had")
                begun, left_over = await begin(connection, runs, node)
                if left_over:
                    await close_abandoned(connection, now=runs[0].started_at)
        except Fenced:
            return {}  # No session was made: each of the runs tells for itself.
        return begun

    async def _begin_anyhow(self, run: NewRun, node: NodeId) -> RunStartResult | StoreError:
        """Start a run that was started before, or whose session must be created or claimed."""
        try:
            async with self._pool.transaction() as connection:
                key = await own_session(connection, run, node)
                begun, left_over = await begin(connection, [replace(run, session=key)], node)
                if left_over:
                    await close_abandoned(connection, now=run.started_at)
                return begun.get(run.id) or await begun_before(connection, run, node, key)
        except (Fenced, LeaseExpired) as error:
            return error

    async def note_run(self, run: RunId, known: RunSoFar, *, node: NodeId) -> None:
        """Lock only the run."""
        await self._notes(_Note(storable(run), known, node))

    async def _note(self, notes: Sequence[_Note]) -> list[StoreError | None]:
        new = [(note.id, note.known.seq, note.known.steps) for note in notes]
        found = await self._pool.fetch(
            _SQL["note"],
            notes[0].node,
            orjson.dumps([_note_line(note) for note in notes]).decode(),
            [note.id for note in notes],
            *steps.columns(new),
            *steps.steered_rows(new),
        )
        noted = {row["id"] for row in found}
        return [
            None if note.id in noted else Fenced(f"run {note.id} is not this node's any more")
            for note in notes
        ]

    async def finish_run(self, end: RunEnd, *, node: NodeId) -> None:
        """Add the history to the epoch in which the run started, even after a reset."""
        ends = self._scheduled_endings if _is_scheduled(end) else self._endings
        await ends(_Ending(storable(end.id), end, node))

    async def _finish(self, endings: Sequence[_Ending]) -> list[StoreError | None]:
        """End runs: most of them, of which all is known, in one statement without a transaction."""
        node = endings[0].node
        ended: set[str] = set()
        if all(one.node == node and _is_plain(one.end) for one in endings):
            columns = _end_columns(_once(endings), node)
            ended = {row["id"] for row in await self._pool.fetch(_SQL["finish"], *columns)}
        others = [ending for ending in endings if ending.id not in ended]
        refused = iter(await self._finish_others(others))
        return [None if ending.id in ended else next(refused) for ending in endings]

    async def _finish_others(self, endings: Sequence[_Ending]) -> list[StoreError | None]:
        """End runs with jobs, heartbeats, drafts or questions, and find out why one cannot end."""
        if not endings:
            return []
        ids = [ending.id for ending in endings]
        async with self._pool.transaction() as connection:
            locked = await connection.fetch(_SQL["lock_sessions_of_runs"], ids)
            found = {row["id"]: row for row in locked}
            works = await RunSubjects.of(
                connection, [one.end for one in endings if _is_at_work(found.get(one.id))]
            )
            refused = [
                _refusal(one.end, found.get(one.id), one.node) or works.refusal(one.end, one.node)
                for one in endings
            ]
            ending = _once(
                one for one, error in zip(endings, refused, strict=True) if error is None
            )
            ends = works.silenced([one.end for one in ending])
            ending = [
                one._replace(end=_marked(end, found[one.id]))
                for one, end in zip(ending, ends, strict=True)
            ]
            for one in ending:
                if (summary := one.end.summary) is not None:
                    # Before the end, which nothing may follow.
                    await connection.fetch(_SQL["summarize"], one.id, summary.text, summary.upto)
            asking = [one.end for one in ending if one.end.reason is Reason.APPROVAL]
            if asking:
                await ask(connection, asking)
            if ending:
                told = await connection.row(_SQL["finish"], *_end_columns(ending, None))
                await works.end(connection, ends)
                # Also one of a message that this run has taken in.
                if (told and told["left_over"]) or any(one.end.taken_in for one in ending):
                    await close_abandoned(connection, now=_last(ending))
        return refused

    async def reset_session(self, key: SessionKey, *, now: datetime) -> None:
        await self._pool.fetch(_SQL["reset"], key, now)

    async def pin(self, key: SessionKey, pinned: Collection[str], *, run: RunId) -> bool:
        """Wait for an ownership transfer in progress; then return False, as the run has ended."""
        async with self._pool.transaction() as connection:
            await connection.fetch(_SQL["lock_sessions_of_runs"], [run])
            return await connection.row(_SQL["pin"], key, list(pinned), run) is not None

    async def choose_mode(self, key: SessionKey, mode: Mode | None) -> None:
        await self._pool.fetch(_SQL["choose_mode"], key, mode)

    async def note(
        self, key: SessionKey, entry: HistoryEntry, *, rows: Collection[int], now: datetime
    ) -> None:
        async with self._pool.transaction() as connection:
            session = await connection.row(_SQL["lock_session"], key)
            ended = await connection.fetch(
                _INBOX["settle"], list(rows), Outcome.COMPLETED, None, now, None
            )
            if session is not None and (ended or not rows):
                columns = stored_entry_columns([StoredEntry(entry, now, None)])
                await connection.fetch(_SQL["remember"], key, session["epoch"], *columns)


def _session_of(beginning: _Beginning) -> tuple[SessionKey]:
    return (beginning.run.session,)


def _run_of(one: _Ending | _Note) -> tuple[RunId]:
    return (one.id,)


def _is_scheduled(run: NewRun | RunEnd) -> bool:
    """Return whether it concerns an occurrence of a job, or a heartbeat run."""
    return run.occurrence is not None or run.heartbeat_run is not None


def _once(items: Iterable[Item]) -> list[Item]:
    """Return the first item of each run; further ones are repeated calls."""
    first: dict[RunId, Item] = {}
    for item in items:
        first.setdefault(item.id, item)
    return list(first.values())


def _is_at_work(run: Row | None) -> bool:
    return run is not None and run["outcome"] is None


def _is_plain(end: RunEnd) -> bool:
    """Return whether an end concerns only its run, its messages and its history."""
    return (
        end.summary is None
        and end.occurrence is None
        and end.heartbeat_run is None
        and not end.taken_in
        and end.reason is not Reason.APPROVAL
    )


def _last(endings: Iterable[_Ending]) -> datetime:
    return max(one.end.finished_at for one in endings)


def _marked(end: RunEnd, run: Row) -> RunEnd:
    """Return an end whose messages are marked with what the run executed."""
    said = rules.marked(end.say, occurrence=run["occurrence"], heartbeat_run=run["heartbeat_run"])
    return replace(end, say=said)


def _refusal(end: RunEnd, run: Row | None, node: NodeId) -> StoreError | None:
    """Return why a run cannot be ended; None if it can, or this node has ended it."""
    if run is None:
        return RunNotStarted(f"run {end.id} never began")
    if run["outcome"] == Outcome.LOST != end.outcome:
        return Fenced(f"run {end.id} was given up: {run['error'] or 'its node was dead'}")
    if run["outcome"] is not None and run["node"] == node and run["node_exists"]:
        return None
    if (run["node"], run["owner"], run["session_fence"]) != (node, node, run["fence"]):
        return Fenced(f"session {run['session']} has changed hands since {end.id} began")
    return None


def _end_columns(endings: Sequence[_Ending], node: NodeId | None) -> tuple[object, ...]:
    """Return the arguments of ``runs.finish``."""
    entries = [(one.id, entry) for one in endings for entry in one.end.history]
    said = [(one.id, message) for one in endings for message in one.end.say]
    return (
        orjson.dumps([_end_line(one) for one in endings]).decode(),
        [one.id for one in endings],
        [run_id for run_id, _ in entries],
        *entry_columns([entry for _, entry in entries]),
        [run_id for run_id, _ in said],
        *rows.outbox_columns([message for _, message in said]),
        Notice.OUTBOX,
        node,
    )


def _end_line(ending: _Ending) -> dict[str, object]:
    """Return a record for ``runs.finish``."""
    end = ending.end
    return {
        "id": ending.id,
        "outcome": end.outcome,
        "finished_at": end.finished_at,
        "reason": end.reason,
        "error": storable(end.error),
        "first_text_at": end.first_text_at,
        "taken_in": end.taken_in,
        "asked_at": end.asked_at,
        **_progress(end),
        **({"notes": end.notes} if end.notes else {}),
    }


def _note_line(note: _Note) -> dict[str, object]:
    """Return a record for ``runs.note``."""
    return {"id": note.id, **_progress(note.known)}


def _progress(known: RunEnd | RunSoFar) -> dict[str, object]:
    usage = known.usage
    line: dict[str, object] = {
        "model": storable(known.model) or None,
        "tools": storable(known.tools) or None,
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
