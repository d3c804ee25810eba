-- Every message and every run updates its session. Without an index on what changes then, the new
-- version of the row finds room on its own page and no index is written; lists of sessions, which are
-- seldom asked for, sort instead.

drop index sessions_by_activity;
drop index sessions_heard;

alter table sessions set (fillfactor = 50);
