-- Messages on their way to the channel.

-- name: insert
-- Puts messages into the outbox, in the given order, due at once.
insert into outbox (channel, account, chat, message, session, created_at, next_attempt_at)
select m.channel, m.account, m.chat, m.message, $1, $2, $2
from unnest($3::text[], $4::text[], $5::text[], $6::jsonb[])
    with ordinality as m (channel, account, chat, message, ordinal)
order by m.ordinal;

-- name: chats_due
-- Chats whose oldest unsent row may be sent now, the longest due first.
select channel, account, chat
from outbox_heads
join unnest($1::text[], $2::text[]) as place (channel, account) using (channel, account)
where state = 'pending' and next_attempt_at <= $3
order by next_attempt_at, id;

-- name: next_due
-- When the oldest unsent row of some chat may be sent.
select min(next_attempt_at) as due_at
from outbox_heads
join unnest($1::text[], $2::text[]) as place (channel, account) using (channel, account)
where state = 'pending';

-- name: claim_next
-- Takes the oldest unsent row of a chat, if it may be sent now, for a node that exists. Two callers
-- meet at the row's lock; the second then sees that it is being sent. A row that this node itself
-- has claimed is given again: the answer to that claim was lost.
with me as (
    select id from nodes where id = $4 for key share
), head as (
    select id, state, owner, next_attempt_at
    from outbox
    where channel = $1 and account = $2 and chat = $3 and state in ('pending', 'sending')
    order by id
    limit 1
    for update
)
update outbox as o
set state = 'sending', owner = me.id, fence = o.fence + 1
from head, me
where o.id = head.id
  and (head.state = 'sending' and head.owner = me.id
    or head.state = 'pending' and head.next_attempt_at <= $5)
returning o.*;

-- name: mark_sent
-- Ends a claimed row as delivered.
update outbox
set state = 'sent', owner = null, external_id = $3, error = null, finished_at = $4
where id = $1 and fence = $2 and state = 'sending'
returning id;

-- name: mark_failed
-- Puts a claimed row back, to be tried later.
update outbox
set state = 'pending', owner = null, attempts = attempts + 1, error = $3, next_attempt_at = $4,
    possible_duplicate = possible_duplicate or $5
where id = $1 and fence = $2 and state = 'sending'
returning id;

-- name: mark_dead
-- Ends a claimed row as undeliverable.
update outbox
set state = 'dead', owner = null, error = $3, finished_at = $4
where id = $1 and fence = $2 and state = 'sending'
returning id;

-- name: same_claim
-- Tells the state of a row if nobody has claimed it since.
select state
from outbox
where id = $1 and fence = $2;

-- name: newest
-- The newest rows.
select * from outbox
order by id desc
limit $1;

-- name: newest_unsent
-- The newest rows that are pending, or being sent. The first condition is what the index knows.
select * from outbox
where state in ('pending', 'sending') and state = $2
order by id desc
limit $1;

-- name: newest_dead
-- The newest dead rows.
select * from outbox
where state = 'dead'
order by id desc
limit $1;

-- name: newest_sent
-- The newest delivered rows.
select * from outbox
where state = 'sent'
order by id desc
limit $1;

-- name: retry
-- Makes dead rows pending again, with all their attempts before them.
update outbox
set state = 'pending', attempts = 0, finished_at = null, next_attempt_at = $2
where id = any ($1::bigint[]) and state = 'dead'
returning id;

-- name: backlog
-- Counts what is not finished, and what is dead.
select
    (select count(*) from inbox where state = 'pending') as inbox,
    (select count(*) from outbox where state in ('pending', 'sending')) as outbox,
    (select count(*) from outbox where state = 'dead') as dead;
