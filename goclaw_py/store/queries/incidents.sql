-- Troubles that operators are told about.

-- name: open
-- Notes a trouble; tells whether it is new: only a row that was there has a transaction in xmax.
-- What is known gets the new text.
insert into incidents as i (key, text, since)
values ($1, $2, $3)
on conflict (key) do update set text = excluded.text
returning xmax = 0 as fresh;

-- name: close
-- Forgets a trouble.
delete from incidents
where key = $1
returning key;

-- name: incidents
-- All troubles, the oldest first.
select key, text, since
from incidents
order by since, key;
