-- Browsers that are signed in to the dashboard.

-- name: add
-- Store a sign-in, unless its token was revoked.
-- The lock lets a revocation that comes now wait, and then end the sign-in too.
insert into sign_ins (id, created_at, last_used_at, expires_at, address, user_agent, secret_hash, token_hash,
    name, role, reads_text, method, token)
select $1::text, $2::timestamptz, $3::timestamptz, $4::timestamptz, $5::text, $6::text, $7::text, $8::text,
    $9::text, $10::text, $11::boolean, $12::text, $13::text
where $13::text is null or exists (select from tokens where name = $13::text for key share)
returning id;

-- name: remove_others
-- Delete the sign-ins with another token.
delete from sign_ins
where token_hash <> $1;

-- name: of_secret
-- Return the valid sign-in with a secret.
select id, created_at, last_used_at, expires_at, address, user_agent, name, role, reads_text, method
from sign_ins
where secret_hash = $1 and token_hash = $2 and expires_at > $3;

-- name: note_used
-- Store when a sign-in was used.
update sign_ins
set last_used_at = $2
where id = $1 and last_used_at < $2;

-- name: sign_ins
-- Return all valid sign-ins.
select id, created_at, last_used_at, expires_at, address, user_agent, name, role, reads_text, method
from sign_ins
where expires_at > $1
order by last_used_at desc, id;

-- name: remove
-- Delete a sign-in.
delete from sign_ins
where id = $1
returning id;

-- name: remove_all
-- Delete all sign-ins.
delete from sign_ins
returning id;

-- name: sweep
-- Delete some of the sign-ins that expired before an instant.
delete from sign_ins
where ctid = any (array(
    select ctid
    from sign_ins
    where expires_at < $1
    order by expires_at, id
    limit $2
    for update skip locked
))
returning id;
