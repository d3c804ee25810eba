-- Work items of jobs.

-- name: add
-- Append an item to its queue.
insert into work_items (queue, title, body, url, created_at)
values ($1, $2, $3, $4, $5)
returning *;

-- name: claim
-- Return the item that a job has already claimed, or claim the oldest that is free or was claimed
-- before $4. One statement, so that no item is claimed for a caller that is gone. Concurrent
-- callers do not block each other: the second skips the row that the first has locked.
with mine as (
    select id
    from work_items
    where queue = $1 and state = 'taken' and taken_by = $2
    order by id
    limit 1
    for update skip locked
), free as (
    select id
    from work_items
    where queue = $1 and (state = 'open' or state = 'taken' and taken_at < $4)
      and not exists (select from mine)
    order by id
    limit 1
    for update skip locked
)
update work_items
set state = 'taken', taken_by = $2, taken_at = $3, takes = takes + 1
where id in (select id from mine union all select id from free)
returning *;

-- name: change
-- Finish or release an item, if the claim is still the current one.
update work_items
set state = $3, outcome = $4, ended_at = $5
where id = $1 and takes = $2 and state = 'taken'
returning id;

-- name: work
-- Return items of all queues or one, in all states or one, the oldest first.
select *
from work_items
where ($1::text is null or queue = $1) and ($2::text is null or state = $2)
order by id
limit $3;
