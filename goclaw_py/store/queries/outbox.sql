-- Outgoing messages.

-- name: insert
-- Store messages in the outbox, in the given order, due immediately.
insert into outbox (
    channel, account, chat, message, session, occurrence, heartbeat_run, alert, created_at, next_attempt_at
)
select
    m.channel, m.account, m.chat, m.message, $1, m.message ->> 'occurrence',
    m.message ->> 'heartbeat_run', m.message ->> 'alert', $2, $2
from unnest($3::text[], $4::text[], $5::text[], $6::jsonb[])
    with ordinality as m (channel, account, chat, message, ordinal)
order by m.ordinal;

-- name: insert_each
-- Store messages in the outbox, in the given order, each due at an instant of its own, and notify
-- the senders.
with said as (
    insert into outbox (
        channel, account, chat, message, occurrence, heartbeat_run, alert, created_at, next_attempt_at
    )
    select
        m.channel, m.account, m.chat, m.message, m.message ->> 'occurrence',
        m.message ->> 'heartbeat_run', m.message ->> 'alert', m.at, m.at
    from unnest($2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::jsonb[])
        with ordinality as m (at, channel, account, chat, message, ordinal)
    order by m.ordinal
    returning id
)
select case when exists (select from said) then pg_notify($1, '') end;

-- name: chats_due
-- Return chats whose oldest unsent row may be sent now, the longest due first, with the size of its
-- album; and a last row with the time at which that of another chat may be sent.
with heads as materialized (
    select h.*
    from outbox_heads as h
    join unnest($1::text[], $2::text[]) as place (channel, account) using (channel, account)
    where h.owner is null
)
(
    select
        h.channel, h.account, h.chat,
        (
            select case
                when head.message ->> 'album' is null then 1
                else (
                    select count(*)
                    from outbox as o
                    where o.channel = h.channel and o.account = h.account and o.chat = h.chat
                      and o.state = 'pending' and o.message ->> 'album' = head.message ->> 'album'
                )
            end
            from outbox as head
            where head.id = h.id
        ) as size,
        null::timestamptz as next_at
    from heads as h
    where h.next_attempt_at <= $3
    order by h.next_attempt_at, h.id
)
union all
select null, null, null, null, min(next_attempt_at)
from heads
where next_attempt_at > $3;

-- name: claim_next
-- Claim the oldest unsent row of each of some chats, if it may be sent at the chat's instant, for
-- an existing node. Concurrent callers wait for the lock of the row; the second then sees that it
-- is being sent. A row that this node itself has claimed is returned again, because the reply to
-- that claim was lost. Rows are locked in the order of their chats, here and where they are marked.
with me as (
    select id from nodes where id = $1 for key share
), head as (
    select h.id, h.owner, h.next_attempt_at <= chat.at as due
    from (
        select *
        from unnest($2::text[], $3::text[], $4::text[], $5::timestamptz[])
            as chats (channel, account, chat, at)
        order by channel collate "C", account collate "C", chat collate "C"
    ) as chat
    cross join lateral (
        select o.id, o.owner, o.next_attempt_at
        from outbox as o
        where o.channel = chat.channel and o.account = chat.account and o.chat = chat.chat
          and o.state = 'pending'
        order by o.id
        limit 1
        for update
    ) as h
)
update outbox as o
set owner = $1, fence = o.fence + 1, attempts = o.attempts + (o.owner is null)::integer
where o.id = any (array(
    select head.id
    from head, me
    where head.owner = me.id or head.owner is null and head.due
))
returning o.*;

-- name: claim_album
-- Claim the other unsent rows of the album of a claimed row, for an existing node. They need not be
-- due: what delays the claimed row delays them too. Rows that this node itself has claimed are
-- returned again, as in claim_next.
with me as (
    select id from nodes where id = $1 for key share
), taken as (
    update outbox as o
    set owner = $1, fence = o.fence + 1, attempts = o.attempts + (o.owner is null)::integer
    where o.id = any (array(
        select other.id
        from (select * from outbox where id = $2) as first
        cross join me
        cross join lateral (
            select id
            from outbox
            where channel = first.channel and account = first.account and chat = first.chat
              and state = 'pending'
              and (channel, account, chat, id) > (first.channel, first.account, first.chat, $2)
              and message ->> 'album' = first.message ->> 'album'
              and (owner is null or owner = me.id)
            order by channel, account, chat, id
            for update
        ) as other
    ))
    returning o.*
)
select * from taken order by id;

