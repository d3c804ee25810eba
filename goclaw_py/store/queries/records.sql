-- What is stored of runs and sessions, for operators and budgets.

-- name: newest
-- The newest runs before a place. The same question has one query for each index that can answer it,
-- as plans are made once; what else is asked for is looked at row by row. Where that index begins
-- with a column of few values, it is not said to be equal to one: a plan would read all runs in
-- order then.
select * from runs
where (started_at, id) < ($2, $3)
order by started_at desc, id desc
limit $1;

-- name: newest_of_session
-- Those of one session.
select * from runs
where session = $4 and (started_at, id) < ($2, $3)
  and ($5::text is null or agent = $5)
  and ($6::text is null or trigger = $6)
  and ($7::text is null or outcome = $7)
order by started_at desc, id desc
limit $1;

-- name: newest_of_agent
-- Those of one agent.
select * from runs
where agent >= $5 and (agent, started_at, id) < ($5, $2, $3)
  and ($4::text is null or session = $4)
  and ($6::text is null or trigger = $6)
  and ($7::text is null or outcome = $7)
order by agent desc, started_at desc, id desc
limit $1;

-- name: newest_of_trigger
-- Those with one trigger.
select * from runs
where trigger >= $6 and (trigger, started_at, id) < ($6, $2, $3)
  and ($4::text is null or session = $4)
  and ($5::text is null or agent = $5)
  and ($7::text is null or outcome = $7)
order by trigger desc, started_at desc, id desc
limit $1;

-- name: newest_with_outcome
-- Those that ended otherwise than as wanted, in one way.
select * from runs
where outcome >= $7 and outcome <> 'completed' and (outcome, started_at, id) < ($7, $2, $3)
  and ($4::text is null or session = $4)
  and ($5::text is null or agent = $5)
  and ($6::text is null or trigger = $6)
order by outcome desc, started_at desc, id desc
limit $1;

-- name: newest_completed
-- Those that were completed, as most are: along the index of all.
select * from runs
where outcome = 'completed' and (started_at, id) < ($2, $3)
  and ($4::text is null or session = $4)
  and ($5::text is null or agent = $5)
  and ($6::text is null or trigger = $6)
  and ($7::text is null or outcome = $7)
order by started_at desc, id desc
limit $1;

-- name: active
-- Those that have not ended.
select * from runs
where outcome is null and (started_at, id) < ($2, $3)
  and ($4::text is null or session = $4)
  and ($5::text is null or agent = $5)
  and ($6::text is null or trigger = $6)
order by started_at desc, id desc
limit $1;

-- name: find
-- Runs whose id lies between a prefix and the last id that has it.
select * from runs
where id >= $1 and id <= $2
order by id
limit 2;

-- name: between
-- Runs that worked at some time from one instant to before another, the oldest first: those that
-- began then, and those that began before and had not ended, or have not ended yet. These are few,
-- and found on their own: a plan that is made for any instant would rather read all runs in order.
with earlier as materialized (
    select * from runs
    where finished_at is not null
      and tstzrange(started_at, greatest(started_at, finished_at), '[]') @> $1::timestamptz
    union all
    select * from runs where outcome is null
)
select
    id, session, agent, lane, trigger, outcome, parent, coalesce(submitted_at, started_at)
        as submitted_at, started_at, finished_at, cost_usd
from (
    (
        select * from runs
        where started_at >= $1 and started_at < $2 and (started_at, id) > ($4, $5)
        order by started_at, id
        limit $3
    )
    union all
    select * from earlier
    where started_at < least($1, $2) and (started_at, id) > ($4, $5)
) as r
order by started_at, id
limit $3;

-- name: history_of_run
-- What a run has added to a history, in order.
select role, text, native, format, run_id, at
from history
where run_id = $1
order by id;

-- name: sessions
-- The sessions that were active last, before a place; they are counted only after the others are
-- gone. What they are sorted by is not indexed (it changes all the time), but the ten seconds are
-- in which it lies.
select
    s.key, s.agent, s.channel, s.account, s.chat, s.thread, s.created_at, s.last_active_at, s.owner,
    s.fence, s.summaries, s.pinned,
    (select count(*) from inbox as i where i.session = s.key and i.state = 'pending') as waiting,
    (select count(*) from history as h where h.session = s.key and h.epoch = s.epoch) as entries
from (
    select * from sessions
    where active_in <= $2 and (last_active_at, key) < ($2, $3)
    order by active_in desc, last_active_at desc, key desc
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
where started_at >= $1 and started_at <= 'infinity' and ($2::text is null or agent = $2)
  and outcome is not null;

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
      and outcome is not null
    union all
    select requests, input_tokens, output_tokens, cached_tokens, cost_usd, agent
    from runs
    where payer = (select key from payer) and started_at >= $1 and outcome is not null
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
