alter table sessions reset (fillfactor);

create index sessions_heard on sessions (last_heard_at, key) where last_heard_at is not null;
create index sessions_by_activity on sessions (last_active_at, key);
