-- A time of a job whose session another node holds waits for that session: no node has claimed it, its
-- job stays marked, and the node that gets the session claims it. The column stays when it is claimed.
alter table cron_run_logs
    drop constraint cron_run_logs_status,
    add constraint cron_run_logs_status check (status in (
        'running', 'waiting', 'ok', 'failed', 'timed_out', 'cancelled', 'skipped', 'interrupted',
        'lost', 'no_route', 'undelivered')),
    add column waits_for text collate "C",
    add constraint cron_run_logs_waiting check (status <> 'waiting' or waits_for is not null);
create index cron_run_logs_waiting on cron_run_logs (waits_for) where status = 'waiting';
