create index inbox_running on inbox (run_id) where state = 'pending' and run_id is not null;
drop index inbox_of_run;
alter table chats drop column unmentioned_at;
