-- Who may talk to the agent.

-- name: people
-- Everybody who was approved before a place, the newest first.
select channel, account, sender_id, name, username, standing, approved_at
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
        $7::timestamptz[], $8::timestamptz[]
    ) with ordinality as b (
        channel, account, sender_id, name, username, code_hash, created_at, expires_at, ordinal
    )
), kept as (
    insert into pairing_requests as p (
        channel, account, sender_id, name, username, code_hash, created_at, expires_at
    )
    select channel, account, sender_id, name, username, code_hash, created_at, expires_at
    from batch
    order by channel, account, sender_id
    on conflict (channel, account, sender_id) do update
    set name = excluded.name,
        username = excluded.username,
        code_hash = excluded.code_hash,
        created_at = excluded.created_at,
        expires_at = excluded.expires_at
    where p.expires_at <= $9
    returning channel, account, sender_id
)
select batch.ordinal
from kept
join batch using (channel, account, sender_id)
order by batch.ordinal;

-- name: requests
-- Requests that are valid, oldest first.
select channel, account, sender_id, name, username, code_hash, created_at, expires_at
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
returning p.channel, p.account, p.sender_id, p.name, p.username;

-- name: approve
-- Enters a person, as owner if nobody else is there yet or if asked to.
insert into people as p (channel, account, sender_id, name, username, standing, approved_at)
values (
    $1, $2, $3, $4, $5,
    case
        when $6 and exists (
            select from people where channel = $1 and account = $2 and sender_id <> $3
        ) then 'guest'
        else 'owner'
    end,
    $7
)
on conflict (channel, account, sender_id) do update
set name = excluded.name,
    username = excluded.username,
    standing = excluded.standing,
    approved_at = excluded.approved_at
returning channel, account, sender_id, name, username, standing, approved_at;

-- name: revoke
-- Removes a person.
delete from people
where channel = $1 and account = $2 and sender_id = $3
returning sender_id;
