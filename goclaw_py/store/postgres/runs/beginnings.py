"""Starting runs, and claiming their sessions, within other transactions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import reduce

import orjson

from goclaw_py.core.errors import Fenced, LeaseExpired, StoreUnavailable
from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.messages import LostDraft
from goclaw_py.core.run_events import NO_USAGE, Usage
from goclaw_py.core.run_steps import RunStep
from goclaw_py.records import NewRun, RunStartResult, ToolCall
from goclaw_py.store import rules
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.part import claim
from goclaw_py.store.postgres.pool import Connection, Row
from goclaw_py.store.postgres.runs import steps
from goclaw_py.store.sql import queries

_SQL = queries("runs")


async def begin(
    connection: Connection, runs: Sequence[NewRun], node: NodeId, *, durable: bool = True
) -> tuple[dict[RunId, RunStartResult], bool]:
    """Start new runs in sessions that the node owns.

    Unless ``durable``, the commit does not wait for the disk. Also returns whether a draft was left
    that none of them continues.
    """
    found = await connection.fetch(
        _SQL["begin"],
        node,
        orjson.dumps([_line(run) for run in runs]).decode(),
        [run.session for run in runs],
        [row for run in runs for row in (*run.inbox, *(one.row for one in run.dropped))],
        durable,
    )
    begun = {RunId(run_id): await _begun(connection, told) for run_id, told in _each(found).items()}
    return begun, any(row["left_over"] for row in found[:1])


async def begun_before(
    connection: Connection, run: NewRun, node: NodeId, session: SessionKey
) -> RunStartResult:
    """Return the result of a run that this node started before. Raises ``Fenced`` for others."""
    told = await connection.fetch(_SQL["begun_before"], run.id, session, list(run.inbox))
    if not told or told[0]["node"] != node or told[0]["outcome"] is not None:
        raise Fenced(f"run {run.id} is not this node's any more")
    return await _begun(connection, told)


async def with_their_times(
    connection: Connection, runs: Sequence[NewRun], node: NodeId
) -> list[NewRun]:
    """Return the runs whose occurrence or heartbeat run, if any, the node has claimed."""
    times = [run.occurrence for run in runs if run.occurrence is not None]
    heartbeat_runs = [run.heartbeat_run for run in runs if run.heartbeat_run is not None]
    lost: set[str | None] = set()
    if times:
        lost |= {row["id"] for row in await connection.fetch(_SQL["lost_times"], times, node)}
    if heartbeat_runs:
        lost |= {
            row["id"]
            for row in await connection.fetch(_SQL["lost_heartbeat_runs"], heartbeat_runs, node)
        }
    return [run for run in runs if run.occurrence not in lost and run.heartbeat_run not in lost]


async def own_sessions(
    connection: Connection, runs: Sequence[NewRun], node: NodeId
) -> set[SessionKey]:
    """Lock the runs' sessions, made and claimed for the node where that can be; those it owns.

    A run claims nothing for messages of which one is done, or before which others wait: whoever
    took them up owned the session then, and somebody else has had it in between.
    """
    places = [rows.TargetColumns.of(run.target) for run in runs]
    locked = await connection.fetch(
        _SQL["enter_sessions"],
        [run.session for run in runs],
        [run.agent for run in runs],
        [place.channel for place in places],
        [place.account for place in places],
        [place.chat for place in places],
        [place.thread for place in places],
        [run.started_at for run in runs],
        node,
    )
    late = await _not_next(connection, [(run.session, run) for run in runs])
    strange = [
        key
        for row in locked
        if row["owner"] != node and (key := SessionKey(row["key"])) not in late
    ]
    now = max(run.started_at for run in runs)
    claimed = await claim(connection, strange, node=node, now=now)
    return claimed | {SessionKey(row["key"]) for row in locked if row["owner"] == node}


async def own_session(connection: Connection, run: NewRun, node: NodeId) -> SessionKey:
    """Lock the run's session and claim it for the node; return its present key.

    Raises ``Fenced``, or ``LeaseExpired`` if the node must renew its lease first.
    """
    row = await connection.row(_SQL["lock_session"], run.session)
    if row is None:
        row = await _enter_session(connection, run)
    key, owner = SessionKey(row["key"]), row["owner"]
    if owner != node:
        if not await _not_next(connection, [(key, run)]):
            if await claim(connection, [key], node=node, now=run.started_at):
                return key
            if await connection.row(_SQL["overdue"], node, run.started_at) is not None:
                raise LeaseExpired(f"the lease of node {node} has ended")
        raise Fenced(f"session {key} belongs to {owner or 'nobody'}, not {node}")
    return key


async def _not_next(
    connection: Connection, runs: Sequence[tuple[SessionKey, NewRun]]
) -> set[SessionKey]:
    """Return locked sessions of runs with an ended message, or not with the oldest one."""
    asked = [(key, row) for key, run in runs for row in run.inbox]
    if not asked:
        return set()
    sessions, messages = map(list, zip(*asked, strict=True))
    found = await connection.fetch(_SQL["not_next"], sessions, messages)
    return {SessionKey(row["session"]) for row in found}


async def _enter_session(connection: Connection, run: NewRun) -> Row:
    """Lock the session that a run's session was moved into, or create it."""
    moved = await connection.row(_SQL["moved_to"], run.session)
    key = run.session if moved is None else SessionKey(moved["moved_to"])
    if moved is None:
        place = rows.TargetColumns.of(run.target)
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


