"""A large database: 10,000 sessions, 1,000,000 runs, 100,000 jobs, and what belongs to them.

Few sessions have most runs, as it is in real installations. Everything unfinished belongs to
another node, whose lease does not end, so that a gateway on this database changes nothing in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from bench.api.rows import templates
from bench.jobs.gateway import CLOCK, a_job
from bench.scheduler.report import progress
from goclaw_py.schedule.jobs.schedule import At
from goclaw_py.store.migrate import known, migrate
from goclaw_py.store.postgres import Address, Connection, PostgresStore, connection

AGENTS: Final = ("main", *(f"agent{n}" for n in range(1, 20)))
_SECONDS: Final = 1800.0
_TABLES: Final = ("history", "runs", "run_steps", "inbox", "outbox", "job_runs", "cron_jobs")
"""Their indexes are created after they are filled, which is several times as fast."""


@dataclass(frozen=True, slots=True)
class Size:
    """So many rows; the other tables are in proportion."""

    sessions: int = 10_000
    runs: int = 1_000_000
    jobs: int = 100_000


# Session 1 to a hundredth of all are groups with topics. Run n belongs to session {s}: squared, so
# that a tenth of the sessions has a third of the runs.
_KEY: Final = """case
    when s % 100 = 0 then 'agent:main:telegram:group:-' || s || ':topic:' || s % 7
    when s % 10 = 1 then 'agent:agent' || 1 + s % 19 || ':cron:job-' || s
    else 'agent:main:telegram:direct:' || s end"""
_AGENT: Final = "case when s % 10 = 1 then 'agent' || 1 + s % 19 else 'main' end"
_WHEN: Final = "now() - (1 - n / {runs}.0) * interval '89 days' - interval '1 minute'"
_WHICH: Final = (
    "2 + floor(({sessions} - 1) * pow((n::bigint * 7919 % 1000003) / 1000003.0, 2))::integer"
)
_WORDS: Final = (
    "'Please look at order ' || n || ' for the spring fair, and tell the team what is "
    "left to do before Friday 😀 ' || md5(n::text)"
)

_FILL: Final[Mapping[str, str]] = {
    "sessions": f"""
insert into sessions (key, agent, channel, account, chat, thread, created_at, last_active_at, peer,
    last_sender, last_heard_at)
select {_KEY}, {_AGENT}, c, case when c is not null then 'default' end,
    case when s % 100 = 0 then '-' || s when c is not null then s::text end,
    case when s % 100 = 0 then (s % 7)::text end, now() - interval '89 days', t,
    case when c is null then null when s % 100 = 0 then 'group' else 'direct' end,
    case when c is not null then s::text end, case when c is not null then t end
from generate_series(2, {{sessions}}) as s,
    lateral (select case when s % 10 = 1 then null else 'telegram' end as c,
        now() - s * interval '10 minutes' as t) as o
""",
    "chats": """
insert into chats (channel, account, chat, peer, name, first_seen_at, last_seen_at)
select 'telegram', 'default', case when s % 100 = 0 then '-' || s else s::text end,
    case when s % 100 = 0 then 'group' else 'direct' end, 'Name ' || s, now() - interval '89 days',
    now() - s * interval '10 minutes'
from generate_series(1, {sessions}) as s;
insert into topics (channel, account, chat, thread, name)
select 'telegram', 'default', '-' || s, t::text, 'Topic ' || t
from generate_series(100, {sessions}, 100) as s, generate_series(0, 6) as t
""",
    "names": """
insert into names (channel, account, id, name, username, search_text, seen_at)
select 'telegram', 'default', i, 'Person Number ' || s, 'user' || s,
    E'person number ' || s || E'\\n@user' || s, now()
from generate_series(1, {sessions}) as s,
    lateral (select case when s % 100 = 0 then '-' || s else s::text end as i) as o;
insert into people (channel, account, sender_id, name, username, role, approved_at)
select 'telegram', 'default', s::text, 'Person Number ' || s, 'user' || s, 'guest',
    now() - s * interval '1 minute'
from generate_series(1, {sessions} / 4) as s
""",
    "runs": f"""
insert into runs (id, session, agent, trigger, lane, node, fence, epoch, model, channel, account,
    chat, submitted_at, started_at, first_text_at, finished_at, outcome, reason, requests,
    input_tokens, output_tokens, cached_tokens, cost_usd, tools, sender, job)
