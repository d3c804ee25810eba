-- Operators may give up messages in both directions; those that they have seen are listed no more.

alter table inbox add column dismissed boolean not null default false;

create index inbox_letters on inbox (id)
    where state = 'done' and kind = 'message' and not dismissed
        and outcome in ('failed', 'timed_out', 'dropped', 'rejected', 'abandoned', 'lost');

alter table outbox
    drop constraint outbox_state,
    drop constraint outbox_ended,
    add constraint outbox_state check (state in ('pending', 'sending', 'sent', 'dead', 'dropped')),
    add constraint outbox_ended
        check ((state in ('sent', 'dead', 'dropped')) = (finished_at is not null));

create index outbox_dropped on outbox (id) where state = 'dropped';
