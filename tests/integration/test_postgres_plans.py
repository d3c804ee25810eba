"""How the store asks PostgreSQL: no statement about a few rows reads a large table as a whole."""

from __future__ import annotations

import orjson
import pytest

from goclaw_py.store.postgres import Connection, connection
from goclaw_py.store.sql import queries
from tests.integration.postgres_work import plan
from tests.support.postgres import Database

pytestmark = pytest.mark.real_time

MANY = """
insert into sessions (key, agent, created_at, last_active_at)
select
    case n % 40
        when 0 then 'agent:main:cron:' || gen_random_uuid() || ':' || gen_random_uuid()
        when 1 then 'agent:main:cron:' || gen_random_uuid()
        else 'agent:main:telegram:direct:' || n
    end, 'main', 'epoch', timestamptz 'epoch' + n * interval '1 min'
from generate_series(1, 20000) as n;
insert into history (session, epoch, role, text, at)
select key, 0, 'user', 'x', 'epoch' from sessions;
insert into inbox (
    channel, account, external_id, session, agent, kind, state, message, received_at, finished_at,
    outcome, run_id
)
select
    'c', 'a', n::text, 's' || n, 'agent' || n % 9, 'message', 'done', '{}',
    timestamptz 'epoch' + n * interval '1 min', timestamptz 'epoch' + n * interval '1 min',
    'completed', 'r' || n
from generate_series(1, 20000) as n;
insert into outbox (
    channel, account, chat, message, state, created_at, next_attempt_at, finished_at, occurrence,
    heartbeat_run, alert
)
select
    'c', 'a', 'k' || n % 9, '{}', 'sent', timestamptz 'epoch' + n * interval '1 min', 'epoch',
    timestamptz 'epoch' + n * interval '1 min', 'o' || n, case n % 2 when 1 then 'b' || n end,
    case n % 2 when 1 then 'k' || n end
from generate_series(1, 20000) as n;
insert into message_counts (at, agent, received, sent)
select timestamptz 'epoch' + n * interval '1 min', 'main', 1, 1 from generate_series(1, 20000) as n;
insert into runs (
    id, session, agent, trigger, lane, node, fence, epoch, model, started_at, finished_at, outcome,
    occurrence, heartbeat_run
)
select
    'r' || n, 's' || n % 99, 'agent' || n % 9,
    (array['chat', 'heartbeat', 'subagent', 'cron'])[n % 4 + 1], 'cron', 'n', 1, 0, '',
    timestamptz 'epoch' + n * interval '1 min', timestamptz 'epoch' + n * interval '1 min',
    'completed', 'o' || n, case n % 2 when 1 then 'b' || n end
from generate_series(1, 20000) as n;
insert into cron_jobs (
    id, owner, slug, name, search_text, agent, kind, spec, maker, notify, state, revision,
    created_at, updated_at, next_run_at
)
select
    'job' || n, 'owner' || n % 999, 'slug' || n, '', 'slug' || n, 'x', 'every', '{}', 'person',
    'always', (array['paused', 'active', 'active', 'completed'])[n % 4 + 1], 1, 'epoch', 'epoch',
    timestamptz 'epoch' + n * interval '1 s'
from generate_series(1, 20000) as n;
insert into job_runs (
    id, job, slug, owner, scheduled_at, claimed_at, finished_at, status, definition
)
select
    'o' || n, 'job' || n % 99, 's', 'o', timestamptz 'epoch' + n * interval '1 s', 'epoch', 'epoch',
    'ok', '{}'
from generate_series(1, 20000) as n;
insert into heartbeats (agent, interval_us, anchor, next_at, began_at)
select 'agent' || n, 1000000, 'epoch', timestamptz 'epoch' + n * interval '1 s', 'epoch'
from generate_series(1, 1000) as n;
insert into heartbeat_runs (id, agent, kind, due_at, claimed_at, finished_at, status)
select
    'b' || n, 'agent' || n % 99, 'interval', 'epoch', timestamptz 'epoch' + n * interval '1 s',
    'epoch', (array['ok', 'alerted', 'skipped'])[n % 3 + 1]
from generate_series(1, 20000) as n;
insert into heartbeat_events (agent, text, at)
select 'agent' || n, 'x', 'epoch' from generate_series(1, 20000) as n;
insert into heartbeat_items (agent, key, done_at)
select 'agent' || n % 999, n::text, 'epoch' from generate_series(1, 20000) as n;
insert into audit (at, kind, actor, role, via, node, action, subject, result)
select
    timestamptz 'epoch' + n * interval '26 min', 'person', 'Ann', '', 'x', 'n', 'session.stop', 'x',
    'ok'
from generate_series(1, 20000) as n;
"""
LARGE = (
    "sessions", "history", "inbox", "outbox", "runs", "cron_jobs", "job_runs", "heartbeat_runs",
    "heartbeat_events", "message_counts", "audit",
)  # fmt: skip

ABOUT_FEW = {
    "audit": set(queries("audit")),
    "heartbeat_runs": set(queries("heartbeat_runs")) - {"retarget"},  # once in the life of a chat
    "jobs": {"add", "named", "job", "lock", "with_slug", "with_id", "slugs", "rename_in_log"},
    "moves": {"merge_history", "rename_payers"},
    "occurrences": set(queries("occurrences")),
    "records": {
        "counts", "density", "interrupted_subagents", "spent", "spent_by",
    },
    "runs": {
        "begin", "begun_before", "enter_sessions", "finish", "lock_sessions_of_runs",
        "lost_heartbeat_runs", "lost_times", "pin", "summarize",
    },
    "upkeep": set(queries("upkeep")),
    "usage": set(queries("usage")),
}  # fmt: skip

