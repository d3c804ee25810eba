"""A database with many rows of each kind, made from one that the store has written.

The newest rows are those with the greatest numbers. Of what can be asked for some is in most rows,
and some in one of a thousand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from goclaw_py.core.ids import MAIN_AGENT, MAIN_LANE, AgentName, LaneName, NodeId, RunId, SessionKey
from goclaw_py.core.messages import (
    HistoryEntry,
    InboundMessage,
    OutboundMessage,
    PeerKind,
    Role,
    Sender,
    Target,
)
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.records import NewInbox, NewRun, Node, RunEnd, ToolCall
from goclaw_py.store.postgres import Address, PostgresStore, connection

NOW: Final = datetime(2026, 1, 2, 3, 0, tzinfo=UTC)
CHAT: Final = Target("telegram", "default", "1")
SESSION: Final = SessionKey("agent:main:telegram:direct:1")
RARE: Final = AgentName("rare")
_FIRST: Final = RunId("first")

_FILL: Final[Mapping[str, str]] = {
    "sessions": """
insert into sessions (key, agent, channel, account, chat, created_at, last_active_at, peer,
    last_sender, last_heard_at)
select 'agent:main:telegram:direct:' || n, 'main', 'telegram', 'default', n::text,
    $2::timestamptz, t, 'direct', n::text, t
from generate_series(2, $1::integer) as n,
    lateral (select $2::timestamptz + n * interval '1 second' as t) as o
""",
    "history": """
insert into history (session, epoch, role, text, run_id, at)
select 'agent:main:telegram:direct:' || n, 0, role, repeat('word ', 40),
    'run-' || lpad(n::text, 9, '0'), $2::timestamptz
from generate_series(2, $1::integer) as n, unnest(array['user', 'assistant']) as role
""",
    "chats": """
insert into chats (channel, account, chat, peer, name, first_seen_at, last_seen_at)
select 'telegram', 'default', n::text, 'direct', 'Name ' || n, $2::timestamptz,
    $2::timestamptz + n * interval '1 second'
from generate_series(1, $1::integer) as n
""",
    "people": """
insert into people (channel, account, sender_id, name, username, role, approved_at)
select 'telegram', 'default', n::text, 'Name ' || n, 'name', 'guest',
    $2::timestamptz + n * interval '1 second'
from generate_series(1, $1::integer) as n
""",
    "runs": """
insert into runs (id, session, agent, trigger, lane, node, fence, epoch, model, channel, account,
    chat, started_at, finished_at, submitted_at, outcome, error, requests, input_tokens,
    output_tokens, cached_tokens, cost_usd, tools)
select 'run-' || lpad(n::text, 9, '0'), 'agent:main:telegram:direct:' || n,
    case when n % 1000 = 7 then 'rare' else 'main' end,
    case when n % 1000 = 8 then 'subagent' when n % 3 = 0 then 'cron' else r.trigger end,
    r.lane, r.node, 1, 0, r.model, 'telegram', 'default', n::text, t,
    case when n % 1000 = 9 then null else t + interval '5 seconds' end, t - interval '1 second',
    case n % 1000 when 9 then null when 10 then 'abandoned' else
        case when n % 5 = 0 then 'failed' else 'completed' end end,
    null, 1, 2, 3, 4, 0.01, r.tools
from generate_series(2, $1::integer) as n,
    lateral (select $2::timestamptz + n * interval '1 second' as t) as o,
    (select * from runs where id = 'first') as r
""",
    "inbox": """
insert into inbox (channel, account, external_id, session, agent, kind, state, message, attempts,
    received_at, finished_at, outcome)
select 'telegram', s.state, n::text, 'agent:main:telegram:direct:' || n, 'main', 'message', s.state,
    i.message, 1, $2::timestamptz, case s.state when 'done' then $2::timestamptz end,
    case s.state when 'done' then 'failed' end
from generate_series(1, $1::integer) as n, unnest(array['done', 'pending']) as s (state),
    (select message from inbox limit 1) as i
""",
    "outbox": """
insert into outbox (channel, account, chat, session, message, state, attempts, owner, created_at,
    next_attempt_at, finished_at, error)
