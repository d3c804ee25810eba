-- The audit log is lost; nothing else depends on it.
drop table audit;
drop function refuse_change_of_audit();
