-- Jobs that are over are deleted some time after they last ran or were changed. They are found by
-- that time: it costs nothing to look for them where there is nothing to delete.

create index cron_jobs_over on cron_jobs (greatest(updated_at, last_run_at))
    where state in ('completed', 'failed');
