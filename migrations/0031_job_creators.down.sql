alter table cron_jobs drop column creator;