INDEXES = {
    "audit.list": "using audit_by_time",
    "audit.sweep": "using audit_by_time",
    "heartbeat_runs.log": "using heartbeat_runs_newest",
    "heartbeat_runs.sweep_log": "using heartbeat_runs_newest",
    "heartbeat_runs.undelivered": "outbox_dead_alerts",
    "occurrences.claim_due": "using cron_jobs_due",
    "occurrences.crowd": "using cron_jobs_due",
    "occurrences.next_due": "Index Only Scan using cron_jobs_due",
    "occurrences.sweep_jobs": "cron_jobs_over",
    "occurrences.sweep_log": "using job_runs_newest",
    "records.counts": "using runs_used",
    "records.density": "using runs_used",
    "usage.messages": "using outbox_sent",
    "usage.times": "using runs_used",
    "upkeep.forget_history": "history_of_session",
    "upkeep.forget_sessions": "sessions_pkey",
    "upkeep.lock_idle_sessions": "sessions_passing",
    "upkeep.sweep_inbox": "using inbox_pkey",
    "upkeep.sweep_outbox": "using outbox_pkey",
    "upkeep.sweep_runs": "using runs_used",
}


async def fill(direct: Connection) -> None:
    """Fill the tables. The server counts their rows only when a test says so."""
    for table in LARGE:
        await direct.script(f"alter table {table} set (autovacuum_enabled = off)")
    for rows in MANY.strip().removesuffix(";").split(";\n"):
        await direct.script(rows)


@pytest.mark.parametrize("known", [True, False], ids=["analyzed", "without statistics"])
async def test_no_statement_about_few_rows_reads_all_of_them(
    postgres_database: Database, *, known: bool
) -> None:
    """Before the server has counted the rows, which index it chooses is not said."""
    indexes = INDEXES if known else {}
    async with connection(postgres_database.address) as direct:
        await direct.script("set plan_cache_mode = force_generic_plan")
        await fill(direct)
        if known:
            await direct.script("vacuum analyze")
        for file, names in ABOUT_FEW.items():
            for name in sorted(names):
                lines = await plan(direct, file, name)
                for table in LARGE:
                    assert f"Seq Scan on {table}" not in lines, (file, name, lines)
                assert indexes.get(f"{file}.{name}", "") in lines, (file, name, lines)
    asked = {f"{file}.{name}" for file, names in ABOUT_FEW.items() for name in names}
    assert asked >= set(INDEXES)


FINISHED = "state = 'done' and kind = 'message'"
TROUBLE = "('failed', 'timed_out', 'dropped', 'rejected', 'abandoned', 'lost')"
OPEN_ROWS = {
    "inbox": [
        "select session from inbox where state = 'pending'",
        "select from inbox where run_id = 'r' and state = 'pending'",
        (
            f"select * from inbox where session = 's' and {FINISHED} and outcome <> 'completed' "
            "order by id desc limit 9"
        ),
        (
            f"select * from inbox where {FINISHED} and not dismissed and outcome in {TROUBLE} "
            "order by id desc limit 9"
        ),
        (
            "update inbox set session = 't' where (session = 's' and state = 'pending') or "
            f"(session = 's' and {FINISHED} and outcome <> 'completed')"
        ),
    ],
    "outbox": [
        "select * from outbox_heads",
        "select * from outbox where state = 'dropped' order by id desc limit 9",
        "select * from outbox where state = 'dead' order by id desc limit 9",
        "select from outbox where state = 'pending' and owner = 'n'",
    ],
    "runs": [
        "select from runs where outcome is null and node = 'n'",
        "select * from runs where outcome is not null order by started_at desc, id desc limit 9",
        "select * from runs where session = 's' order by started_at desc, id desc limit 9",
        "update runs set payer = 'b' where payer = 'a'",
    ],
    "history": ["select from history where session = 's' and epoch = 0 order by id desc"],
}


async def test_open_rows_are_found_without_reading_the_finished_ones(
    postgres_database: Database,
) -> None:
    async with connection(postgres_database.address) as direct:
        await fill(direct)
        await direct.script("analyze")
        for table, asked in OPEN_ROWS.items():
            for query in asked:
                rows = await direct.fetch("explain " + query)
                lines = "\n".join(row["QUERY PLAN"] for row in rows)
                assert f"Seq Scan on {table}" not in lines, query


AUDIT_PAGES = {
    "the newest": "50, null, null, null, null, null, null",
    "behind an entry in the middle": "50, 10000, null, null, null, null, null",
    "a week without entries": "50, null, null, null, null, '1971-01-01', null",
    "a week, by who": "50, null, 'grafana', null, null, '1970-12-20', null",
    "a week, by action": "50, null, null, 'job', null, '1970-12-20', null",
    "a week, by subject": "50, null, null, null, 'news', '1970-12-20', null",
    "a week long ago, by all": "50, null, 'x', 'job', 'y', '1970-02-01', '1970-02-08'",
}


async def test_a_page_of_the_audit_log_reads_the_entries_of_its_time_only(
    postgres_database: Database,
) -> None:
    """Also if few of them match: an order by id would read a year of entries for them."""
    async with connection(postgres_database.address) as direct:
        await direct.script("set plan_cache_mode = force_generic_plan; set enable_seqscan = off")
        await fill(direct)
        await direct.script("vacuum analyze audit")
        await direct.script(f"prepare list as {queries('audit')['list']}")
        read = {}
        for name, arguments in AUDIT_PAGES.items():
            row = await direct.row(
                f"explain (analyze, buffers, format json) execute list ({arguments})"
            )
            assert row is not None
            page = orjson.loads(row["QUERY PLAN"])[0]["Plan"]
            read[name] = page["Shared Hit Blocks"] + page["Shared Read Blocks"]
    assert {name: pages for name, pages in read.items() if pages > 30} == {}
