-- Who asked for a run is forgotten.

drop index runs_used;
alter table runs drop column job, drop column sender;
