-- When a group was heard last by a message that was not meant for the bot: nothing else of it is kept.
alter table chats add column unmentioned_at timestamptz;

-- The messages that a run answered, also after its end.
create index inbox_of_run on inbox (run_id) where run_id is not null;
drop index inbox_running;
