-- Jobs are forgotten, with all that is known of them.

drop index outbox_of_occurrence;
drop index runs_of_occurrence;
alter table outbox drop column occurrence;
alter table runs drop column occurrence;

drop table owner_zones;
drop table cron_run_logs;
drop table cron_jobs;
