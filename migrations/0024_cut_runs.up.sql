-- A run whose process died is known by what it had recorded; whoever works on the same message, time
-- of a job or beat after it is told of its tool calls. Null in runs that follow none.
alter table inbox add column last_run text collate "C";
alter table runs add column follows text collate "C";