-- name: mark_sent
-- End claimed rows as delivered; returns the rows that were, and whether others of the chat wait.
with locked as (
    select id
    from outbox
    where id = any ($1::bigint[])
    order by channel, account, chat, id
    for update
)
update outbox as o
set state = 'sent', owner = null, external_id = m.external_id, error = null, finished_at = m.at,
    possible_duplicate = o.possible_duplicate or m.beside_draft
from unnest($1::bigint[], $2::bigint[], $3::text[], $4::timestamptz[], $5::boolean[])
    as m (id, fence, external_id, at, beside_draft)
where o.id = any (array(select id from locked))
  and o.id = m.id and o.fence = m.fence and o.owner is not null
returning o.id, o.fence, exists (
    select from outbox as other
    where other.channel = o.channel and other.account = o.account and other.chat = o.chat
      and other.state = 'pending' and other.id <> o.id
) as others;

-- name: clear_duplicate
-- A sent row is in its chat once only. Other rows have no external id.
update outbox
set possible_duplicate = false
where id = $1 and fence = $2 and owner is null and external_id is not null;

-- name: mark_failed
-- Release a claimed row, to be retried later.
update outbox
set owner = null, error = $3, next_attempt_at = $4,
    possible_duplicate = possible_duplicate or $5,
    message = case when $6 then message - 'album' else message end
where id = $1 and fence = $2 and owner is not null
returning id;

-- name: mark_dead
-- End a claimed row as undeliverable.
update outbox
set state = 'dead', owner = null, error = $3, finished_at = $4
where id = $1 and fence = $2 and owner is not null
returning id;

-- name: same_claim
-- Return the state of a row if nobody has claimed it since.
select state, owner
from outbox
where id = $1 and fence = $2;

-- name: newest
-- Return the newest rows before a row.
select * from outbox
where id < $2
  -- use: selected
order by id desc
limit $1;

-- name: newest_of_run
-- The same for the messages of a run, in any state or one.
select * from outbox
where message ->> 'run_id' = $10 and id < $2 and ($11::text is null or $11 = case when owner is null then state else 'sending' end)
  -- use: selected
order by id desc
limit $1;

-- name: newest_waiting
-- The same for waiting rows.
select * from outbox
where state = 'pending' and owner is null and id < $2
  -- use: selected
order by id desc
limit $1;

-- name: newest_sending
-- The same for rows that are being sent.
select * from outbox
where state = 'pending' and owner is not null and id < $2
  -- use: selected
order by id desc
limit $1;

-- name: newest_failed
-- The same for undeliverable rows.
select * from outbox
where state = 'dead' and id < $2
  -- use: selected
order by id desc
limit $1;

-- name: newest_dropped
-- The same for rows that an operator dropped.
select * from outbox
where state = 'dropped' and id < $2
  -- use: selected
order by id desc
limit $1;

-- name: newest_sent
-- The same for delivered rows.
select * from outbox
where (state = 'sent') is true and id < $2
  -- use: selected
order by id desc
limit $1;

-- name: counts
-- Count rows by state. $1 and $2 are those of the lists, and select all.
select case when owner is null then state else 'sending' end as state, count(*) as rows
from outbox
where $1::bigint is not null and id < $2
  -- use: selected
group by 1;

-- part: selected
-- The conditions of a filter.
and ($3::text is null or channel = $3)
and ($4::text is null or (channel, account, chat) = ($4, $5::text, $6::text))
and ($7::timestamptz is null or created_at >= $7)
and ($8::text = '' or strpos(lower((message ->> 'text') collate "C"), $8) > 0)
and ($9::text is null or account = $9)

-- name: row
-- Return one row.
select * from outbox
where id = $1;

