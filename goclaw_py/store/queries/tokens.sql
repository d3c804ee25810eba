-- Tokens with a name and a role.

-- name: add
-- Store a token, unless there is one with its name.
insert into tokens (name, role, reads_text, secret_hash, created_at, expires_at)
values ($1, $2, $3, $4, $5, $6)
on conflict (name) do nothing
returning name;

-- name: of_secret
-- Return the valid token with a secret.
select name, role, reads_text, created_at, expires_at, last_used_at
from tokens
where secret_hash = $1 and (expires_at is null or expires_at > $2);

-- name: note_used
-- Store when a token was used.
update tokens
set last_used_at = $2
where name = $1 and (last_used_at is null or last_used_at < $2);

-- name: tokens
-- Return all tokens.
select name, role, reads_text, created_at, expires_at, last_used_at
from tokens
order by name;

-- name: remove
-- Delete a token; its sign-ins go with it.
delete from tokens
where name = $1
returning name;
