# ruff: noqa: E501 - rows of a table are on a line
"""A hundred thousand rows in each table, as a gateway leaves them: nearly all are over.

Row ``n`` of a table is named by its number: session ``s7``, run ``r7``, message ``e7``, job
``job7``, occurrence ``o7``, heartbeat run ``b7``. It is ``n`` minutes younger than ``START``.
"""

from __future__ import annotations

from typing import Final

from goclaw_py.store.postgres import Connection

NOW: Final = "2026-03-12"
"""After all rows."""
START: Final = "2026-01-01"

_SMALL: Final = 2
_PATIENCE_S: Final = 600
_MANY: Final = 100_000

# Tables with as many rows as there is work in progress, or as there are nodes or agents.
_FEW: Final = {
    "nodes": 3, "leases": 1_000, "node_calls": 1_000, "lane_slots": 1_000, "drafts": 300,
    "heartbeats": 1_000, "incidents": 100, "web_links": 1_000, "tokens": 100, "sign_ins": 100,
}  # fmt: skip

_AT: Final = f"timestamptz '{START}' + n * interval '1 min'"
_MESSAGE: Final = """
jsonb_build_object(
    'text', 'x', 'external_id', 'e' || n, 'message_id', 'm' || n, 'peer', 'direct',
    'sender', '{"id": "p7"}'::jsonb, 'target', '{"channel": "c", "account": "a", "chat": "k7"}'::jsonb
)
"""

