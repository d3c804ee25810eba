-- Topics of chats: what people call them, and which of them take no messages any more (SPEC CHAN-6).
-- The thread '' is the general topic. told: people were told that what is for it goes elsewhere.
create table topics (
    channel text    collate "C" not null,
    account text    collate "C" not null,
    chat    text    collate "C" not null,
    thread  text    collate "C" not null,
    name    text    not null default '',
    gone    text    not null default '',
    told    boolean not null default false,
    primary key (channel, account, chat, thread),
    constraint topics_gone check (gone in ('', 'closed', 'deleted'))
);

-- Every node reads these again and again.
create index topics_marked on topics (channel, account, chat, thread) where gone <> '';
