-- Work that waits for jobs. Other programs may insert rows: queue, title, body and url are theirs.

create table work_items (
    id         bigint      generated always as identity primary key,
    queue      text        collate "C" not null,
    title      text        not null,
    body       text        not null default '',
    url        text        not null default '',
    state      text        collate "C" not null default 'open'
               check (state in ('open', 'taken', 'done', 'failed')),
    taken_by   text        collate "C",
    taken_at   timestamptz,
    takes      integer     not null default 0,
    ended_at   timestamptz,
    outcome    text        not null default '',
    -- Shown to people and never compared, so the server's clock may write it.
    created_at timestamptz not null default clock_timestamp(),
    check (state <> 'taken' or taken_by is not null and taken_at is not null)
);

-- What is over leaves it, so that a long history costs nothing.
create index work_items_waiting on work_items (queue, id) where state in ('open', 'taken');
