-- Runs that are cut leave their drafts as they stand.

drop table drafts;
