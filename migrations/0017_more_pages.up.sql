-- Each look at a gateway counts the groups that nobody has decided about, among chats without end.
create index chats_undecided on chats (channel, account, chat)
    where peer = 'group' and allowed is null and gone = '';

-- The jobs of one owner in the order in which they are shown; one may have nearly all.
create index cron_jobs_of_owner on cron_jobs (owner, next_run_at, created_at, id);

-- And those that rest or are over; most are active.
create index cron_jobs_not_active on cron_jobs (state, next_run_at, created_at, id)
    where state <> 'active';
