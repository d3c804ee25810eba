-- What is kept of runs beside how they ended, and what stands for the older part of a history.
--
-- All of it can be left out: the release before neither writes nor reads it.

alter table sessions
    add column summary         text    not null default '',
    add column summarized_upto bigint  not null default 0,
    add column summaries       integer not null default 0,
    add column pinned          text[]  not null default '{}';

-- Null in runs whose own session pays, that started when they were asked for, that never said a
-- word, that called no tool.
alter table runs
    add column payer         text collate "C",
    add column submitted_at  timestamptz,
    add column first_text_at timestamptz,
    add column tools         jsonb;

-- The runs of messages are in neither of these, so that no message costs more. What an agent has
-- used on a day is read through runs_newest.
create index runs_paid on runs (payer, started_at) where payer is not null;
create index runs_lost_subagents on runs (finished_at)
    where outcome in ('lost', 'interrupted') and trigger = 'subagent';
