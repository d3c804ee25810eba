-- Nobody looks for them any more.

drop index cron_jobs_over;
