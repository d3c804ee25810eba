-- Heartbeats of agents, what became of each beat, and what waits for the next one.
--
-- There is one row of a heartbeat for each agent, and it changes with every beat: without an index on
-- what changes, its new version finds room on its own page. Looking at all of them costs less than
-- keeping such an index would.

create table heartbeats (
    agent       text        collate "C" primary key,
    interval_us bigint,
    anchor      timestamptz,
    next_at     timestamptz,
    wake_at     timestamptz,
    wake_kind   text,
    switched    boolean,
    muted_until timestamptz,
    began_at    timestamptz,
    failures    integer     not null default 0,
    beat        text        collate "C",
    node        text        collate "C" references nodes (id),
    constraint heartbeats_interval check (interval_us > 0),
    constraint heartbeats_wake_is_whole check (num_nonnulls(wake_at, wake_kind) in (0, 2)),
    constraint heartbeats_claimed check (node is null or beat is not null)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- Only a beat that is in hand names a node; a foreign key would want an index.
create table heartbeat_run_logs (
    id            text        collate "C" primary key,
    agent         text        collate "C" not null,
    kind          text        not null,
    due_at        timestamptz not null,
    claimed_at    timestamptz not null,
    started_at    timestamptz,
    finished_at   timestamptz,
    status        text        not null,
    skip          text,
    detail        text        not null default '',
    reply         text        not null default '',
    channel       text        collate "C",
    account       text        collate "C",
    chat          text        collate "C",
    thread        text,
    attempts      integer     not null default 0,
    node          text        collate "C",
    requests      bigint,
    input_tokens  bigint,
    output_tokens bigint,
    cached_tokens bigint,
    cost_usd      numeric,
    told_at       timestamptz,
    constraint heartbeat_run_logs_status check (status in (
        'running', 'deferred', 'ok', 'alerted', 'duplicate', 'no_route', 'skipped', 'cancelled',
        'failed', 'lost')),
    constraint heartbeat_run_logs_ended
        check ((finished_at is null) = (status in ('running', 'deferred'))),
    constraint heartbeat_run_logs_claimed check (
        case status when 'running' then node is not null when 'deferred' then true
        else node is null end),
    constraint heartbeat_run_logs_target_is_whole
        check (num_nonnulls(channel, account, chat) in (0, 3)),
    constraint heartbeat_run_logs_usage_is_whole
        check (num_nonnulls(requests, input_tokens, output_tokens, cached_tokens) in (0, 4))
) with (autovacuum_vacuum_scale_factor = 0.02);

create index heartbeat_run_logs_of_agent on heartbeat_run_logs (agent, claimed_at, id);
create index heartbeat_run_logs_newest on heartbeat_run_logs (claimed_at, id);

create table heartbeat_events (
    id    bigint      generated always as identity primary key,
    agent text        collate "C" not null,
    text  text        not null,
    at    timestamptz not null
);

create index heartbeat_events_of_agent on heartbeat_events (agent, id);

-- When items of checklists with an interval of their own were carried last.
create table heartbeat_items (
    agent   text        collate "C" not null,
    key     text        collate "C" not null,
    done_at timestamptz not null,
    primary key (agent, key)
);

-- Null for what no beat has asked for, which is in none of these.
alter table runs add column beat text collate "C";
create index runs_of_beat on runs (beat) where beat is not null;

alter table outbox
    add column beat  text collate "C",
    add column alert text collate "C";
create index outbox_of_beat on outbox (beat) where beat is not null;
create index outbox_of_alert on outbox (alert) where alert is not null;
create index outbox_dead_beats on outbox (finished_at) where state = 'dead' and beat is not null;

-- Every beat asks whether people talk to its agent.
create index runs_talking on runs (agent) where outcome is null and trigger in ('chat', 'api');
create index inbox_waiting on inbox (agent) where state = 'pending' and kind = 'message';