# 20,000 messages wait in 2,000 sessions of one node, and 10,000 answers in as many chats: a burst.
_ROWS: Final = {
    "nodes": f"""(id, host, pid, release, started_at, lease_until)
        select 'n' || n, 'h', 1, '1', {_AT}, case n when 2 then timestamptz 'epoch' else 'infinity' end""",
    "leases": "(name, owner) select 'lease' || n, case when n % 10 = 0 then 'n1' end",
    "node_calls": f"""(node, question, asked_at, answer)
        select 'n1', '{{}}', {_AT}, case when n <= 990 then '{{}}' end""",
    "lane_slots": "(lane, node, granted) select 'cron', 'n' || n % 2 * 2 + 1, n <= 30",
    "sessions": f"""(key, agent, channel, account, chat, created_at, last_active_at, owner, fence,
            peer, last_sender, last_heard_at)
        select case n % 40
                when 0 then 'agent:main:cron:job' || n || ':00000000-0000-4000-8000-000000000000'
                when 1 then 'agent:main:subagent:' || n
                else 's' || n end,
            case when n % 1000 = 7 then 'other' else 'main' end, 'c', 'a', 'k' || n, {_AT}, {_AT},
            case when n <= 2000 then 'n1' when n = 2007 then 'n2' end, 1, 'direct', 'p' || n, {_AT}""",
    "history": f"""(session, epoch, role, text, run_id, at)
        select 's' || n % 5000, 0, case n % 2 when 0 then 'user' else 'assistant' end, 'x', 'r' || n, {_AT}""",
    "moved_sessions": "(key, moved_to) select 'old' || n, 's' || n",
    "inbox": f"""(channel, account, external_id, session, agent, kind, state, message, run_id,
            received_at, finished_at, outcome, dismissed, last_run)
        select 'c', 'a', 'e' || n, case when n <= 80000 then 's' || n % 20000 else 's' || n % 2000 end,
            case when n % 1000 = 7 then 'other' else 'main' end,
            case when n % 50 = 0 then 'command' else 'message' end,
            case when n <= 80000 then 'done' when n <= 80020 then 'waiting' else 'pending' end,
            {_MESSAGE}, case when n <= 80000 or n > 99800 then 'r' || n end, {_AT},
            case when n <= 80000 then {_AT} end,
            case when n > 80000 then null else
                case n % 100 when 3 then 'failed' when 4 then 'cancelled' else 'completed' end end,
            n % 200 = 3, case when n between 80001 and 80020 or n > 99800 then 'r' || n end""",
    "unmentioned": f"""(channel, account, external_id, session, message, sent_at, received_at)
        select 'c', 'a', 'e' || n, 's' || n % 2000, {_MESSAGE}, {_AT}, {_AT}""",
    "runs": f"""(id, session, agent, trigger, lane, node, fence, epoch, parent, model, channel, account,
            chat, submitted_at, started_at, finished_at, outcome, requests, input_tokens, output_tokens,
            cached_tokens, cost_usd, payer, occurrence, heartbeat_run, sender, job, call_key, task, inbox)
        select 'r' || n, 's' || n % 2000, case when n % 1000 = 7 then 'other' else 'main' end,
            (array['chat', 'heartbeat', 'subagent', 'cron'])[n % 4 + 1], 'main', 'n1', 1, 0,
            case n % 4 when 2 then 'r' || n - 1 end, 'm', 'c', 'a', 'k' || n % 2000, {_AT}, {_AT},
            case when n <= 99800 then {_AT} end,
            case when n > 99800 then null else
                case n % 100 when 3 then 'failed' when 4 then 'lost' else 'completed' end end,
            1, 2, 3, 4, 0.1, case n % 4 when 2 then 's' || n % 2000 end,
            case n % 4 when 3 then 'o' || n end, case n % 4 when 1 then 'b' || n end,
            'c/a/p' || n % 1000, case n % 4 when 3 then 'job' || n % 5000 end,
            case n % 4 when 2 then 'call' || n end, case n % 8 when 2 then '{{}}'::jsonb end,
            case when n <= 80000 or n > 99800 then array[n] else '{{}}' end""",
    "run_steps": "(run_id, seq, kind, payload) select 'r' || n, 0, 'response', ''",
    "approvals": f"""(id, run_id, root_run, session, agent, call_id, tool, arguments, uncertain, members,
            channel, account, chat, asked_at, expires_at, decision, decided_at)
        select 'q' || n, 'r' || n, 'r' || n, 's' || n % 2000, 'main', 'c', 't', '{{}}', false, false,
            'c', 'a', 'k' || n % 2000, {_AT}, {_AT}, case when n <= 99900 then 'once' end,
            case when n <= 99900 then {_AT} end""",
    "tool_grants": f"(agent, session, tool, granted_at, granted_by) select 'main', 's' || n, 't', {_AT}, 'p'",
    "outbox": f"""(channel, account, chat, session, message, state, owner, fence, created_at,
            next_attempt_at, finished_at, external_id, occurrence, heartbeat_run, alert)
        select 'c', 'a', 'k' || n % 2000, 's' || n % 2000,
            jsonb_build_object('text', 'x', 'run_id', 'r' || n),
            case when n <= 85000 then 'sent' when n <= 85500 then 'dead' when n <= 89990 then 'dropped'
                else 'pending' end,
            case when n between 89991 and 90000 then 'n1' end, 1, {_AT}, {_AT},
            case when n <= 89990 then {_AT} end, case when n <= 85000 then n end,
            case n % 4 when 3 then 'o' || n end, case n % 4 when 1 then 'b' || n end,
            case n % 4 when 1 then 'al' || n end""",
    "message_counts": f"(at, agent, received, sent) select {_AT}, 'main', 1, 1",
    "drafts": f"""(run_id, inbox, channel, account, chat, external_id, opened_at)
        select 'r' || n + 99700, array[n + 99700], 'c', 'a', 'k' || n, 'd' || n, {_AT}""",
    "chats": f"""(channel, account, chat, peer, allowed, gone, first_seen_at, last_seen_at)
        select 'c', 'a', 'k' || n, case n % 10 when 0 then 'group' else 'direct' end,
            case when n % 10 = 0 and n % 1000 <> 10 then true end, case when n % 5000 = 7 then 'blocked' else '' end, {_AT}, {_AT}
""",
    "topics": """(channel, account, chat, thread, gone)
        select 'c', 'a', 'k' || n, '5', case when n % 1000 = 7 then 'closed' else '' end""",
    "names": f"""(channel, account, id, name, search_text, seen_at)
        select 'c', 'a', 'p' || n, 'x', 'x', {_AT}""",
    "people": f"""(channel, account, sender_id, name, role, approved_at)
        select 'c', 'a', 'p' || n, 'x', 'guest', {_AT}""",
    "pairing_requests": f"""(channel, account, sender_id, name, code_hash, created_at, expires_at, id, chat)
        select 'c', 'a', 'z' || n, 'x', 'h' || n, {_AT}, {_AT}, 'pr' || n, 'kz' || n""",
    "web_links": f"""(link_hash, channel, account, sender_id, created_at, expires_at, used_at, cookie_hash)
        select 'l' || n, 'c', 'a', 'p' || n, {_AT}, {_AT},
            case when n <= 990 then {_AT} end, case when n <= 990 then 'ck' || n end""",
    "tokens": f"""(name, role, reads_text, secret_hash, created_at)
        select 'tk' || n, 'viewer', false, 'th' || n, {_AT}""",
    "sign_ins": f"""(id, secret_hash, token_hash, created_at, last_used_at, expires_at, address, user_agent)
        select 'si' || n, 'sh' || n, 't', {_AT}, {_AT}, {_AT}, 'x', 'x'""",
    "cron_jobs": f"""(id, owner, slug, name, search_text, agent, kind, spec, maker, notify, channel,
            account, chat, state, revision, created_at, updated_at, next_run_at, running, delivers)
        select 'job' || n, 'ow' || n % 1000, 'sl' || n, '', 'sl' || n, 'main', 'every',
            '{{"payload": {{"kind": "message"}}}}', 'person', 'chat', 'c', 'a', 'k' || n,
            case when n % 5 < 3 then 'active' when n % 5 = 3 then 'paused' else 'completed' end, 1,
            {_AT}, {_AT},
            case when n % 5 < 4 then timestamptz '2026-03-11 23:00' + n * interval '1 min' end,
            case when n % 10000 = 1 then 'o' || n end, case when n % 10000 = 4 then 'o' || n end""",
    "job_runs": f"""(id, job, slug, owner, scheduled_at, claimed_at, finished_at, status, reason, node,
            definition, waits_for)
        select 'o' || n, 'job' || n % 5000, 'x', 'x', {_AT}, {_AT},
            case when n <= 99900 then {_AT} end,
            case when n > 99990 then 'running' when n > 99900 then 'waiting' else
                case n % 5000 when 1 then 'no_route' when 2 then 'failed' else 'ok' end end,
            case when n between 99901 and 99950 then 'approval' end,
            case when n > 99990 then 'n1' end, '{{}}',
            case when n between 99901 and 99990 then 's' || n % 2000 end""",
    "owner_zones": "(owner, zone) select 'ow' || n, 'UTC'",
    "work_items": f"""(queue, title, state, taken_by, taken_at, ended_at, created_at)
        select 'q', 'x', case when n <= 90000 then 'done' when n <= 90005 then 'taken' else 'open' end,
            case when n between 90001 and 90005 then 'job' || n end,
            case when n between 90001 and 90005 then {_AT} end, {_AT}, {_AT}""",
    "heartbeats": f"""(agent, interval_us, anchor, next_at, began_at, heartbeat_run, node)
        select 'agent' || n, 60000000, '{START}', '{START}', {_AT},
            case when n <= 20 then 'b' || n + 99980 end, case when n <= 10 then 'n1' end""",
    "heartbeat_runs": f"""(id, agent, kind, due_at, claimed_at, finished_at, status, skip, node, channel,
            account, chat)
        select 'b' || n, 'agent' || case when n > 99980 then n - 99980 else n % 1000 end, 'interval',
            {_AT}, {_AT}, case when n <= 99980 then {_AT} end,
            case when n > 99990 then 'deferred' when n > 99980 then 'running'
                else (array['ok', 'alerted', 'skipped'])[n % 3 + 1] end,
            case when n <= 99980 and n % 3 = 2 then 'quiet' end,
            case when n between 99981 and 99990 then 'n1' end,
            case n % 3 when 1 then 'c' end, case n % 3 when 1 then 'a' end,
            case n % 3 when 1 then 'k' || n % 2000 end""",
    "heartbeat_events": f"(agent, text, at) select 'agent' || n % 10000, 'x', {_AT}",
    "heartbeat_items": f"(agent, key, done_at) select 'agent' || n % 10000, n::text, {_AT}",
    "incidents": f"(key, text, since) select 'i' || n, 'x', {_AT}",
    "setting_edits": f"""(path, value, source, edited_at)
        select 'p' || n % 100, '1', 'API', {_AT}""",
    "audit": f"""(at, kind, actor, role, via, node, action, subject, result)
        select {_AT}, 'person', 'p' || n, '', 'c', 'n1', 'job.edit', 'job' || n, 'ok'""",
}  # fmt: skip