def _each(found: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows of each run."""
    of_run: defaultdict[str, list[Row]] = defaultdict(list)
    for row in found:
        of_run[row["id"]].append(row)
    return of_run


async def _begun(connection: Connection, found: Sequence[Row]) -> RunStartResult:
    """Convert a row of ``runs.begin``, with the work of interrupted runs before it."""
    calls: tuple[ToolCall, ...] = ()
    used = NO_USAGE
    done: tuple[RunStep, ...] | None = ()
    is_restarted = False
    if (follows := found[0]["follows"]) is not None:
        calls, used, is_restarted = await interrupted_work(connection, follows)
        done = steps.read(await connection.fetch(_SQL["steps"], follows))
    first, entries = found[0], [row for row in found if row["role"]]
    return RunStartResult(
        tuple(map(rows.entry, entries)),
        draft=first["draft"],
        lost=_lost(first),
        places=tuple(row["place"] for row in entries),
        summary=first["summary"],
        pinned=tuple(first["pinned"]),
        ended=frozenset(first["ended"]),
        cut_calls=calls,
        cut_usage=used,
        steps=done,
        is_restarted=is_restarted,
    )


async def interrupted_work(
    connection: Connection, run: RunId
) -> tuple[tuple[ToolCall, ...], Usage, bool]:
    """Return the tool calls and the usage of a run and its predecessors that were interrupted.

    Also returns whether a crash or a shutdown has interrupted the run itself.
    """
    found = await connection.fetch(_SQL["interrupted_work"], run)
    calls = tuple(call for row in found for call in rows.calls(row["tools"]))
    used = (rows.usage(row) for row in found if row["requests"] is not None)
    is_restarted = any(
        row["id"] == run and rules.is_restarted(row["outcome"], row["reason"]) for row in found
    )
    return calls, reduce(Usage.plus, used, NO_USAGE), is_restarted


def _lost(row: Row) -> LostDraft | None:
    """Return a run's draft if its id is unknown."""
    if row["opened_by"] is None or row["draft"] is not None:
        return None
    return LostDraft(RunId(row["opened_by"]), row["after_message"])


def _line(run: NewRun) -> dict[str, object]:
    """Return a record for ``runs.begin``."""
    place = rows.TargetColumns.of(run.target)
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
        "occurrence": run.occurrence,
        "heartbeat_run": run.heartbeat_run,
        "call_key": run.call_key or None,
        "task": run.task,
        "dropped": [
            {"id": one.row, "outcome": one.outcome, "reason": one.reason} for one in run.dropped
        ],
    }
