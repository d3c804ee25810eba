-- Jobs, what became of the times at which they were due, and the zones of their owners.
--
-- Jobs are many and few are due, so that question has an index of its own. A row of the log lives
-- longer than its job may; only one that is claimed names a node.

create table cron_jobs (
    id          text        collate "C" primary key,
    owner       text        collate "C" not null,
    slug        text        collate "C" not null,
    name        text        not null,
    words       text        not null,
    agent       text        collate "C" not null,
    kind        text        not null,
    spec        jsonb       not null,
    maker       text        not null,
    notify      text        not null,
    channel     text        collate "C",
    account     text        collate "C",
    chat        text        collate "C",
    state       text        not null,
    revision    integer     not null,
    created_at  timestamptz not null,
    updated_at  timestamptz not null,
    next_run_at timestamptz,
    running     text        collate "C",
    last_run_at timestamptz,
    last_status text        not null default '',
    last_error  text        not null default '',
    failures    integer     not null default 0,
    runs        bigint      not null default 0,
    coalesced   bigint      not null default 0,
    constraint cron_jobs_named unique (owner, slug),
    constraint cron_jobs_kind check (kind in ('at', 'every', 'cron')),
    constraint cron_jobs_state
        check (state in ('active', 'paused', 'completed', 'failed', 'disabled')),
    constraint cron_jobs_target_is_whole check (num_nonnulls(channel, account, chat) in (0, 3))
) with (autovacuum_vacuum_scale_factor = 0.02);

create index cron_jobs_by_slug on cron_jobs (slug);
create index cron_jobs_due on cron_jobs (next_run_at, id)
    where state = 'active' and running is null and next_run_at is not null;

create table cron_run_logs (
    id            text        collate "C" primary key,
    job           text        collate "C" not null,
    slug          text        collate "C" not null,
    owner         text        collate "C" not null,
    scheduled_at  timestamptz not null,
    claimed_at    timestamptz not null,
    started_at    timestamptz,
    finished_at   timestamptz,
    status        text        not null,
    why           text,
    attempts      integer     not null default 0,
    claims        integer     not null default 1,
    by_hand       boolean     not null default false,
    interrupted   boolean     not null default false,
    node          text        collate "C" references nodes (id),
    output        text        not null default '',
    error         text        not null default '',
    requests      bigint,
    input_tokens  bigint,
    output_tokens bigint,
    cached_tokens bigint,
    cost_usd      numeric,
    definition    jsonb       not null,
    constraint cron_run_logs_status check (status in (
        'running', 'ok', 'failed', 'timed_out', 'cancelled', 'skipped', 'interrupted', 'lost')),
    constraint cron_run_logs_claimed check ((status = 'running') = (node is not null)),
    constraint cron_run_logs_ended check (node is null or finished_at is null),
    constraint cron_run_logs_usage_is_whole
        check (num_nonnulls(requests, input_tokens, output_tokens, cached_tokens) in (0, 4))
) with (autovacuum_vacuum_scale_factor = 0.02);

-- A time is claimed once; whoever takes it over from a dead process takes its row.
create unique index cron_run_logs_open on cron_run_logs (job, scheduled_at)
    where not by_hand and finished_at is null;
create index cron_run_logs_of_job on cron_run_logs (job, scheduled_at, id);
create index cron_run_logs_newest on cron_run_logs (scheduled_at, id);
create index cron_run_logs_of_node on cron_run_logs (node) where node is not null;

create table owner_zones (
    owner text collate "C" primary key,
    zone  text not null
);

-- Null for what no job has asked for, which is in neither index.
alter table runs add column occurrence text collate "C";
create index runs_of_occurrence on runs (occurrence) where occurrence is not null;

alter table outbox add column occurrence text collate "C";
create index outbox_of_occurrence on outbox (occurrence) where occurrence is not null;
