-- What was decided about groups is forgotten, and who spoke last.

drop table moved_sessions;
drop index sessions_heard;
alter table sessions
    drop column peer,
    drop column last_sender,
    drop column last_heard_at;
drop table chats;