select 'run-' || lpad(n::text, 9, '0'), {_KEY}, {_AGENT}, g,
    case when g in ('cron', 'subagent') then g else 'main' end, 'gone', 1, 0, 'model-' || n % 5,
    'telegram', 'default', s::text, t - interval '1 second', t, t + interval '2 seconds',
    t + (1 + n % 60) * interval '1 second', o, case when o = 'cancelled' then 'stopped' end, 3,
    2000 + n % 999, 300, 100, 0.01, f.tools,
    case when g = 'chat' then 'telegram/default/' || s end,
    case when g = 'cron' then 'job-' || s * 10 end
from generate_series(1, {{runs}}) as n,
    lateral (select {_WHICH} as s, {_WHEN} as t,
        case when n % 10 < 6 then 'chat' when n % 10 < 9 then 'cron'
            when n % 100 < 98 then 'heartbeat' else 'subagent' end as g,
        case when n % 20 = 3 then 'failed' when n % 100 = 5 then 'cancelled'
            when n % 1000 = 6 then 'timed_out' else 'completed' end as o) as c,
    (select * from runs where id = 'first') as f;
insert into runs (id, session, agent, trigger, lane, node, fence, epoch, model, submitted_at,
    started_at)
select 'active-' || s, {_KEY}, {_AGENT}, 'chat', 'main', 'bench', 1, 0, 'model-1', now(), now()
from generate_series(2, 61) as s
""",
    "history": f"""
insert into history (session, epoch, role, text, run_id, at)
select {_KEY}, case when n % 10 < 3 then 0 else -9 end, role, {_WORDS},
    'run-' || lpad(n::text, 9, '0'), {_WHEN}
from generate_series(1, {{runs}}) as n, unnest(array['user', 'assistant']) as role,
    lateral (select {_WHICH} as s) as o
""",
    "steps": """
insert into run_steps (run_id, seq, kind, payload)
select 'run-' || lpad(n::text, 9, '0'), q, 'value', '{{}}'
from generate_series({runs} - {runs} / 20, {runs}) as n, generate_series(0, 3) as q
""",
    "inbox": f"""
insert into inbox (channel, account, external_id, session, agent, kind, state, message, attempts,
    run_id, received_at, finished_at, outcome)
select 'telegram', 'default', 'm' || n, {_KEY}, {_AGENT}, 'message', 'done',
    f.message || jsonb_build_object('text', {_WORDS}), 1, 'run-' || lpad(n::text, 9, '0'), t,
    t + interval '9 seconds', case when n % 20 = 3 then 'failed' else 'completed' end
from generate_series({{runs}} - {{runs}} / 13, {{runs}}) as n,
    lateral (select {_WHICH} as s, {_WHEN} as t) as o, (select message from inbox limit 1) as f;
insert into inbox (channel, account, external_id, session, agent, kind, state, message, received_at)
select 'telegram', 'default', 'w' || s, {_KEY}, {_AGENT}, 'message', 'pending', f.message, now()
from generate_series(2, 1000) as s, (select message from inbox limit 1) as f
""",
    "outbox": f"""
insert into outbox (channel, account, chat, session, message, state, attempts, owner, created_at,
    next_attempt_at, finished_at, error)
select case when n % 10 = 0 then 'web' else 'telegram' end, 'default', s::text, {_KEY},
    f.message || jsonb_build_object('run_id', 'run-' || lpad(n::text, 9, '0'), 'text', {_WORDS}),
    o.state, 1, case when n % 1000 = 6 then 'bench' end, t, t,
    case when o.state <> 'pending' then t end,
    case o.state when 'dead' then 'Forbidden: bot was blocked by the user' end
from generate_series({{runs}} - {{runs}} / 13, {{runs}}) as n,
    lateral (select {_WHICH} as s, {_WHEN} as t, case when n % 20 = 3 then 'dead'
        when n % 50 = 4 then 'dropped' when n % 1000 in (5, 6) then 'pending'
        else 'sent' end as state) as o,
    (select message from outbox limit 1) as f
""",
    "message_counts": """
insert into message_counts (at, agent, received, sent)
select now() - n * interval '15 minutes', case a when 0 then 'main' else 'agent' || a end, 3, 3
from generate_series(7 * 96, 89 * 96) as n, generate_series(0, 19) as a
""",
    "jobs": """
insert into cron_jobs (id, owner, slug, name, search_text, agent, kind, spec, maker, notify,
    channel, account, chat, state, revision, created_at, updated_at, next_run_at, last_run_at,
    last_status, runs)
