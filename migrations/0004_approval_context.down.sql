-- The context of questions is lost; nothing else depends on it.
alter table approvals drop column context;
