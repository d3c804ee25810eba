-- Who has changed what.

-- name: add
-- Add a row.
insert into audit (at, kind, actor, role, via, node, action, subject, before, after, result)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9::text::jsonb, $10::text::jsonb, $11);

-- name: list
-- Return rows, the newest first: those before the row $2, in which actor, address, chat or command
-- line contain $3, with the action $4 or one below it, whose subject contains $5, from the times $6
-- to $7. The parts are in small letters. It reads only rows between the times and before the row $2;
-- by id it would read all of them when few match. Before a row that retention has deleted is none.
select id, at, kind, actor, role, via, node, action, subject, before, after, result
from audit
where at >= coalesce($6::timestamptz, '-infinity')
  and at < coalesce($7::timestamptz, 'infinity')
  and (at, id) < (case when $2::bigint is null then 'infinity' else (select at from audit where id = $2) end, $2)
  and ($3::text is null or strpos(lower(actor collate "C"), $3) > 0 or strpos(lower(via collate "C"), $3) > 0)
  and ($4::text is null or action = $4 or starts_with(action, $4 || '.'))
  and ($5::text is null or strpos(lower(subject collate "C"), $5) > 0)
order by at desc, id desc
limit $1;

-- name: sweep
-- Delete some of the rows from before an instant. The table refuses every deletion but this one: it
-- says from when on rows are kept.
with permit as materialized (
    select set_config('goclaw.audit_kept_since', $1::timestamptz::text, true) as given
)
delete from audit
where id = any (array(
    select id
    from audit
    where at < $1 and (select given from permit) is not null
    order by at, id
    limit $2
    for update skip locked
))
returning id;
