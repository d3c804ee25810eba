-- What operators should know of a run besides its outcome, such as an estimated usage.
--
-- Rewrites nothing: the new column is null in the rows that exist.
alter table runs add column notes text[];
comment on column runs.notes is 'What is unusual about it: history_repaired, usage_estimated, answer_cut. Null: nothing.';
