-- A result may have nowhere to go, or its chat may refuse it; a job that runs once is deleted only
-- when its result has been delivered.
alter table cron_run_logs
    drop constraint cron_run_logs_status,
    add constraint cron_run_logs_status check (status in (
        'running', 'ok', 'failed', 'timed_out', 'cancelled', 'skipped', 'interrupted', 'lost',
        'no_route', 'undelivered')),
    add column told_at timestamptz;
create index cron_run_logs_untold on cron_run_logs (job, scheduled_at, id)
    where told_at is null and status in ('no_route', 'undelivered');

-- The occurrence whose delivery deletes the job, and whether its log goes with it.
alter table cron_jobs
    add column delivers text collate "C",
    add column forgets boolean not null default false;
create index cron_jobs_delivering on cron_jobs (id) where delivers is not null;

create index outbox_dead_results on outbox (finished_at)
    where state = 'dead' and occurrence is not null;
