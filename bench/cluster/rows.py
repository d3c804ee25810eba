"""A database that has been in use for long: all in it has ended, but for what a dead node left.

Rows are copies of those that a gateway has written for one message. The newest have the greatest
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from goclaw_py.store.postgres import Address, connection

DEAD: Final = "dead"
"""The node that left something."""

LEFT: Final = 200
"""So many sessions of it in the middle of a run, each with a message and a reply on its way."""

UNANSWERED: Final = 100
"""One message of so many has failed, and one reply of ten times as many is dead."""

_SECONDS: Final = 600.0

# Finished messages are kept for seven days, runs for ninety: the oldest tenth is to be forgotten.
_DAYS: Final = 7.7
_MONTHS: Final = 99.0

_FILL: Final[Mapping[str, str]] = {
    "sessions": """
insert into sessions (key, agent, channel, account, chat, created_at, last_active_at, peer,
    last_sender, last_heard_at)
select 'agent:main:desk:direct:' || n, 'main', 'desk', 'default', n::text, t, t, 'direct', n::text,
    t
from generate_series(2, {rows}) as n,
    lateral (select now() - (1 - n / {rows}.0) * interval '{months} days' as t) as o
""",
    "one-shot sessions": """
insert into sessions (key, agent, created_at, last_active_at)
select 'agent:main:heartbeat:' || '00000000-0000-7000-8000-' || lpad(n::text, 12, '0'), 'main', t, t
from generate_series(1, {logs}) as n,
    lateral (select now() - (1 - n / {logs}.0) * interval '33 days' as t) as o
""",
    "history": """
insert into history (session, epoch, role, text, run_id, at)
select 'agent:main:desk:direct:' || n, 0, role, repeat('word ', 40),
    'run-' || lpad(n::text, 9, '0'), now() - (1 - n / {rows}.0) * interval '{months} days'
from generate_series(2, {rows}) as n, unnest(array['user', 'assistant']) as role
""",
    "chats": """
insert into chats (channel, account, chat, peer, name, first_seen_at, last_seen_at)
select 'desk', 'default', n::text, 'direct', 'Name ' || n, now() - interval '{months} days',
    now() - (1 - n / {rows}.0) * interval '{months} days'
from generate_series(2, {rows}) as n
on conflict do nothing
""",
    "runs": """
insert into runs (id, session, agent, trigger, lane, node, fence, epoch, model, channel, account,
    chat, started_at, finished_at, submitted_at, outcome, requests, input_tokens, output_tokens,
    cached_tokens, cost_usd, tools)
select 'run-' || lpad(n::text, 9, '0'), 'agent:main:desk:direct:' || n, 'main', 'chat',
    r.lane, r.node, 1, 0, r.model, 'desk', 'default', n::text, t, t + interval '5 seconds',
    t - interval '1 second', case when n % {unanswered} = 0 then 'failed' else 'completed' end,
    1, 2000, 300, 0, 0.01, r.tools
from generate_series(2, {rows}) as n,
    lateral (select now() - (1 - n / {rows}.0) * interval '{months} days' as t) as o,
    (select * from runs limit 1) as r
""",
    "inbox": """
insert into inbox (channel, account, external_id, session, agent, kind, state, message, attempts,
    run_id, received_at, finished_at, outcome)
select 'desk', 'default', n::text, 'agent:main:desk:direct:' || n, 'main', 'message', 'done',
    i.message, 1, 'run-' || lpad(n::text, 9, '0'), t, t + interval '5 seconds',
    case when n % {unanswered} = 0 then 'failed' else 'completed' end
from generate_series(2, {rows}) as n,
    lateral (select now() - (1 - n / {rows}.0) * interval '{days} days' as t) as o,
    (select message from inbox limit 1) as i
""",
    "outbox": """
insert into outbox (channel, account, chat, session, message, state, attempts, created_at,
    next_attempt_at, finished_at, external_id)
select 'desk', 'default', n::text, 'agent:main:desk:direct:' || n,
    o.message || jsonb_build_object('run_id', 'run-' || lpad(n::text, 9, '0')),
    case when n % ({unanswered} * 10) = 0 then 'dead' else 'sent' end, 1, t, t, t, n::text
from generate_series(2, {rows}) as n,
    lateral (select now() - (1 - n / {rows}.0) * interval '{days} days' as t) as at,
    (select message from outbox limit 1) as o
""",
    "occurrences": """
insert into job_runs (id, job, slug, owner, scheduled_at, claimed_at, started_at, finished_at,
    status, definition)
select 'o' || lpad(n::text, 9, '0'), 'far-' || n % 1000, 'far-' || n % 1000, 'far', t, t, t, t,
    case when n % {unanswered} = 0 then 'failed' else 'ok' end, '{{}}'
from generate_series(1, {logs}) as n,
    lateral (select now() - (1 - n / {logs}.0) * interval '{months} days' as t) as o
""",
    "heartbeat_runs": """
insert into heartbeat_runs (id, agent, kind, due_at, claimed_at, started_at, finished_at,
    status, skip)
select 'b' || lpad(n::text, 9, '0'), 'a' || n % 100, 'interval', t, t, t, t,
    case when n % 3 = 0 then 'skipped' else 'ok' end, case when n % 3 = 0 then 'empty' end
from generate_series(1, {logs}) as n,
    lateral (select now() - (1 - n / {logs}.0) * interval '{months} days' as t) as o
""",
    "what a dead node left": """
insert into nodes (id, host, pid, release, started_at, lease_until)
values ('{dead}', 'elsewhere', 1, 'bench', now() - interval '1 day', now() - interval '1 second');
update sessions set owner = '{dead}', fence = 1
where key in (select 'agent:main:desk:direct:' || n from generate_series(2, {left} + 1) as n);
insert into runs (id, session, agent, trigger, lane, node, fence, epoch, model, channel, account,
    chat, started_at, submitted_at)
select 'left-' || n, 'agent:main:desk:direct:' || n, 'main', 'chat', 'main', '{dead}', 1, 0, '',
    'desk', 'default', n::text, now(), now()
from generate_series(2, {left} + 1) as n;
insert into inbox (channel, account, external_id, session, agent, kind, state, message, attempts,
    run_id, received_at)
select 'desk', 'default', 'left-' || n, 'agent:main:desk:direct:' || n, 'main', 'message',
    'pending', i.message || jsonb_build_object('external_id', 'left-' || n), 1, 'left-' || n, now()
from generate_series(2, {left} + 1) as n, (select message from inbox limit 1) as i;
update runs set inbox = array[i.id] from inbox as i
where i.run_id = runs.id and runs.node = '{dead}';
insert into outbox (channel, account, chat, session, message, state, owner, attempts, created_at,
    next_attempt_at)
select 'desk', 'default', n::text, 'agent:main:desk:direct:' || n, o.message, 'pending', '{dead}',
    0, now(), now()
from generate_series(2, {left} + 1) as n, (select message from outbox limit 1) as o;
""",
}


async def fill(address: Address, rows: int) -> None:
    """Put so many rows of each kind into a database in which one message has been answered.

    A fifth as many logs of jobs and of heartbeat runs, and conversations of single runs.
    """
    facts = {
        "rows": rows,
        "logs": rows // 5,
        "days": _DAYS,
        "months": _MONTHS,
        "unanswered": UNANSWERED,
        "dead": DEAD,
        "left": LEFT,
    }
    async with connection(address) as one:
        for statement in _FILL.values():
            await one.script(statement.format(**facts), timeout_s=_SECONDS)
        await one.script("vacuum analyze", timeout_s=_SECONDS)
