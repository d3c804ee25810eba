-- Chats: what was decided about them, whether they can be written to, where people spoke last.

create table chats (
    channel       text        collate "C" not null,
    account       text        collate "C" not null,
    chat          text        collate "C" not null,
    peer          text        not null,
    name          text        not null default '',
    allowed       boolean,
    gone          text        not null default '',
    first_seen_at timestamptz not null,
    last_seen_at  timestamptz not null,
    primary key (channel, account, chat),
    constraint chats_peer check (peer in ('direct', 'group'))
);

create index chats_by_sight on chats (last_seen_at, channel, account, chat);

-- Null in sessions in which nobody has spoken since this was added, and in those without a chat.
alter table sessions
    add column peer          text,
    add column last_sender   text,
    add column last_heard_at timestamptz,
    add constraint sessions_peer check (peer in ('direct', 'group')),
    add constraint sessions_heard_is_whole
        check (num_nonnulls(peer, last_sender, last_heard_at) in (0, 3));

create index sessions_heard on sessions (last_heard_at, key) where last_heard_at is not null;

-- Sessions whose chat has another id now, for those who still know them by the old key.
create table moved_sessions (
    key      text collate "C" primary key,
    moved_to text collate "C" not null
);
