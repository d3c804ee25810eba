-- The notes of runs are lost; nothing else depends on them.
alter table runs drop column notes;
