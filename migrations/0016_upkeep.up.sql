-- Sessions in which nobody goes on are forgotten after some time. They are found among those that are
-- no chats, of which there is no end and which stay for ever. What is indexed changes every five
-- minutes at most, see 0015.

create index sessions_passing on sessions (active_in)
    where split_part(key, ':', 3) in ('cron', 'heartbeat', 'subagent', 'delegate');
