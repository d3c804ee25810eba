"""A database in which every table has rows, odd ones among them, and how to compare two."""

from __future__ import annotations

from typing import Any

from goclaw_py.store import migrate
from goclaw_py.store.postgres import Address, Connection, connection

ROWS = r"""
insert into nodes values
    ('n1', 'host/boot', 7, '0.1', '2026-01-01', '2026-01-01 00:00:10.123456+00'),
    ('n2', 'host/boot', 8, '0.1', '2026-01-01', '2026-01-01 00:00:11+02');
insert into node_calls (node, question, asked_at, answer)
values ('n1', '{"what": "stop"}', '2026-01-01', null), ('n2', 'x', '2026-01-01', '{}');
insert into lane_slots (lane, node, granted) values ('cron', 'n1', true), ('cron', 'n2', false);
insert into leases values ('bot', 'n1', 3), ('free', null, 9);
insert into sessions (key, agent, channel, account, chat, created_at, last_active_at, owner, pinned)
values ('s1', 'main', 'c', 'a', '1', 'epoch', '2026-01-01', 'n1', array['x', E'y,"\n\\N']),
       ('s2', 'main', null, null, null, 'epoch', '2026-01-01', null, '{}');
insert into history (session, epoch, role, text, native, at)
values ('s1', 0, 'user', E'tab\t, newline\n \\N \\. \r back\\slash é 😀', '\x00ff0a09', 'epoch'),
       ('s1', 0, 'assistant', '', null, '2026-01-01'), ('s1', 0, 'user', '\N', '\x', '2026-01-01');
insert into history (session, epoch, role, text, files, at)
values ('s2', 0, 'assistant', 'here', '[{"kind": "photo", "name": "é"}]', 'epoch');
insert into inbox (channel, account, external_id, session, agent, kind, state, message, run_id,
    received_at)
values ('c', 'a', '1', 's1', 'main', 'message', 'pending', '{"text": "a\nb\tc\"\\"}', 'r1',
    'epoch');
insert into unmentioned (channel, account, external_id, session, message, sent_at, received_at)
values ('c', 'a', '2', 's1', '{"text": "among us"}', 'epoch', 'epoch');
insert into runs (id, session, agent, trigger, lane, node, fence, epoch, model, started_at,
    cost_usd, requests, input_tokens, output_tokens, cached_tokens, tools)
values ('r1', 's1', 'main', 'chat', 'main', 'n1', 1, 0, 'm', '2026-01-01', 0.1000000000000000001,
    1, 2, 3, 4, '[{"name": "read"}]');
insert into run_steps values ('r1', 0, 'result', '{"call_id": "\\\\"}');
insert into approvals (id, run_id, root_run, session, agent, call_id, tool, arguments, uncertain,
    members, asked_at, expires_at)
values ('q1', 'r1', 'r1', 's1', 'main', 'c1', 'pay', '{}', false, true, 'epoch', 'infinity');
insert into tool_grants values ('main', 's1', 'pay', 'epoch', 'Ann');
insert into outbox (channel, account, chat, session, message, state, owner, created_at,
    next_attempt_at)
values ('c', 'a', '1', 's1', '{"text": "hi"}', 'pending', 'n1', 'epoch', 'epoch'),
       ('c', 'a', '1', 's1', '{"text": "next"}', 'pending', null, 'epoch', 'epoch');
insert into message_counts (at, agent, received, sent)
values ('epoch', 'main', 3, 0), ('epoch', null, 0, 2);
insert into people values ('c', 'a', '7', 'Ann', null, 'owner', '-infinity');
insert into names values ('c', 'a', '7', 'Ann', null, 'ann', 'epoch', 'given');
insert into pairing_requests values ('c', 'a', '8', 'Ben', 'ben', 'abc', 'epoch', 'infinity');
insert into people values ('web', 'default', 'ben', 'ben', null, 'guest', 'epoch');
insert into web_links values
    ('h1', 'web', 'default', 'ben', 'epoch', 'infinity', null, null),
    ('h2', 'web', 'default', 'ben', 'epoch', '2026-01-01', 'epoch', 'h3');
insert into tokens values ('grafana', 'viewer', false, 'h1', 'epoch', 'infinity', 'epoch');
insert into sign_ins
values ('i1', 'h1', 't1', 'epoch', 'epoch', 'infinity', '192.0.2.1', 'Firefox',
    'grafana', 'viewer', false, 'token', 'grafana');
insert into chats (channel, account, chat, peer, first_seen_at, last_seen_at)
values ('c', 'a', '1', 'direct', 'epoch', 'epoch');
insert into topics values ('c', 'a', '1', '5', E'Plans\t"', 'closed', true);
insert into moved_sessions values ('old', 's1');
insert into drafts values ('r1', '{1,2}', 'c', 'a', '1', null, null, 'epoch');
insert into incidents values ('k', 'text', 'epoch');
insert into setting_edits (path, value, before, after, source, edited_at)
values ('lanes.main.size', '4', '2', '4', 'dashboard', 'epoch'),
    ('queue.mode', null, 'steer', null, 'API', 'epoch');
insert into audit (at, kind, actor, role, via, node, action, subject, before, after, result)
values ('epoch', 'person', 'Ann', '', 'telegram', 'n1', 'job.edit', E'job\t"', null, '{"a": 1}',
    'ok');
insert into cron_jobs (id, owner, slug, name, search_text, agent, kind, spec, maker, notify, state,
    revision, created_at, updated_at, next_run_at)
values ('j1', 'o', 'news', 'news', 'w', 'main', 'every', '{"every": "1h"}', 'o', 'chat', 'active',
    1, 'epoch', 'epoch', '2026-01-01');
insert into job_runs (id, job, slug, owner, scheduled_at, claimed_at, status, node,
    definition)
values ('l1', 'j1', 'news', 'o', 'epoch', 'epoch', 'running', 'n1', '{}');
insert into owner_zones values ('o', 'Europe/Berlin');
insert into work_items (queue, title) values ('q', 't'), ('q', 'u');
insert into heartbeats (agent, interval_us, heartbeat_run, node) values ('main', 1, 'b1', 'n1');
insert into heartbeat_runs (id, agent, kind, due_at, claimed_at, status, node)
values ('b1', 'main', 'regular', 'epoch', 'epoch', 'running', 'n1');
insert into heartbeat_events (agent, text, at) values ('main', 'e', 'epoch');
insert into heartbeat_items values ('main', 'k', 'epoch');
-- A number that was given out and rolled back, and one that nobody has used yet.
select nextval(pg_get_serial_sequence('inbox', 'id'));
alter table heartbeat_events alter column id restart with 41;
"""

