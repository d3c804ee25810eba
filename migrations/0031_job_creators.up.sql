-- Who asked for a job in a chat, as channel/account/sender: they may stop its runs there. '' if nobody
-- in a chat has.
alter table cron_jobs add column creator text collate "C" not null default '';
