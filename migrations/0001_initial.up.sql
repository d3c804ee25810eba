-- The first schema: nodes, sessions, the inbox, runs, the outbox, people.
--
-- Keys are compared byte by byte (collate "C"): what they name are ids of other systems, and a
-- prefix search can then use the ordinary index. Finished rows pile up by the million while few
-- are open, so every question about open rows has a partial index of its own.

create table nodes (
    id          text        collate "C" primary key,
    host        text        not null,
    pid         integer     not null,
    release     text        not null,
    started_at  timestamptz not null,
    lease_until timestamptz not null
);

create table leases (
    name  text   collate "C" primary key,
    owner text   collate "C" references nodes (id),
    fence bigint not null default 0
);

create index leases_owned on leases (owner) where owner is not null;

create table sessions (
    key            text        collate "C" primary key,
    agent          text        not null,
    channel        text,
    account        text,
    chat           text,
    thread         text,
    created_at     timestamptz not null,
    last_active_at timestamptz not null,
    owner          text        collate "C" references nodes (id),
    fence          bigint      not null default 0,
    epoch          integer     not null default 0,
    constraint sessions_target_is_whole
        check (num_nonnulls(channel, account, chat) in (0, 3))
) with (autovacuum_vacuum_scale_factor = 0.05);

create index sessions_owned on sessions (owner) where owner is not null;
create index sessions_by_activity on sessions (last_active_at, key);

create table history (
    id      bigint      generated always as identity primary key,
    session text        collate "C" not null references sessions (key) on delete cascade,
    epoch   integer     not null,
    role    text        not null,
    text    text        not null,
    native  bytea,
    format  text,
    run_id  text        collate "C",
    at      timestamptz not null,
    constraint history_role check (role in ('user', 'assistant'))
);

create index history_of_session on history (session, epoch, id);

create table inbox (
    id          bigint      generated always as identity primary key,
    channel     text        collate "C" not null,
    account     text        collate "C" not null,
    external_id text        collate "C" not null,
    session     text        collate "C" not null,
    agent       text        not null,
    kind        text        not null,
    state       text        not null,
    message     jsonb       not null,
    attempts    integer     not null default 0,
    run_id      text        collate "C",
    received_at timestamptz not null,
    finished_at timestamptz,
    outcome     text,
    reason      text,
    constraint inbox_known unique (channel, account, external_id),
    constraint inbox_kind check (kind in ('message', 'command')),
    constraint inbox_state check (state in ('pending', 'done')),
    constraint inbox_attempts check (attempts >= 0),
    constraint inbox_done_has_an_end
        check ((state = 'done') = (outcome is not null and finished_at is not null))
) with (autovacuum_vacuum_scale_factor = 0.02);

create index inbox_pending on inbox (session, id) where state = 'pending';
create index inbox_running on inbox (run_id) where state = 'pending' and run_id is not null;

create table runs (
    id            text        collate "C" primary key,
    session       text        collate "C" not null,
    agent         text        not null,
    trigger       text        not null,
    lane          text        not null,
    node          text        collate "C" not null,
    fence         bigint      not null,
    epoch         integer     not null,
    parent        text        collate "C",
    model         text        not null,
    channel       text,
    account       text,
    chat          text,
    thread        text,
    started_at    timestamptz not null,
    finished_at   timestamptz,
    outcome       text,
    reason        text,
    error         text,
    requests      bigint,
    input_tokens  bigint,
    output_tokens bigint,
    cached_tokens bigint,
    cost_usd      numeric,
    constraint runs_target_is_whole
        check (num_nonnulls(channel, account, chat) in (0, 3)),
    constraint runs_usage_is_whole
        check (num_nonnulls(requests, input_tokens, output_tokens, cached_tokens) in (0, 4)),
    constraint runs_ended check ((outcome is null) = (finished_at is null)),
    constraint runs_outcome check (outcome in (
        'completed', 'failed', 'cancelled', 'dropped', 'rejected', 'timed_out', 'abandoned',
        'interrupted', 'lost'))
);

create index runs_newest on runs (started_at, id);
create index runs_of_session on runs (session, started_at, id);
create index runs_active on runs (node, session) where outcome is null;
create index runs_active_in_session on runs (session) where outcome is null;

create table outbox (
    id                 bigint      generated always as identity primary key,
    channel            text        collate "C" not null,
    account            text        collate "C" not null,
    chat               text        collate "C" not null,
    session            text        collate "C",
    message            jsonb       not null,
    state              text        not null default 'pending',
    attempts           integer     not null default 0,
    possible_duplicate boolean     not null default false,
    owner              text        collate "C" references nodes (id),
    fence              bigint      not null default 0,
    created_at         timestamptz not null,
    next_attempt_at    timestamptz not null,
    finished_at        timestamptz,
    external_id        text,
    error              text,
    constraint outbox_state check (state in ('pending', 'sending', 'sent', 'dead')),
    constraint outbox_owner check ((state = 'sending') = (owner is not null)),
    constraint outbox_ended check ((state in ('sent', 'dead')) = (finished_at is not null))
) with (autovacuum_vacuum_scale_factor = 0.02);

create index outbox_unsent on outbox (channel, account, chat, id)
    where state in ('pending', 'sending');
create index outbox_sending on outbox (owner) where owner is not null;
create index outbox_dead on outbox (id) where state = 'dead';

-- The oldest unsent row of each chat: what may be sent next, and what blocks the rest. It steps
-- from chat to chat through the index, so a chat with a long line costs as much as any other.
create view outbox_heads as
with recursive heads as (
    (
        select channel, account, chat, id, state, next_attempt_at
        from outbox
        where state in ('pending', 'sending')
        order by channel, account, chat, id
        limit 1
    )
    union all
    select head.*
    from heads as previous
    cross join lateral (
        select o.channel, o.account, o.chat, o.id, o.state, o.next_attempt_at
        from outbox as o
        where o.state in ('pending', 'sending')
          and (o.channel, o.account, o.chat)
            > (previous.channel, previous.account, previous.chat)
        order by o.channel, o.account, o.chat, o.id
        limit 1
    ) as head
)
select channel, account, chat, id, state, next_attempt_at
from heads;

create table people (
    channel     text        collate "C" not null,
    account     text        collate "C" not null,
    sender_id   text        collate "C" not null,
    name        text        not null,
    username    text,
    standing    text        not null,
    approved_at timestamptz not null,
    primary key (channel, account, sender_id),
    constraint people_standing check (standing in ('owner', 'guest'))
);

create table pairing_requests (
    channel    text        collate "C" not null,
    account    text        collate "C" not null,
    sender_id  text        collate "C" not null,
    name       text        not null,
    username   text,
    code_hash  text        collate "C" not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    primary key (channel, account, sender_id)
);

-- Not unique: two strangers may draw the same code, and neither may lose a message by it.
create index pairing_requests_by_code on pairing_requests (code_hash);
