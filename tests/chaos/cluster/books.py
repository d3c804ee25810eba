"""The rows of a database, the transcript and the journal, as facts for the invariants."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from goclaw_py.store.postgres import Address, connection
from goclaw_py.store.postgres.pool import Connection
from tests.botapi.records import Sighting
from tests.chaos.facts import (
    Claim,
    Facts,
    HeartbeatFact,
    Message,
    Occurrence,
    Post,
    Run,
    Said,
    Seen,
    Timetable,
    Worked,
)

_MESSAGES: Final = """
select id, session, message ->> 'chat' as chat, split_part(session, ':', 5) as direct,
    message ->> 'text' as text, outcome, attempts, run_id, kind, reason
from inbox
order by id
"""
_RUNS: Final = """
select id, session, node, trigger, started_at, finished_at, outcome, occurrence, heartbeat_run
from runs
"""
_POSTS: Final = """
select id, chat, message ->> 'text' as text, state, possible_duplicate, occurrence, alert,
    message ->> 'run_id' as run, created_at, message ->> 'draft' is not null as draft,
    heartbeat_run, attempts
from outbox
"""
_OCCURRENCES: Final = """
select id, job, scheduled_at, status, finished_at, manual
from job_runs
"""
_HEARTBEAT_RUNS: Final = """
select id, agent, status, finished_at
from heartbeat_runs
"""
_TIMETABLES: Final = """
select id, created_at, coalesced, spec #>> '{schedule,origin}' as origin,
    (spec #>> '{schedule,every_ms}')::float8 / 1000 as every_s
from cron_jobs
where spec #>> '{schedule,origin}' is not null
"""
_CLAIMS: Final = """
select 'session' as kind, key, owner as node from sessions where owner is not null
union all select 'lease', name, owner from leases where owner is not null
union all select 'post', id::text, owner from outbox where owner is not null
union all select 'draft', run_id, null from drafts
union all select 'occurrence', id, node from job_runs where node is not null
union all select 'running job', id, running from cron_jobs where running is not null
union all select 'heartbeat run', agent, node from heartbeats where node is not null
union all select 'place in a lane', lane, node from lane_slots
union all select 'node', id, id from nodes
union all select 'call', id::text, node from node_calls
"""
_NODES: Final = "select id, host, pid, lease_until from nodes"
_LEFT: Final = """
select
    (select count(*) from inbox where state = 'pending') as inbox,
    (select count(*) from outbox where state in ('pending', 'sending')) as outbox,
    (select count(*) from runs where outcome is null) as runs,
    (select count(*) from drafts) as drafts,
    (select count(*) from job_runs where finished_at is null) as occurrences,
    (select count(*) from heartbeat_runs where finished_at is null) as beats
"""
_GROWING: Final = "…"
"""How a text ends that will grow."""
_CLOSED: Final = ("⏹ Stopped.", "⚠️ This answer was cut off.")
"""How a draft ends that no reply finishes."""
_WAITING: Final = """
select s.key
from sessions as s
join nodes as n on n.id = s.owner and n.pid = $1
where exists (select from inbox as i where i.session = s.key and i.state = 'pending')
  and ($2 or not exists (select from runs as r where r.session = s.key and r.outcome is null))
"""


@dataclass(frozen=True, slots=True)
class Noted:
    """One run in the journal. ``ended`` is None if its process was gone before that."""

    run: str
    session: str
    trigger: str
    pid: int
    began: float
    ended: float | None


class Books:
    """Reads one database, past the lines of the gateways."""

    def __init__(self, opened: Connection) -> None:
        self._opened = opened

    async def left(self) -> Mapping[str, int]:
        """How much of what is not done, by kind."""
        (row,) = await self._opened.fetch(_LEFT)
        return {key: count for key, count in dict(row).items() if count}

    async def waiting(self, pid: int, *, begun: bool) -> frozenset[str]:
        """The sessions of a process in which something waits; ``begun``: or is worked on."""
        rows = await self._opened.fetch(_WAITING, pid, begun)
        return frozenset(row["key"] for row in rows)

    async def nodes(self) -> Sequence[Mapping[str, Any]]:
        """The rows of nodes."""
        return [dict(row) for row in await self._opened.fetch(_NODES)]

    async def facts(self) -> Facts:
        """All that the database knows."""
        fetch = self._opened.fetch
        return Facts(
            messages=tuple(_message(row) for row in await fetch(_MESSAGES)),
            runs=tuple(_run(row) for row in await fetch(_RUNS)),
            posts=tuple(_post(row) for row in await fetch(_POSTS)),
            occurrences=tuple(
                Occurrence(
                    row["id"],
                    row["job"],
                    row["scheduled_at"].timestamp(),
                    row["status"],
                    row["finished_at"] is not None,
                    row["manual"],
                )
                for row in await fetch(_OCCURRENCES)
            ),
            heartbeat_runs=tuple(
                HeartbeatFact(
                    row["id"], row["agent"], row["status"], row["finished_at"] is not None
                )
                for row in await fetch(_HEARTBEAT_RUNS)
            ),
            claims=tuple(
                Claim(row["kind"], row["key"], row["node"]) for row in await fetch(_CLAIMS)
            ),
            timetables=tuple(timetable(row) for row in await fetch(_TIMETABLES)),
        )


async def read(address: Address) -> Facts:
    """The facts of a database."""
    async with connection(address) as opened:
        return await Books(opened).facts()


def _message(row: Mapping[str, Any]) -> Message:
    return Message(
        place=row["id"],
        session=row["session"],
        chat=row["chat"] or row["direct"],
        text=row["text"],
        outcome=row["outcome"],
        attempts=row["attempts"],
        run=row["run_id"],
        command=row["kind"] == "command",
        reason=row["reason"],
    )


def _run(row: Mapping[str, Any]) -> Run:
    ended: datetime | None = row["finished_at"]
    return Run(
        row["id"],
        row["session"],
        row["node"],
        row["trigger"],
        row["started_at"].timestamp(),
        None if ended is None else ended.timestamp(),
        row["outcome"],
        row["occurrence"],
        row["heartbeat_run"],
    )


def _post(row: Mapping[str, Any]) -> Post:
    return Post(
        row["id"],
        row["chat"],
        row["text"] or "",
        row["state"],
        row["possible_duplicate"],
        row["run"],
        row["occurrence"],
        row["alert"] or "",
        row["created_at"].timestamp(),
        row["draft"],
        row["heartbeat_run"],
        max(1, row["attempts"]),
    )


def timetable(row: Mapping[str, Any]) -> Timetable:
    """Of a job on a grid. It is due after the moment in which it was made (SPEC CRON-3)."""
    every, origin = row["every_s"], datetime.fromisoformat(row["origin"]).timestamp()
    steps = math.floor((row["created_at"].timestamp() - origin) / every) + 1
    return Timetable(row["id"], origin + steps * every, every, row["coalesced"])


# ---------------------------------------------------------------------------- from outside


def seen(chat: int, sightings: Iterable[Sighting], posts: Iterable[Post]) -> list[Seen]:
    """The whole messages of a chat: no draft that grows, and none that was closed for no post."""
    posted = {post.text for post in posts if post.chat == str(chat)}
    return [
        Seen(str(chat), str(one.message_id), one.text, one.since)
        for one in sightings
        if one.text in posted or not one.text.endswith((_GROWING, *_CLOSED))
    ]


def said(sayings: Iterable[tuple[int, str]]) -> tuple[Said, ...]:
    """What people wrote, when all of it was confirmed."""
    return tuple(Said(str(chat), text) for chat, text in sayings)


def journal(file: Path) -> list[Noted]:
    """The runs that the agent has noted, in the order of their begins."""
    begun: dict[str, dict[str, Any]] = {}
    ended: dict[str, float] = {}
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    for line in map(json.loads, lines):
        if line["event"] == "begin":
            begun[line["run"]] = line
        else:
            ended[line["run"]] = line["at"]
    return [
        Noted(run, one["session"], one["trigger"], one["pid"], one["at"], ended.get(run))
        for run, one in begun.items()
    ]


def worked(noted: Iterable[Noted], frozen: Collection[int]) -> tuple[Worked, ...]:
    """The journal as facts; ``frozen`` are the processes that stood still for a while."""
    return tuple(
        Worked(one.run, one.session, one.began, one.ended, stood_still=one.pid in frozen)
        for one in noted
    )
