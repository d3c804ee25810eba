"""The facts of a scenario, read from the tables in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from goclaw_py.records import InboxKind
from goclaw_py.schedule.heartbeat.models import OPEN
from goclaw_py.testing.clock import START
from tests.chaos.facts import Claim, Facts, HeartbeatFact, Message, Occurrence, Post, Run
from tests.support.memory_store import MemoryDatabase
from tests.support.memory_store.tables import InboxRecord, OutboxRecord, RunRow


def facts(database: MemoryDatabase) -> Facts:
    """All that the tables tell."""
    jobs, heartbeat_runs = database.cron, database.heartbeat_runs
    return Facts(
        messages=tuple(map(_message, database.inbox.values())),
        runs=tuple(map(_run, database.runs.values())),
        posts=tuple(map(_post, database.outbox.values())),
        occurrences=tuple(
            Occurrence(
                row.id,
                row.job,
                _seconds(row.scheduled_at),
                row.status.value,
                row.finished_at is not None,
                row.manual,
            )
            for row in jobs.logs.values()
        ),
        heartbeat_runs=tuple(
            HeartbeatFact(row.id, row.agent, row.status.value, row.status not in OPEN)
            for row in heartbeat_runs.rows.values()
        ),
        claims=tuple(_claims(database)),
    )


def _message(row: InboxRecord) -> Message:
    return Message(
        row.id,
        row.session,
        row.message.target.chat,
        row.message.text,
        row.outcome,
        row.attempts,
        row.run_id,
        row.kind is InboxKind.COMMAND,
        row.reason,
        None if row.finished_at is None else _seconds(row.finished_at),
        _seconds(row.message.sent_at),
    )


def _run(row: RunRow) -> Run:
    new, end = row.new, row.end
    return Run(
        new.id,
        new.session,
        row.node,
        new.trigger,
        _seconds(new.started_at),
        None if end is None else _seconds(end.finished_at),
        None if end is None else end.outcome,
        new.occurrence,
        new.heartbeat_run,
    )


def _post(row: OutboxRecord) -> Post:
    message = row.message
    return Post(
        row.id,
        message.target.chat,
        message.text,
        row.state,
        row.possible_duplicate,
        message.run_id,
        message.occurrence,
        message.alert,
        _seconds(row.created_at),
        heartbeat_run=message.heartbeat_run,
        sends=max(1, row.attempts),
    )


def _claims(database: MemoryDatabase) -> Iterator[Claim]:
    owned: Iterable[tuple[str, str, str | None]] = (
        *(("session", one.key, one.owner) for one in database.sessions.values()),
        *(("lease", name, one.owner) for name, one in database.leases.items()),
        *(("node", node, node) for node in database.nodes),
        *(("call", str(key), one.node) for key, one in database.calls.rows.items()),
        *(
            ("heartbeat_run", one.agent, one.node)
            for one in database.heartbeat_runs.heartbeats.values()
        ),
    )
    for kind, key, node in owned:
        if node is not None:
            yield Claim(kind, key, node)
    for lane, line in database.lane_permits.lanes.items():
        for number, place in line.items():
            yield Claim("lane place", f"{lane} {number}", place.node)
    for run in database.drafts:
        yield Claim("draft", run, None)
    for job in database.cron.jobs.values():
        if job.running is not None:
            yield Claim("job", job.id, None)


def _seconds(instant: datetime) -> float:
    return (instant - START).total_seconds()