-- name: drop_answers
-- Drop pending answers of a session in a chat: of all runs with $6, else of the run $7, or if that
-- is null of the run with the oldest pending part; with $8 only answers to this sender. Messages of
-- jobs and heartbeats are not answers; messages that finish a partial reply are sent, because it
-- would stay open.
with waiting as (
    select id, message ->> 'run_id' as run
    from outbox
    where channel = $1 and account = $2 and chat = $3 and state = 'pending'
      and owner is null and session = $4 and occurrence is null and heartbeat_run is null
      and message ->> 'run_id' is not null and message ->> 'draft' is null
      and not message ? 'lost'
      and (
          $8::text is null
          or $8 = (select sender from runs where runs.id = message ->> 'run_id')
      )
    order by id
    for update
)
update outbox as o
set state = 'dropped', finished_at = $5, error = 'stopped'
from waiting as w
where o.id = w.id
  and ($6 or w.run = coalesce($7, (select run from waiting order by id limit 1)))
returning o.id;

-- name: drop
-- Drop rows that are undeliverable or pending. Locks them in the order of their ids.
with left_over as (
    select id
    from outbox
    where id = any ($1::bigint[]) and state in ('pending', 'dead') and owner is null
    order by id
    for update
)
update outbox
set state = 'dropped', finished_at = $2
from left_over
where outbox.id = left_over.id
returning outbox.channel;

-- name: retry
-- Make undeliverable or dropped rows pending again, with all attempts available. Locks them in the
-- order of their ids.
with ended as (
    select id
    from outbox
    where id = any ($1::bigint[]) and (state in ('dead', 'dropped')) is true
    order by id
    for update
)
update outbox
set state = 'pending', attempts = 0, finished_at = null, next_attempt_at = $2
from ended
where outbox.id = ended.id and outbox.id = any (array(select id from ended))
returning outbox.id;

-- name: advance
-- Makes waiting rows that are due after $1 due earlier by $2. Locks them in the order of their ids.
with later as (
    select id
    from outbox
    where state = 'pending' and next_attempt_at > $1
    order by id
    for update
)
update outbox
set next_attempt_at = outbox.next_attempt_at - $2::interval
from later
where outbox.id = later.id and outbox.id = any (array(select id from later));

-- name: backlog
-- Count unfinished, undeliverable and failed messages, and tool calls that wait for an answer of a
-- person; dropped and rejected messages do not count, because their senders were notified. With
-- channels and accounts ($1, $2) count the unfinished messages of each other one, too. Incoming ones
-- are claimed by the place of their session.
with waiting as materialized (
    select session, count(*) as messages from inbox where state = 'pending' group by session
),
unsent as materialized (
    select channel, account, count(*) as messages
    from outbox
    where state = 'pending'
    group by channel, account
),
unserved as materialized (
    select channel, account, sum(incoming)::bigint as incoming, sum(outgoing)::bigint as outgoing
    from (
        select s.channel, s.account, w.messages as incoming, 0 as outgoing
        from waiting as w
        cross join lateral (
            select channel, account from sessions where key = w.session offset 0
        ) as s
        where s.channel is not null
        union all
        select channel, account, 0, messages from unsent
    ) as both_ways
    where $1::text[] is not null
      and (channel, account) not in (select * from unnest($1::text[], $2::text[]))
    group by channel, account
    order by channel collate "C", account collate "C"
)
select
    (select coalesce(sum(messages), 0)::bigint from waiting) as inbox,
    (select coalesce(sum(messages), 0)::bigint from unsent) as outbox,
    (select count(*) from outbox where state = 'dead') as failed,
    (
        select count(*)
        from inbox
        where state = 'done' and kind = 'message' and not dismissed
          and outcome in ('failed', 'timed_out', 'abandoned', 'lost')
    ) as unanswered,
    (select count(*) from approvals where decision is null) as approvals,
    array(select channel from unserved) as channels,
    array(select account from unserved) as accounts,
    array(select incoming from unserved) as incoming,
    array(select outgoing from unserved) as outgoing;
