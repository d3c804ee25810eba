-- Edits of settings at run time.

-- name: edits
-- Return the newest edit of each setting, the oldest first.
-- It skips from setting to setting in the index: old edits cost nothing.
with recursive newest as (
    (select * from setting_edits order by path desc, id desc limit 1)
    union all
    select next.*
    from newest as last
    cross join lateral (
        select *
        from setting_edits
        where path < last.path
        order by path desc, id desc
        limit 1
    ) as next
)
select id, path, value, before, after, source, edited_at
from newest
order by id;

-- name: lock
-- Let only one transaction add edits, so that each has seen all before its own.
lock table setting_edits in share row exclusive mode;

-- name: newest
-- Return the id of the newest edit, 0 if there is none.
select coalesce(max(id), 0) as id
from setting_edits;

-- name: add
-- Add edits, in the given order, and notify all listeners.
with added as (
    insert into setting_edits (path, value, before, after, source, edited_at)
    select s.path, s.value, s.before, s.after, $5, $6
    from unnest($1::text[], $2::text[], $3::text[], $4::text[])
        with ordinality as s (path, value, before, after, ordinal)
    order by s.ordinal
    returning id
)
select case when exists (select from added) then pg_notify($7, '') end;

-- name: history
-- Return edits before the edit $1, the newest first.
select id, path, value, before, after, source, edited_at
from setting_edits
where id < $1
order by id desc
limit $2;

-- name: sweep
-- Delete some of the edits from before an instant that have no effect any more.
delete from setting_edits
where id = any (array(
    select e.id
    from setting_edits as e
    where e.edited_at < $1
      and (
          e.value is null
          or (
              select exists (select from setting_edits as n where n.path = e.path and n.id > e.id)
          )
      )
    order by e.id
    limit $2
    for update skip locked
))
returning id;
