-- Problems that operators are notified about.

-- name: open
-- Store a problem, or update its text; returns whether it is new: only an existing row has a
-- transaction in xmax.
insert into incidents as i (key, text, since)
values ($1, $2, $3)
on conflict (key) do update set text = excluded.text
returning xmax = 0 as fresh;

-- name: close
-- Delete a problem.
delete from incidents
where key = $1
returning key;

-- name: incidents
-- Return all problems, the oldest first.
select key, text, since
from incidents
order by since, key;
