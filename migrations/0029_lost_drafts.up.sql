-- A draft whose post got no answer is looked for: by its stop button, which names the run that has
-- opened it, among the messages that came after the one that it answers. Null in those that an older
-- release opens.
alter table drafts add column opened_by text collate "C";
alter table drafts add column after_message text;