select 'job-' || n, o.owner, 'task-' || n, 'Task number ' || n,
    'task-' || n || E'\\ntask number ' || n, o.agent, o.schedule ->> 'kind',
    f.spec || jsonb_build_object('slug', 'task-' || n, 'name', 'Task number ' || n,
        'agent', o.agent, 'schedule', o.schedule), f.maker, f.notify, 'telegram', 'default',
    (n % {sessions})::text, o.state, 1, now() - interval '80 days', now() - interval '1 day',
    case when o.state in ('active', 'paused') then now() + interval '1 year'
        + n * interval '1 second' end,
    now() - interval '1 hour', 'ok', 3
from generate_series(1, {jobs}) as n,
    lateral (select case when n % 3 = 0 then 'operator' else 'telegram:direct:' || n % 2000
        end as owner, case when n % 2 = 0 then 'main' else 'agent' || 1 + n % 19 end as agent,
        case when n % 10 = 1 then 'paused' when n % 10 = 2 then 'completed'
            when n % 100 = 3 then 'failed' when n % 100 = 13 then 'disabled' else 'active'
            end as state,
        case n % 3 when 0 then '{{"kind": "cron", "expression": "0 9 * * 1-5"}}'::jsonb
            when 1 then '{{"kind": "every", "every_ms": 3600000}}'
            else '{{"kind": "at", "at": "2030-01-01T00:00:00Z"}}' end as schedule) as o,
    (select * from cron_jobs limit 1) as f
""",
    "occurrences": """
insert into job_runs (id, job, slug, owner, scheduled_at, claimed_at, started_at, finished_at,
    status, definition)
select 'o' || lpad(n::text, 9, '0'), 'job-' || 1 + n % {jobs}, 'task-' || 1 + n % {jobs},
    'operator', t, t, t, t,
    case when n % 1000 = 0 then 'timed_out' when n % 5 = 0 then 'failed' else 'ok' end, '{{}}'
from generate_series(1, {runs} / 4) as n,
    lateral (select now() - (1 - n / ({runs} / 4.0)) * interval '89 days' as t) as o
""",
    "heartbeat_runs": """
insert into heartbeat_runs (id, agent, kind, due_at, claimed_at, started_at, finished_at,
    status, skip)
select 'b' || lpad(n::text, 9, '0'), case when n % 20 = 0 then 'main' else 'agent' || n % 20 end,
    'interval', t, t, t, t,
    case when n % 1000 = 1 then 'failed' when n % 3 = 0 then 'skipped' when n % 10 = 2
        then 'alerted' else 'ok' end,
    case when n % 1000 <> 1 and n % 3 = 0 then 'empty' end
from generate_series(1, {runs} / 10) as n,
    lateral (select now() - (1 - n / ({runs} / 10.0)) * interval '89 days' as t) as o
""",
    "what another node has": """
update sessions as s set owner = 'bench', fence = 1
where exists (select from inbox as i where i.session = s.key and i.state = 'pending')
    or exists (select from runs as r where r.session = s.key and r.outcome is null)
""",
}


def version(size: Size) -> str:
    """Return a text that changes with the rows and with the schema."""
    made = [size, *_FILL.values(), *(one.up for one in known())]
    return hashlib.sha256("".join(map(str, made)).encode()).hexdigest()


async def fill(address: Address, size: Size) -> None:
    """Put so many rows into an empty database."""
    async with connection(address) as one:
        await migrate(one)
    store = await PostgresStore.open(
        host=address.host, user=address.user, database=address.database
    )
    try:
        await templates(store)
        now = CLOCK.now()
        await store.add_job(a_job(0, At(now), now + timedelta(days=400)), most=1)
    finally:
        await store.close()
    facts = {"sessions": size.sessions, "runs": size.runs, "jobs": size.jobs}
    async with connection(address) as one:
        await one.script("set synchronous_commit = off; set maintenance_work_mem = '512MB'")
        indexes = await _without_indexes(one)
        for done, statement in enumerate(_FILL.values()):
            progress("large database", done, len(_FILL))
            await one.script(statement.format(**facts), timeout_s=_SECONDS)
        for definition in indexes:
            await one.script(definition, timeout_s=_SECONDS)
        await one.script("vacuum analyze", timeout_s=_SECONDS)


async def _without_indexes(one: Connection) -> list[str]:
    """Drop the indexes that no constraint needs; return how they are created again."""
    found = await one.fetch(
        "select i.indexname, i.indexdef from pg_indexes as i"
        " where i.schemaname = 'public' and i.tablename = any ($1::text[]) and not exists ("
        "select from pg_constraint as c where c.conname = i.indexname)",
        list(_TABLES),
    )
    for row in found:
        await one.script(f"drop index {row['indexname']}")
    return [str(row["indexdef"]) for row in found]
