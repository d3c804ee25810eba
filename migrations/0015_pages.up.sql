-- Operators read long lists page by page, whole or in part: each order, and each part that may be
-- rare in it, has an index. Of runs that is not so for those that were completed, as most are.

create index runs_of_agent on runs (agent, started_at, id);
create index runs_of_trigger on runs (trigger, started_at, id);
create index runs_not_completed on runs (outcome, started_at, id) where outcome <> 'completed';

-- Which runs worked at one instant. A clock that was set back may end a run before it began.
create index runs_at_work on runs
    using gist (tstzrange(started_at, greatest(started_at, finished_at), '[]'))
    where finished_at is not null;

create index history_of_run on history (run_id, id) where run_id is not null;
create index outbox_waiting on outbox (id) where state in ('pending', 'sending');
create index outbox_of_run on outbox ((message ->> 'run_id'), id)
    where message ->> 'run_id' is not null;
create index inbox_open on inbox (id) where state = 'pending' and kind = 'message';
create index chats_gone on chats (channel, account, chat) where gone <> '';
create index cron_jobs_in_order on cron_jobs (next_run_at, created_at, id);
create index people_newest on people (approved_at, channel, account, sender_id);
create index cron_run_logs_with_status on cron_run_logs (status, scheduled_at, id);
create index heartbeat_run_logs_with_status on heartbeat_run_logs (status, claimed_at, id);
create index heartbeat_run_logs_skipped on heartbeat_run_logs (skip, claimed_at, id)
    where skip is not null;

-- Sessions are sorted by what every message changes, so that is not indexed (0008), but the five
-- minutes in which it lies: most changes stay in them.
alter table sessions
    add column active_in timestamptz generated always as (
        date_bin('5 minutes', last_active_at, timestamptz '2000-01-01 00:00:00+00')
    ) stored,
    add column heard_in timestamptz generated always as (
        date_bin('5 minutes', last_heard_at, timestamptz '2000-01-01 00:00:00+00')
    ) stored;
create index sessions_active on sessions (active_in);
create index sessions_heard on sessions (heard_in) where heard_in is not null;
