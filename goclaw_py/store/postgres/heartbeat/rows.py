"""Conversion of rows of heartbeats and heartbeat runs to values and back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from goclaw_py.core.ids import AgentName, HeartbeatRunId, NodeId, RunId
from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.core.run_events import Usage
from goclaw_py.records import OutboxState
from goclaw_py.schedule.heartbeat.models import (
    Heartbeat,
    HeartbeatClaim,
    HeartbeatEvent,
    HeartbeatRun,
    HeartbeatRunEnd,
    HeartbeatRunStatus,
    PreconditionQuery,
    Skip,
    Undelivered,
)
from goclaw_py.store import heartbeat_rules
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.messages.message_json import outbound
from goclaw_py.store.postgres.pool import Row

_US = timedelta(microseconds=1)


def heartbeat(row: Row) -> Heartbeat:
    """Convert a row of ``heartbeats``."""
    return Heartbeat(
        agent=AgentName(row["agent"]),
        interval=None if row["interval_us"] is None else row["interval_us"] * _US,
        anchor=row["anchor"],
        next_at=row["next_at"],
        wake_at=row["wake_at"],
        wake_kind=None if row["wake_kind"] is None else HeartbeatRunKind(row["wake_kind"]),
        switched=row["switched"],
        muted_until=row["muted_until"],
        began_at=row["began_at"],
        failures=row["failures"],
        heartbeat_run=None
        if row["heartbeat_run"] is None
        else HeartbeatRunId(row["heartbeat_run"]),
        node=None if row["node"] is None else NodeId(row["node"]),
    )


def columns(heartbeats: Sequence[Heartbeat]) -> tuple[list[object], ...]:
    """Return the arrays for ``heartbeat_runs.put``."""
    return (
        [one.agent for one in heartbeats],
        [None if one.interval is None else one.interval // _US for one in heartbeats],
        [one.anchor for one in heartbeats],
        [one.next_at for one in heartbeats],
        [one.wake_at for one in heartbeats],
        [one.wake_kind for one in heartbeats],
        [one.switched for one in heartbeats],
        [one.muted_until for one in heartbeats],
        [one.began_at for one in heartbeats],
    )


def claimed(row: Row) -> HeartbeatClaim:
    """Return a heartbeat with the run that was claimed."""
    return HeartbeatClaim(
        id=HeartbeatRunId(row["heartbeat_run"]),
        agent=AgentName(row["agent"]),
        kind=HeartbeatRunKind(row["kind"]),
        due_at=row["due_at"],
        claimed_at=row["claimed_at"],
        next_at=row["next_at"],
        heartbeat=heartbeat(row),
    )


def end_line(end: HeartbeatRunEnd, holder: NodeId | None) -> dict[str, object]:
    """Return a record for ``heartbeat_runs.end``; without a holder none is refused."""
    place = rows.TargetColumns.of(end.target)
    line: dict[str, object] = {
        "id": end.id,
        "agent": end.agent,
        "holder": holder,
        "status": heartbeat_rules.stored_status(end.status),
        "skip": end.skip,
        "detail": end.detail,
        "reply": end.reply,
        "channel": place.channel,
        "account": place.account,
        "chat": place.chat,
        "thread": place.thread,
        "started_at": end.started_at,
        "finished_at": end.finished_at,
        "noted_at": end.noted_at,
        "attempts": end.attempts,
        "failed": end.failed,
        "events": end.events,
        "done": end.done,
    }
    if (usage := end.usage) is not None:
        line |= rows.usage_line(usage)
    return line


def used(row: Row) -> Usage | None:
    """Return the usage of runs; None if there is none."""
    return None if row["requests"] is None else rows.usage(row)


def heartbeat_run(row: Row) -> HeartbeatRun:
    """Convert a row of ``heartbeat_runs`` with its agent runs and messages."""
    found = HeartbeatRun(
        id=HeartbeatRunId(row["id"]),
        agent=AgentName(row["agent"]),
        kind=HeartbeatRunKind(row["kind"]),
        due_at=row["due_at"],
        claimed_at=row["claimed_at"],
        status=HeartbeatRunStatus(row["status"]),
        started_at=row["started_at"] or row["began_at"],
        finished_at=row["finished_at"],
        skip=None if row["skip"] is None else Skip(row["skip"]),
        detail=row["detail"],
        reply=row["reply"],
        target=rows.target(row),
        attempts=row["attempts"],
        node=None if row["node"] is None else NodeId(row["node"]),
        usage=used(row),
        runs=tuple(map(RunId, row["runs"])),
    )
    return heartbeat_rules.shown(found, [OutboxState(one) for one in row["states"]], row["errors"])


def event(row: Row) -> HeartbeatEvent:
    """Convert a row of ``heartbeat_events``."""
    return HeartbeatEvent(row["id"], AgentName(row["agent"]), row["text"], row["at"])


def looks(agent: AgentName, row: Row) -> PreconditionQuery:
    """Convert the row of ``heartbeat_runs.look``."""
    events = zip(row["event_ids"], row["event_texts"], row["event_times"], strict=True)
    return PreconditionQuery(
        events=tuple(HeartbeatEvent(number, agent, text, at) for number, text, at in events),
        done=dict(zip(row["keys"], row["done"], strict=True)),
        is_busy=row["is_busy"],
        spent=used(row),
    )


def undelivered(row: Row) -> Undelivered:
    """Convert an undelivered alert."""
    return Undelivered(
        heartbeat_run=HeartbeatRunId(row["id"]),
        agent=AgentName(row["agent"]),
        target=rows.target(row) or outbound(row["message"]).target,
        said=tuple(map(outbound, row["said"])),
        why=row["error"] or "",
    )
