-- Usage of runs, for operators.

-- name: usage
-- Sum the usage of ended runs that started in some days, by any of agent, job, sender, day, model,
-- trigger and lane: the groups with the highest cost, in any order, and one row for the total. $1
-- are the instants at which the days begin and the last one ends; day n is between the nth and the
-- next one. One statement, so that groups and total are consistent.
with counted as (
    select
        case when $2 then agent end as agent,
        case when $3 then job end as job,
        case when $4 then sender end as sender,
        case when $5 then width_bucket(started_at, $1::timestamptz[]) end as day,
        case when $6 then model end as model,
        case when $7 then trigger end as trigger,
        case when $8 then lane end as lane,
        count(*) as runs,
        coalesce(sum(requests), 0) as turns,
        coalesce(sum(input_tokens), 0) as input_tokens,
        coalesce(sum(output_tokens), 0) as output_tokens,
        coalesce(sum(cached_tokens), 0) as cached_tokens,
        sum(cost_usd) as cost_usd,
        count(*) filter (where cost_usd is null and input_tokens + output_tokens > 0) as unpriced
    from runs
    where outcome is not null
      and started_at >= ($1::timestamptz[])[1]
      and started_at < ($1::timestamptz[])[cardinality($1::timestamptz[])]
    group by 1, 2, 3, 4, 5, 6, 7
), listed as (
    select *
    from counted
    order by
        cost_usd desc nulls last, input_tokens + output_tokens desc, runs desc,
        agent collate "C" nulls first, job nulls first, sender nulls first, day nulls first,
        model collate "C" nulls first, trigger collate "C" nulls first,
        lane collate "C" nulls first
    limit $9
)
select
    true as whole, count(*) as groups, null as agent, null as job, null as sender,
    null::integer as day, null as model, null as trigger, null as lane,
    sum(runs)::bigint as runs, sum(turns)::bigint as turns,
    sum(input_tokens)::bigint as input_tokens, sum(output_tokens)::bigint as output_tokens,
    sum(cached_tokens)::bigint as cached_tokens, sum(cost_usd) as cost_usd,
    sum(unpriced)::bigint as unpriced, null as title, null as name
from counted
having count(*) > 0
union all
select
    false, null, l.agent, l.job, l.sender, l.day, l.model, l.trigger, l.lane,
    l.runs, l.turns::bigint, l.input_tokens::bigint, l.output_tokens::bigint,
    l.cached_tokens::bigint, l.cost_usd, l.unpriced,
    coalesce(
        (select coalesce(nullif(j.name, ''), j.slug) from cron_jobs as j where j.id = l.job),
        (
            select o.slug
            from job_runs as o
            where o.job = l.job
            order by o.scheduled_at desc, o.id desc
            limit 1
        )
    ),
    p.name
from listed as l
left join (
    select distinct on (sender) channel || '/' || account || '/' || sender_id as sender, name
    from people
    order by sender, channel, account, sender_id
) as p on p.sender = l.sender;

-- name: times
-- Sum the usage of the ended runs of each day, with the number of those that failed ($2 has their
-- outcomes), and median and 95th percentile of the times that runs waited to start, and people for
-- the first text. $1 as above. Each day
-- is a range of an index that includes all columns, which costs less than to find the day of each run.
select d.day, r.*
from generate_series(1, cardinality($1::timestamptz[]) - 1) as d (day)
cross join lateral (
    select
        count(*) as runs,
        coalesce(sum(requests), 0)::bigint as turns,
        coalesce(sum(input_tokens), 0)::bigint as input_tokens,
        coalesce(sum(output_tokens), 0)::bigint as output_tokens,
        coalesce(sum(cached_tokens), 0)::bigint as cached_tokens,
        sum(cost_usd) as cost_usd,
        count(*) filter (where cost_usd is null and input_tokens + output_tokens > 0) as unpriced,
        count(*) filter (where outcome = any ($2::text[])) as failed,
        percentile_cont(array[0.5, 0.95]) within group (
            order by greatest(started_at - submitted_at, interval '0')
        ) filter (where submitted_at is not null) as wait,
        percentile_cont(array[0.5, 0.95]) within group (
            order by greatest(first_text_at - submitted_at, interval '0')
        ) filter (where trigger = 'chat' and first_text_at - submitted_at is not null) as first_text
    from runs
    where outcome is not null
      and started_at >= ($1::timestamptz[])[d.day]
      and started_at < ($1::timestamptz[])[d.day + 1]
) as r
where r.runs > 0;

-- name: messages
-- Count the messages received and delivered on each day, by agent. $1 as above. Deleted rows are in
-- message_counts. Each day is a range of indexes that include all columns.
select m.day, m.agent, sum(m.received)::bigint as received, sum(m.sent)::bigint as sent
from (
    select d.day, c.*
    from generate_series(1, cardinality($1::timestamptz[]) - 1) as d (day)
    cross join lateral (
        select agent, count(*) as received, 0 as sent
        from inbox
        where message ->> 'source' is distinct from 'subagent'
          and received_at >= ($1::timestamptz[])[d.day]
          and received_at < ($1::timestamptz[])[d.day + 1]
        group by agent
        union all
        select nullif(split_part(session, ':', 2), ''), 0, count(*)
        from outbox
        where state = 'sent'
          and finished_at >= ($1::timestamptz[])[d.day]
          and finished_at < ($1::timestamptz[])[d.day + 1]
        group by 1
        union all
        select agent, sum(received), sum(sent)
        from message_counts
        where at >= ($1::timestamptz[])[d.day] and at < ($1::timestamptz[])[d.day + 1]
        group by agent
    ) as c
) as m
group by m.day, m.agent;
