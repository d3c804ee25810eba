-- Personal links to the web chat.

-- name: add_guest
-- Approve a person as guest; returns nothing if they are approved already.
insert into people (channel, account, sender_id, name, role, approved_at)
values ($1, $2, $3, $3, 'guest', $4)
on conflict (channel, account, sender_id) do nothing
returning sender_id;

-- name: lock_guest
-- Approve a person as guest unless they are approved, and lock them: they are not removed meanwhile.
insert into people as p (channel, account, sender_id, name, role, approved_at)
values ($1, $2, $3, $3, 'guest', $4)
on conflict (channel, account, sender_id) do update
set role = p.role
returning sender_id;

-- name: replace_unused
-- Delete the unused links of a person.
delete from web_links
where channel = $1 and account = $2 and sender_id = $3 and used_at is null;

-- name: add
-- Store a link.
insert into web_links (link_hash, channel, account, sender_id, created_at, expires_at)
values ($1, $2, $3, $4, $5, $6);

-- name: links
-- Return all links, the newest first.
select sender_id as name, link_hash, created_at, expires_at, used_at, cookie_hash
from web_links
order by created_at desc, link_hash;

-- name: use
-- Use a link once.
update web_links
set cookie_hash = $2, used_at = $3, expires_at = $4
where link_hash = $1 and used_at is null and expires_at > $3;

-- name: link
-- Return a link.
select sender_id as name, link_hash, created_at, expires_at, used_at, cookie_hash
from web_links
where link_hash = $1;

-- name: of_cookie
-- Return the link by which a browser is signed in.
select sender_id as name, link_hash, created_at, expires_at, used_at, cookie_hash
from web_links
where cookie_hash = $1 and expires_at > $2;

-- name: remove_cookie
-- Delete the link by which a browser is signed in.
delete from web_links
where cookie_hash = $1;

-- name: sweep
-- Delete some of the links and sign-ins that expired before an instant.
delete from web_links
where ctid = any (array(
    select ctid
    from web_links
    where expires_at < $1
    order by expires_at, link_hash
    limit $2
    for update skip locked
))
returning link_hash;
