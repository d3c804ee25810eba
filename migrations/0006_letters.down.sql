-- What was given up in the outbox is dead again.

drop index outbox_dropped;
update outbox set state = 'dead' where state = 'dropped';
alter table outbox
    drop constraint outbox_state,
    drop constraint outbox_ended,
    add constraint outbox_state check (state in ('pending', 'sending', 'sent', 'dead')),
    add constraint outbox_ended check ((state in ('sent', 'dead')) = (finished_at is not null));

drop index inbox_letters;
alter table inbox drop column dismissed;