TABLES: Final = tuple(_ROWS)


async def make_small(direct: Connection, *, rows: int = _SMALL) -> None:
    """Fill all tables with the last few rows of each, and let the server count them.

    It does not count them again: autovacuum is off.
    """
    await direct.script("set session_replication_role = replica")
    for table in TABLES:
        await direct.script(f"alter table {table} set (autovacuum_enabled = off)")
        if rows:
            most = _FEW.get(table, _MANY)
            await _insert(direct, table, max(most - rows, 0) + 1, most)
        if table in _NUMBERED:
            sequence = f"pg_get_serial_sequence('{table}', 'id')"
            await direct.script(f"select setval({sequence}, {_MANY})")
        await direct.script(f"vacuum analyze {table}")
    await direct.script("set session_replication_role = origin")


async def make_large(direct: Connection, *, but: int = _SMALL) -> None:
    """Add the other rows. The plans that connections have are kept."""
    await direct.script("set session_replication_role = replica")
    for table in TABLES:
        await _insert(direct, table, 1, _FEW.get(table, _MANY) - but)
    await direct.script("set session_replication_role = origin")


async def _insert(direct: Connection, table: str, first: int, last: int) -> None:
    numbers = f"from generate_series({first}, {last}) as n"
    columns, _, values = _ROWS[table].partition("select ")
    has_id = table in _NUMBERED
    if has_id:
        columns, values = columns.replace("(", "(id, ", 1), f"n, {values}"
    how = "overriding system value" if has_id else ""
    await direct.script(
        f"insert into {table} {columns} {how} select {values} {numbers}", timeout_s=_PATIENCE_S
    )


_NUMBERED: Final = {
    "node_calls", "lane_slots", "history", "inbox", "unmentioned", "outbox", "message_counts",
    "work_items", "heartbeat_events", "setting_edits", "audit",
}  # fmt: skip
