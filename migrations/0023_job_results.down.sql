drop index outbox_dead_results;
drop index cron_jobs_delivering;
alter table cron_jobs drop column forgets, drop column delivers;
drop index cron_run_logs_untold;
update cron_run_logs set status = 'ok' where status in ('no_route', 'undelivered');
alter table cron_run_logs
    drop column told_at,
    drop constraint cron_run_logs_status,
    add constraint cron_run_logs_status check (status in (
        'running', 'ok', 'failed', 'timed_out', 'cancelled', 'skipped', 'interrupted', 'lost'));
