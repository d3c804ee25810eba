-- In five minutes thousands of people speak, and a list read all of their sessions for its first
-- page. Ten seconds are as cheap: whoever comes and goes changes the index of owners anyway.
drop index sessions_passing;
drop index sessions_heard;
drop index sessions_active;
alter table sessions drop column active_in, drop column heard_in;
alter table sessions
    add column active_in timestamptz generated always as (
        date_bin('10 seconds', last_active_at, timestamptz '2000-01-01 00:00:00+00')
    ) stored,
    add column heard_in timestamptz generated always as (
        date_bin('10 seconds', last_heard_at, timestamptz '2000-01-01 00:00:00+00')
    ) stored;
create index sessions_active on sessions (active_in);
create index sessions_heard on sessions (heard_in) where heard_in is not null;
create index sessions_passing on sessions (active_in)
    where split_part(key, ':', 3) in ('cron', 'heartbeat', 'subagent', 'delegate');
