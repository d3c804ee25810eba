drop index cron_jobs_not_active;
drop index cron_jobs_of_owner;
drop index chats_undecided;
