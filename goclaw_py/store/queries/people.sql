-- Who may talk to the agent.

-- name: people
-- Everybody who was approved before a place, the newest first.
select channel, account, sender_id, name, username, role, approved_at
from people
where (approved_at, channel, account, sender_id) < ($2, $3, $4, $5)
order by approved_at desc, channel desc, account desc, sender_id desc
limit $1;

-- name: request_pairing
-- Keeps those requests whose sender has no live one, and returns them by their place in the batch.
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
-- Removes new requests of people who were let in, and of chats that were decided about, and returns
-- them. After they were stored: an approval that was under way is seen then.
delete from pairing_requests as p
using (
    select
        r.id,
        exists (
            select from people as o
            where (o.channel, o.account, o.sender_id) = (r.channel, r.account, r.sender_id)
        ) as is_known,
        exists (
            select from chats as c
            where (c.channel, c.account, c.chat) = (r.channel, r.account, r.chat)
              and (c.allowed is false or (c.allowed and r.peer = 'group'))
        ) as is_settled
    from pairing_requests as r
    where r.id = any ($1::text[])
) as d
where p.id = d.id and (d.is_known or d.is_settled)
returning p.id, p.messages, d.is_known;

-- name: keep_messages
-- Adds what somebody wrote to their request, which keeps the newest $5.
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
-- Requests that are valid, oldest first.
select
    channel, account, sender_id, name, username, code_hash, created_at, expires_at, id, chat, peer
from pairing_requests
where expires_at > $1
order by created_at, channel, account, sender_id;

-- name: lock_people
-- Lets one approval at a time decide who the first person is. Readers do not wait.
lock table people in share row exclusive mode;

-- name: take_request
-- Removes and returns the oldest valid request with this code.
delete from pairing_requests as p
using (
    select channel, account, sender_id
    from pairing_requests
    where code_hash = $1 and expires_at > $2
    order by created_at, channel, account, sender_id
    limit 1
    for update
) as chosen
where (p.channel, p.account, p.sender_id)
    = (chosen.channel, chosen.account, chosen.sender_id)
returning p.*;

-- name: take_request_of_chat
-- Removes and returns the request of a chat about which a decision is made; a person's request stays
-- where their direct chat is allowed ($4), which lets nobody in.
delete from pairing_requests
where channel = $1 and account = $2 and coalesce(nullif(chat, ''), sender_id) = $3
  and (peer = 'group' or not $4)
returning *;

-- name: request
-- The request with this id, if it is one of the account; nobody else decides about it meanwhile.
select *
from pairing_requests
where id = $1 and channel = $2 and account = $3
for update;

-- name: remove_request
-- Removes a request, with what its sender wrote.
delete from pairing_requests
where id = $1
returning id;

-- name: decide_chat
-- Keeps what was decided about the chat of a request.
insert into chats as c (channel, account, chat, peer, name, allowed, first_seen_at, last_seen_at)
values ($1, $2, $3, $4, $5, $6, $7, $7)
on conflict (channel, account, chat) do update
set allowed = excluded.allowed;

-- name: drop_asking
-- Gives up messages that ask owners and still wait to be sent. Locks them in order of their ids.
with waiting as (
    select id
    from outbox
    where alert = $1 and state = 'pending'
    order by id
    for update
)
update outbox
set state = 'dropped', finished_at = $2, error = $3
from waiting
where outbox.id = waiting.id
returning outbox.id;

-- name: asked
-- The messages that owners were asked by.
select message, external_id
from outbox
where alert = $1 and state = 'sent' and external_id is not null
order by id;

-- name: approve
-- Enters a person, as guest if asked to ($6) and if others are there, or that does not matter ($8).
insert into people as p (channel, account, sender_id, name, username, role, approved_at)
values (
    $1, $2, $3, $4, $5,
    case
        when $6 and ($8 or exists (
            select from people where channel = $1 and account = $2 and sender_id <> $3
        )) then 'guest'
        else 'owner'
    end,
    $7
)
on conflict (channel, account, sender_id) do update
set name = excluded.name,
    username = excluded.username,
    role = excluded.role,
    approved_at = excluded.approved_at
returning channel, account, sender_id, name, username, role, approved_at;

-- name: revoke
-- Removes a person.
delete from people
where channel = $1 and account = $2 and sender_id = $3
returning sender_id;
