-- People who may talk to agents.

-- name: people
-- Return approved people before a position, the newest first.
select channel, account, sender_id, name, username, role, approved_at
from people
where (approved_at, channel, account, sender_id) < ($2, $3, $4, $5)
order by approved_at desc, channel desc, account desc, sender_id desc
limit $1;

-- name: request_pairing
-- Store the requests whose sender has no valid one, and return them by their position in the batch.
with batch as (
    select *
    from unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
        $7::timestamptz[], $8::timestamptz[], $10::text[], $11::text[], $12::text[], $13::jsonb[]
    ) with ordinality as b (
        channel, account, sender_id, name, username, code_hash, created_at, expires_at, id, chat,
        peer, messages, ordinal
    )
), kept as (
    insert into pairing_requests as p (
        channel, account, sender_id, name, username, code_hash, created_at, expires_at, id, chat,
        peer, messages
    )
    select
        channel, account, sender_id, name, username, code_hash, created_at, expires_at, id, chat,
        peer, messages
    from batch
    order by channel, account, sender_id
    on conflict (channel, account, sender_id) do update
    set name = excluded.name,
        username = excluded.username,
        code_hash = excluded.code_hash,
        created_at = excluded.created_at,
        expires_at = excluded.expires_at,
        id = excluded.id,
        chat = excluded.chat,
        peer = excluded.peer,
        messages = excluded.messages
    where p.expires_at <= $9
    returning channel, account, sender_id
)
select batch.ordinal
from kept
join batch using (channel, account, sender_id)
order by batch.ordinal;

-- name: remove_decided
-- Delete new requests of people who were approved meanwhile, and of chats that have a decision, and
-- return them. It runs after they were stored, so that it sees a concurrent approval.
delete from pairing_requests as p
using (
    select
        r.id,
        (
            select o.role
            from people as o
            where (o.channel, o.account, o.sender_id) = (r.channel, r.account, r.sender_id)
        ) is not null as is_known,
        exists (
            select from chats as c
            where (c.channel, c.account, c.chat) = (r.channel, r.account, r.chat)
              and (c.allowed is false or (c.allowed and r.peer = 'group'))
        ) as is_settled
    from pairing_requests as r
    where r.id = any ($1::text[])
    offset 0
) as d
where p.id = d.id and p.id = any ($1::text[]) and (d.is_known or d.is_settled)
returning p.id, p.messages, d.is_known;

-- name: add_messages
-- Add messages to the request of their sender, which keeps the newest $5.
update pairing_requests as p
set messages = (
    select jsonb_agg(newest.message order by newest.ordinal)
    from (
        select e.message, e.ordinal
        from jsonb_array_elements(p.messages || $4::jsonb) with ordinality as e (message, ordinal)
        order by e.ordinal desc
        limit $5
    ) as newest
)
where p.channel = $1 and p.account = $2 and p.sender_id = $3
returning p.id;

-- name: requests
-- Return valid requests, the oldest first.
select
    channel, account, sender_id, name, username, code_hash, created_at, expires_at, id, chat, peer
from pairing_requests
where expires_at > $1
order by created_at, channel, account, sender_id;

-- name: pop_request
-- Delete and return the oldest valid request with this code.
delete from pairing_requests
where id = (
    select id
    from pairing_requests
    where code_hash = $1 and expires_at > $2
    order by created_at, channel, account, sender_id
    limit 1
    for update
)
returning *;

-- name: pop_request_of_chat
-- Delete and return the request of a chat that gets a decision. The request of a person is kept if
-- their direct chat is allowed ($4), because that does not approve anybody.
delete from pairing_requests
where channel = $1 and account = $2 and coalesce(nullif(chat, ''), sender_id) = $3
  and (peer = 'group' or not $4)
returning *;

-- name: request
-- Return and lock the request with this id, if it belongs to the account.
select *
from pairing_requests
where id = $1 and channel = $2 and account = $3
for update;

-- name: remove_request
-- Delete a request and the messages of its sender.
delete from pairing_requests
where id = $1
returning id;

-- name: decide_chat
-- Store the decision about the chat of a request, which was last seen when it asked.
insert into chats as c (channel, account, chat, peer, name, allowed, first_seen_at, last_seen_at)
values ($1, $2, $3, $4, $5, $6, $7, $7)
on conflict (channel, account, chat) do update
set allowed = excluded.allowed;

-- name: drop_request_messages
-- Drop messages to owners about a request that are not sent yet. Locks them in the order of their
-- ids.
with waiting as (
    select id
    from outbox
    where alert = $1 and (state = 'pending' and owner is null) is true
    order by id
    for update
)
update outbox
set state = 'dropped', finished_at = $2, error = $3
from waiting
where outbox.id = waiting.id and outbox.id = any (array(select id from waiting))
returning outbox.id;

-- name: request_messages
-- Return the messages to owners about a request.
select message, external_id
from outbox
where alert = $1 and (state = 'sent') is true and external_id is not null
order by id;

-- name: approve
-- Store a person, as guest if requested ($6).
insert into people as p (channel, account, sender_id, name, username, role, approved_at)
values (
    $1, $2, $3, $4, $5,
    case when $6 then 'guest' else 'owner' end,
    $7
)
on conflict (channel, account, sender_id) do update
set name = excluded.name,
    username = excluded.username,
    role = excluded.role,
    approved_at = excluded.approved_at
returning channel, account, sender_id, name, username, role, approved_at;

-- name: revoke
-- Delete a person.
delete from people
where channel = $1 and account = $2 and sender_id = $3
returning sender_id;
