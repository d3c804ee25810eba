-- Messages in a chat that show a growing reply. There is a row only while a run works on one, or
-- while the messages that it answers wait for their next run.

create table drafts (
    run_id      text        collate "C" primary key,
    inbox       bigint[]    not null,
    channel     text        not null,
    account     text        not null,
    chat        text        not null,
    thread      text,
    external_id text,
    opened_at   timestamptz not null
) with (autovacuum_vacuum_scale_factor = 0.02);

-- Every run that begins asks whether one is there for its messages.
create index drafts_of_inbox on drafts using gin (inbox) with (fastupdate = off);
