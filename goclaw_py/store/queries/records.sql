-- What is stored of runs and sessions, for operators and budgets.

-- name: newest
-- The newest runs.
select * from runs
order by started_at desc, id desc
limit $1;

-- name: newest_of_session
-- The newest runs of one session.
select * from runs
where session = $2
order by started_at desc, id desc
limit $1;

-- name: active
-- The newest runs that have not ended, of one session or of all.
select * from runs
where outcome is null and ($2::text is null or session = $2)
order by started_at desc, id desc
limit $1;

-- name: find
-- Runs whose id lies between a prefix and the last id that has it.
select * from runs
where id >= $1 and id <= $2
order by id
limit 2;

-- name: sessions
-- The sessions that were active last; they are counted only after the others are gone.
select
    s.key, s.agent, s.channel, s.account, s.chat, s.thread, s.created_at, s.last_active_at, s.owner,
    s.fence, s.summaries, s.pinned,
    (select count(*) from inbox as i where i.session = s.key and i.state = 'pending') as waiting,
    (select count(*) from history as h where h.session = s.key and h.epoch = s.epoch) as entries
from (
    select * from sessions
    order by last_active_at desc, key desc
    limit $1
) as s
order by s.last_active_at desc, s.key desc;

-- name: session
-- One session.
select
    s.key, s.agent, s.channel, s.account, s.chat, s.thread, s.created_at, s.last_active_at, s.owner,
    s.fence, s.summaries, s.pinned,
    (select count(*) from inbox as i where i.session = s.key and i.state = 'pending') as waiting,
    (select count(*) from history as h where h.session = s.key and h.epoch = s.epoch) as entries
from sessions as s
where s.key = $1;

-- name: history
-- The newest entries since the last reset, newest first.
select h.role, h.text, h.native, h.format, h.run_id, h.at
from sessions as s
join history as h on h.session = s.key and h.epoch = s.epoch
where s.key = $1
order by h.id desc
limit $2;

-- name: spent
-- What runs have used that started at an instant or later, those of one agent or of all. The second
-- bound excludes none: without it a plan, which is made for any instant, would expect a third of
-- all runs and read every one.
select
    coalesce(sum(requests), 0) as requests,
    coalesce(sum(input_tokens), 0) as input_tokens,
    coalesce(sum(output_tokens), 0) as output_tokens,
    coalesce(sum(cached_tokens), 0) as cached_tokens,
    sum(cost_usd) as cost_usd
from runs
where started_at >= $1 and started_at <= 'infinity' and ($2::text is null or agent = $2);

-- name: spent_by
-- The same of those that one session pays for, its own and those of others. Its chat may have been
-- given another id since.
with payer as (
    select coalesce(
        (
            select moved_to
            from moved_sessions
            where key = $3 and not exists (select from sessions where key = $3)
        ),
        $3
    ) as key
), paid as (
    select requests, input_tokens, output_tokens, cached_tokens, cost_usd, agent
    from runs
    where session = (select key from payer) and payer is null and started_at >= $1
    union all
    select requests, input_tokens, output_tokens, cached_tokens, cost_usd, agent
    from runs
    where payer = (select key from payer) and started_at >= $1
)
select
    coalesce(sum(requests), 0) as requests,
    coalesce(sum(input_tokens), 0) as input_tokens,
    coalesce(sum(output_tokens), 0) as output_tokens,
    coalesce(sum(cached_tokens), 0) as cached_tokens,
    sum(cost_usd) as cost_usd
from paid
where $2::text is null or agent = $2;

-- name: unannounced
-- Lost and interrupted subagents that ended at an instant or later, whose chat has got no message about them, the
-- oldest first.
select *
from runs as r
where r.outcome in ('lost', 'interrupted') and r.trigger = 'subagent' and r.finished_at >= $1
  and r.chat is not null
  and not exists (
      select from inbox as i
      where i.channel = r.channel and i.account = r.account
        and i.external_id = 'subagent:' || r.id
  )
order by r.finished_at, r.id
limit 100;
