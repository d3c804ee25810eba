-- What is said in groups without a mention: context for the next message that mentions the bot. Kept
-- for a day at most, so that indexes stay small. run_id is the run that it was given to.
create table unmentioned (
    id          bigint      generated always as identity primary key,
    channel     text        collate "C" not null,
    account     text        collate "C" not null,
    external_id text        collate "C" not null,
    session     text        collate "C" not null,
    message     jsonb       not null,
    sent_at     timestamptz not null,
    received_at timestamptz not null,
    run_id      text        collate "C",
    constraint unmentioned_known unique (channel, account, external_id)
) with (autovacuum_vacuum_scale_factor = 0.05);
create index unmentioned_of_session on unmentioned (session, id);
create index unmentioned_by_age on unmentioned (received_at);