Rows = dict[str, list[str]]


async def fill(address: Address) -> None:
    async with connection(address) as one:
        await one.script(ROWS)


async def all_rows(address: Address, *, but: str = "") -> Rows:
    """Every row of each table of ours as text, sorted; without the column ``but``.

    What backups and restores add to the audit log is left out.
    """
    async with connection(address) as one:
        found = {
            table: [row["row"] for row in await one.fetch(_row_query(table), but)]
            for table in migrate.tables(migrate.known())
        }
    if "audit" in found:
        found["audit"] = [row for row in found["audit"] if '"action": "backup.' not in row]
    return found


def _row_query(table: str) -> str:
    return f"select (to_jsonb(t) - $1)::text as row from {table} as t order by 1"


async def next_numbers(one: Connection) -> dict[str, Any]:
    """The next number of each identity column; it is used up by that."""
    columns = await one.fetch(
        "select table_name, column_name from information_schema.columns "
        "where table_schema = 'public' and is_identity = 'YES' order by 1"
    )
    found = {}
    for row in columns:
        table, column = row["table_name"], row["column_name"]
        query = f"select nextval(pg_get_serial_sequence('{table}', '{column}')) as next"
        number = await one.row(query)
        assert number is not None
        found[f"{table}.{column}"] = number["next"]
    return found