select 'telegram', 'default', n::text, null,
    o.message || jsonb_build_object('run_id', 'run-' || lpad(n::text, 9, '0')), s.state, 1,
    case when s.state = 'pending' and n % 1000 = 0 then r.node end,
    $2::timestamptz, $2::timestamptz,
    case when s.state <> 'pending' then $2::timestamptz end, null
from generate_series(1, $1::integer) as n,
    lateral (
        select case
            when n % 1000 = 0 then 'pending' else
            (array['pending', 'dead', 'dropped', 'sent', 'sent'])[1 + n % 5]
        end as state
    ) as s,
    (select message from outbox limit 1) as o, (select node from runs where id = 'first') as r
""",
    "occurrences": """
insert into job_runs (id, job, slug, owner, scheduled_at, claimed_at, started_at, finished_at,
    status, definition)
select 'o' || lpad(n::text, 9, '0'), 'j' || n % 100, 'job-' || n % 100, 'operator', t, t, t, t,
    case when n % 1000 = 0 then 'timed_out' when n % 5 = 0 then 'failed' else 'ok' end, '{}'
from generate_series(1, $1::integer) as n,
    lateral (select $2::timestamptz + n * interval '1 second' as t) as o
""",
    "heartbeat_runs": """
insert into heartbeat_runs (id, agent, kind, due_at, claimed_at, started_at, finished_at,
    status, skip)
select 'b' || lpad(n::text, 9, '0'), 'a' || n % 100, 'interval', t, t, t, t,
    case when n % 1000 = 0 then 'failed' when n % 3 = 0 then 'skipped' else 'ok' end,
    case when n % 1000 <> 0 and n % 3 = 0 then
        case when n % 1000 = 3 then 'budget' else 'empty' end
    end
from generate_series(1, $1::integer) as n,
    lateral (select $2::timestamptz + n * interval '1 second' as t) as o
""",
    # They were copied from one that the store has made: most are the operator's.
    "jobs": """
update cron_jobs
set owner = case n % 1000 when 7 then 'rare' when 17 then 'far' else 'operator' end,
    state = case when n % 1000 = 27 then 'paused' else state end
from (select id as i, row_number() over (order by slug) as n from cron_jobs) as r
where id = i and n <= $1::integer
""",
}


async def fill(store: PostgresStore, address: Address, rows: int) -> None:
    """Put so many rows of each kind into an empty database."""
    await templates(store)
    begin = NOW - timedelta(seconds=rows)
    async with connection(address) as one:
        for statement in _FILL.values():
            arguments = (rows, begin) if "$2" in statement else (rows,)
            await one.fetch(statement, *arguments)
        await one.script("vacuum analyze", timeout_s=300)


async def templates(store: PostgresStore) -> None:
    """Store one of each kind as a gateway does; its run is called ``first``."""
    node = NodeId("bench")
    begin = NOW - timedelta(days=30)
    await store.join(Node(node, "bench", 1, "0", begin, NOW + timedelta(days=9999)))
    message = InboundMessage(
        "x", CHAT, PeerKind.DIRECT, Sender("1", "Ann", "ann"), "word " * 40, begin, "1"
    )
    (row,) = (
        await store.accept([NewInbox(message, SESSION, MAIN_AGENT)], node=node, now=begin)
    ).rows
    run = NewRun(
        _FIRST, SESSION, MAIN_AGENT, Trigger.CHAT, LaneName(MAIN_LANE), (row.id,), CHAT, begin
    )
    await store.begin_run(replace(run, model="model-1"), node=node)
    call = ToolCall(
        "read_file", '{"path": "notes.md"}', begin, seconds=0.1, ok=True, result="x" * 200
    )
    end = RunEnd(
        _FIRST,
        Outcome.COMPLETED,
        begin,
        tools=(call,) * 3,
        history=(HistoryEntry(Role.USER, "x"), HistoryEntry(Role.ASSISTANT, "y")),
        say=(OutboundMessage(CHAT, "word " * 40, run_id=_FIRST),),
    )
    await store.finish_run(end, node=node)
