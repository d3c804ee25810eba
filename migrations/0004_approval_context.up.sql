-- Who asked for the call that a question is about, and for what, as it was known when it was asked.
--
-- Rewrites nothing: the new column is null in the rows that exist.
alter table approvals add column context jsonb;
comment on column approvals.context is 'People, chat, request and job of the run, and earlier answers about the tool in the session. Null: not known.';
