drop index cron_run_logs_waiting;
update cron_jobs set running = null
where running in (select id from cron_run_logs where status = 'waiting');
update cron_run_logs
set status = 'skipped', why = 'busy', finished_at = case when by_hand then claimed_at end
where status = 'waiting';
alter table cron_run_logs
    drop constraint cron_run_logs_waiting,
    drop column waits_for,
    drop constraint cron_run_logs_status,
    add constraint cron_run_logs_status check (status in (
        'running', 'ok', 'failed', 'timed_out', 'cancelled', 'skipped', 'interrupted', 'lost',
        'no_route', 'undelivered'));
