alter table drafts drop column after_message;
alter table drafts drop column opened_by;
