-- Queries of ``goclaw doctor``, in addition to those of ``fitness``.

-- name: notify
-- Send a notification on a channel of our own.
select pg_notify($1, '');

-- name: estimated
-- Agents of whose newest runs some have an estimated usage.
select distinct agent
from (
    select agent, notes
    from runs
    where outcome is not null
    order by started_at desc, id desc
    limit 1000
) as newest
where 'usage_estimated' = any (notes)
order by agent;
