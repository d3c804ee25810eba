-- Stored runs and sessions, for operators and budgets.

-- name: newest
-- Return the newest runs before a position. There is one query for each index that can answer it,
-- because plans are made once; other conditions are checked for each row. If the index begins with
-- a column of few values, the condition is not written as an equality: a plan would then read all
-- runs in order. The indexes have the runs that have ended; the others are few.
with active as materialized (
    select * from runs where outcome is null
)
select *
from (
    (
        select * from runs
        where outcome is not null and (started_at, id) < ($2, $3)
          and started_at >= coalesce($4, '-infinity'::timestamptz)
        order by started_at desc, id desc
        limit $1
    )
    union all
    select * from active
    where (started_at, id) < ($2, $3)
      and started_at >= coalesce($4, '-infinity'::timestamptz)
) as r
order by started_at desc, id desc
limit $1;

-- name: newest_of_session
-- The same for one session.
select * from runs
where session = $4 and (started_at, id) < ($2, $3)
  and started_at >= coalesce($5, '-infinity'::timestamptz)
  -- use: matching from $6
order by started_at desc, id desc
limit $1;

-- name: newest_of_sender
-- The same for one sender.
with active as materialized (
    select * from runs where outcome is null
)
select *
from (
    (
        select * from runs
        where outcome is not null and sender >= $9 and (sender, started_at, id) < ($9, $2, $3)
          -- use: narrowed from $4
        order by sender desc, started_at desc, id desc
        limit $1
    )
    union all
    select * from active
    where (started_at, id) < ($2, $3)
      -- use: narrowed from $4
) as r
order by started_at desc, id desc
limit $1;

-- name: newest_of_agent
-- The same for one agent.
with active as materialized (
    select * from runs where outcome is null
)
select *
from (
    (
        select * from runs
        where outcome is not null and agent >= $6 and (agent, started_at, id) < ($6, $2, $3)
          -- use: narrowed from $4
        order by agent desc, started_at desc, id desc
        limit $1
    )
    union all
    select * from active
    where (started_at, id) < ($2, $3)
      -- use: narrowed from $4
) as r
order by started_at desc, id desc
limit $1;

-- name: newest_of_trigger
-- The same for one trigger.
with active as materialized (
    select * from runs where outcome is null
)
select *
from (
    (
        select * from runs
        where outcome is not null and trigger >= $7 and (trigger, started_at, id) < ($7, $2, $3)
          -- use: narrowed from $4
        order by trigger desc, started_at desc, id desc
        limit $1
    )
    union all
    select * from active
    where (started_at, id) < ($2, $3)
      -- use: narrowed from $4
) as r
order by started_at desc, id desc
limit $1;

-- part: narrowed
-- The conditions of a query: its session ($1), since when ($2), and its filter.
and ($1::text is null or session = $1)
and started_at >= coalesce($2, '-infinity'::timestamptz)
-- use: matching from $3

-- part: matching
-- The conditions of a filter, in the order of its fields; they are the last parameters everywhere.
and ($1::text is null or agent = $1)
and ($2::text is null or trigger = $2)
and ($3::text is null or outcome = $3)
and ($4::text is null or sender = $4)

-- name: newest_with_outcome
-- The same for runs with one unsuccessful outcome.
select * from runs
where outcome >= $8 and outcome <> 'completed' and (outcome, started_at, id) < ($8, $2, $3)
  and ($4::text is null or session = $4)
  and (started_at >= coalesce($5, '-infinity'::timestamptz)) is true
  -- use: matching from $6
order by outcome desc, started_at desc, id desc
limit $1;

-- name: newest_filtered
-- The same for conditions without an index of their own, such as completed runs, which are most:
-- uses the index of all runs.
with active as materialized (
    select * from runs where outcome is null
)
select *
from (
    (
        select * from runs
        where outcome is not null and (started_at, id) < ($2, $3)
          -- use: narrowed from $4
        order by started_at desc, id desc
        limit $1
    )
    union all
    select * from active
    where (started_at, id) < ($2, $3)
      -- use: narrowed from $4
) as r
order by started_at desc, id desc
limit $1;

-- name: newest_with_text
-- The same for runs whose prompt has a text; only the newest that match the rest are searched. Runs
-- in progress have no prompt yet, and the index has only those that have ended.
select r.*
from (
    select * from runs
    where outcome is not null and (started_at, id) < ($2, $3)
      -- use: narrowed from $6
    order by started_at desc, id desc
    limit $4
) as r
cross join lateral (
    select from history as h
    where h.run_id = r.id and h.role = 'user' and strpos(lower(h.text collate "C"), lower($5::text collate "C")) > 0
    order by h.id
    limit 1
) as found
order by started_at desc, id desc
limit $1;

-- name: prompts
-- Return the beginning of the first message of each run. One without history, as it was interrupted
-- or is in progress, has the first message that it began with, the prompt of its job, or its task.
with said as (
    select distinct on (run_id) run_id, text
    from history
    where run_id = any($1) and role = 'user'
    order by run_id, id
)
select run_id, left(text, $2) as prompt
from said
union all
select missing.id, left(asked.text, $2)
from unnest($1::text[]) as missing (id)
cross join lateral (
    select coalesce(
        (select message ->> 'text' from inbox where id = r.inbox[1]),
        (select definition #>> '{spec,payload,text}' from job_runs where id = r.occurrence),
        r.task ->> 'prompt'
    ) as text
    from (select inbox, occurrence, task from runs where id = missing.id offset 0) as r
) as asked
where missing.id not in (select run_id from said) and asked.text is not null;

-- name: active
-- Return runs that have not ended.
select *
from (select * from runs where outcome is null offset 0) as running
where (started_at, id) < ($2, $3)
  -- use: narrowed from $4
order by started_at desc, id desc
limit $1;

-- name: counts
-- Count runs by outcome: of the newest $3 that have ended, and of all in progress. One of the three
-- branches is executed; each reads its own index: of usage, of the session, of the sender.
select outcome, count(*) as runs
from (
    (
        select outcome
        from runs
        where $2::text is null and $7::text is null
          -- use: counted
    )
    union all
    (
        select outcome
        from runs
        where session = $2
          -- use: counted
    )
    union all
    (
        select outcome
        from runs
        where $2::text is null and sender = $7
          -- use: counted
    )
) as ended
group by outcome
union all
select null, count(*)
from runs
where outcome is null and started_at >= coalesce($1, '-infinity'::timestamptz)
  and ($2::text is null or session = $2)
  -- use: matching from $4
;

-- name: in_order
-- Return the first $10 runs in the order $9: of the newest $3 that have ended, unless only those in
-- progress are wanted ($8), and of all in progress, the longest running of which have the longest
-- duration. As for counts, the ids are read from an index.
with matching as (
    (
        select id
        from runs
        where not $8 and $2::text is null and $7::text is null
          and ($6::text is null or $6 = 'completed')
          -- use: counted
    )
    union all
    (
        select id
        from runs
        where not $8 and $2::text is null and $7::text is null
          and outcome = $6 and outcome <> 'completed'
          -- use: counted
    )
    union all
    (
        select id
        from runs
        where not $8 and session = $2
          -- use: counted
    )
    union all
    (
        select id
        from runs
        where not $8 and $2::text is null and sender = $7
          -- use: counted
    )
)
select *
from (
    select runs.* from matching join runs on runs.id = matching.id
    union all
    select *
    from runs
    where outcome is null and started_at >= coalesce($1, '-infinity'::timestamptz)
      and ($2::text is null or session = $2)
      -- use: matching from $4
) as r
order by
    case $9::text
        when 'duration' then coalesce(
            extract(epoch from finished_at - started_at), 1e12 - extract(epoch from started_at)
        )
        when 'tokens' then coalesce(input_tokens + output_tokens, 0)
        else coalesce(cost_usd, 0)
    end desc,
    started_at desc, id desc
limit $10;

-- part: counted
-- The newest runs that have ended.
and outcome is not null and started_at >= coalesce($1, '-infinity'::timestamptz)
-- use: matching from $4
order by started_at desc
limit $3;

-- name: density
-- Count runs by the part of a time in which they started, by lane and by outcome. $1 are the
-- instants at which the parts begin and the last one ends. Each part is a range of the index, which
-- costs less than to find the part of each run.
select p.part, r.lane, r.outcome, r.runs
from generate_series(0, cardinality($1::timestamptz[]) - 2) as p (part)
cross join lateral (
    select lane, outcome, count(*) as runs
    from runs
    where outcome is not null
      -- use: in_a_part
    group by lane, outcome
    union all
    select lane, null, count(*)
    from runs
    where outcome is null
      -- use: in_a_part
    group by lane
) as r;

-- part: in_a_part
-- The runs of a filter that started in a part of the time.
and started_at >= ($1::timestamptz[])[p.part + 1]
and started_at < ($1::timestamptz[])[p.part + 2]
-- use: matching from $2

-- name: find
-- Return the run with this id; if there is none, runs whose id is between a prefix and the last id
-- with this prefix. The whole id is the first of them.
select * from runs
where id >= $1 and id <= $2
order by id
limit case when exists (select from runs where id = $1) then 1 else 4 end;

-- name: between
-- Return runs that were running at any time between two instants, the oldest first: those that
-- began then, those that began less than a minute before and had not ended, longer ones, and those
-- that have not ended yet. The latter are few and found by separate queries: a generic plan would
-- read all runs in order instead.
with earlier as materialized (
    select * from runs
    where outcome is not null
      and started_at >= $1::timestamptz - interval '1 minute' and started_at < $1
      and finished_at >= $1 and finished_at - started_at <= interval '1 minute'
    union all
    select * from runs
    where finished_at - started_at > interval '1 minute'
      and tstzrange(started_at, greatest(started_at, finished_at), '[]') @> $1::timestamptz
), active as materialized (
    select * from runs where outcome is null
)
select
    id, session, agent, lane, trigger, outcome, parent, coalesce(submitted_at, started_at)
        as submitted_at, started_at, finished_at, cost_usd
from (
    (
        select * from runs
        where outcome is not null
          and started_at >= $1 and started_at < $2 and (started_at, id) > ($4, $5)
          -- use: matching from $6
        order by started_at, id
        limit $3
    )
    union all
    select * from active
    where started_at < $2 and (started_at, id) > ($4, $5)
      -- use: matching from $6
    union all
    select * from earlier
    where started_at < least($1, $2) and (started_at, id) > ($4, $5)
      -- use: matching from $6
) as r
order by started_at, id
limit $3;

-- name: history_of_run
-- Return the history entries of a run, in order; without the copies in forks of its session.
select role, text, native, format, run_id, at, files, greatest(epoch, -1 - epoch) as resets
from history
where run_id = $1 and session = (select session from runs where id = $1)
order by id;

-- name: sessions
-- Return the most recently active sessions, before a position; they are counted after the other
-- conditions. What waits for a person is few, and read once for all sessions. The sort column is not indexed, because it changes often; its ten-second interval is.
select
    s.key, s.agent, s.channel, s.account, s.chat, s.thread, s.created_at, s.last_active_at, s.owner,
    s.fence, s.summaries, s.pinned,
    coalesce(asking.messages, 0) + pending.waiting as waiting, pending.running,
    (select count(*) from history as h where h.session = s.key and h.epoch = s.epoch) as entries
from (
    select * from sessions
    where active_in <= $2 and (last_active_at, key) < ($2, $3)
    order by active_in desc, last_active_at desc, key desc
    limit $1
) as s
cross join lateral (
    select count(*) filter (where run_id is null) as waiting, count(run_id) as running
    from inbox
    where session = s.key and state = 'pending'
) as pending
left join (
    select session, count(*) as messages from inbox where state = 'waiting' group by session
) as asking on asking.session = s.key
order by s.last_active_at desc, s.key desc;

-- name: search
-- Return the most recently active sessions with a text ($4, in small letters) in their key or in
-- the name of their chat, topic or job; of one agent ($5), channel ($6) and state ($7).
select
    s.key, s.agent, s.channel, s.account, s.chat, s.thread, s.created_at, s.last_active_at, s.owner,
    s.fence, s.summaries, s.pinned,
    coalesce(asking.messages, 0) + pending.waiting as waiting, pending.running,
    (select count(*) from history as h where h.session = s.key and h.epoch = s.epoch) as entries
from (
    select s.*
    from sessions as s
    left join lateral (
        select search_text
        from names
        where channel = s.channel and account = s.account and id = s.chat
        offset 0
    ) as n on true
    left join lateral (
        select name
        from topics
        where channel = s.channel and account = s.account and chat = s.chat and thread = s.thread
        offset 0
    ) as t on true
    left join lateral (
        select search_text
        from cron_jobs
        where split_part(s.key, ':', 3) = 'cron' and id = split_part(s.key, ':', 4)
        offset 0
    ) as j on true
    where (s.last_active_at, s.key) < ($2, $3)
      and ($5::text is null or s.agent = $5)
      and ($6::text is null or s.channel = $6)
      and case $7::text
          when 'running' then exists (
              select from runs where session = s.key and outcome is null
          )
          when 'waiting' then exists (
              select from inbox where session = s.key and state = 'pending' and run_id is null
          ) or s.key in (select session from inbox where state = 'waiting')
          else true end
      and strpos(
          concat_ws(E'\n', lower(s.key), n.search_text, lower(t.name), j.search_text), $4
      ) > 0
    order by s.last_active_at desc, s.key desc
    limit $1
) as s
cross join lateral (
    select count(*) filter (where run_id is null) as waiting, count(run_id) as running
    from inbox
    where session = s.key and state = 'pending'
) as pending
left join (
    select session, count(*) as messages from inbox where state = 'waiting' group by session
) as asking on asking.session = s.key
order by s.last_active_at desc, s.key desc;

-- name: session
-- Return one session.
select
    s.key, s.agent, s.channel, s.account, s.chat, s.thread, s.created_at, s.last_active_at, s.owner,
    s.fence, s.summaries, s.pinned,
    (select count(*) from inbox where session = s.key and state = 'waiting') + pending.waiting
        as waiting,
    pending.running,
    (select count(*) from history as h where h.session = s.key and h.epoch = s.epoch) as entries
from sessions as s
cross join lateral (
    select count(*) filter (where run_id is null) as waiting, count(run_id) as running
    from inbox
    where session = s.key and state = 'pending'
) as pending
where s.key = $1;

-- name: history
-- Return the newest entries since the last reset, or also those before it ($3), the newest first.
-- What was undone has a negative epoch.
select h.*
from sessions as s
cross join lateral (
    select role, text, native, format, run_id, at, files, epoch as resets, id
    from history
    where session = s.key and epoch >= case when $3 then 0 else s.epoch end and epoch <= s.epoch
    order by epoch desc, id desc
    limit $2
) as h
where s.key = $1
order by h.resets desc, h.id desc;

-- name: spent
-- Sum the usage of runs that started at an instant or later, of one agent or of all. The second
-- bound excludes nothing: without it, a generic plan would expect a third of all runs and read
-- every one.
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
-- The same for the runs that one session pays for, its own and those of others. Its chat may have
-- been given another id since.
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
    where session = (select key from payer) and payer is null
      and (session, started_at) >= ((select key from payer), $1)
      and (outcome is not null) is true
    union all
    select requests, input_tokens, output_tokens, cached_tokens, cost_usd, agent
    from runs
    where payer = (select key from payer)
      and (payer, started_at) >= ((select key from payer), $1)
      and (outcome is not null) is true
)
select
    coalesce(sum(requests), 0) as requests,
    coalesce(sum(input_tokens), 0) as input_tokens,
    coalesce(sum(output_tokens), 0) as output_tokens,
    coalesce(sum(cached_tokens), 0) as cached_tokens,
    sum(cost_usd) as cost_usd
from paid
where $2::text is null or agent = $2;

-- name: interrupted_subagents
-- Return the last runs of background subagents that were lost or interrupted at an instant or later,
-- and whose chat got no message about them, the oldest first; without those that wait for an answer,
-- or were stopped meanwhile.
select
    r.*,
    (
        select count(*) from runs as a where a.session = r.session and (a.outcome = 'lost') is true
    ) as crashes
from (
    select *
    from runs
    where outcome in ('lost', 'interrupted') and trigger = 'subagent' and finished_at >= $1
    order by finished_at
    offset 0
) as r
where r.task is not null
  and not (
      select exists (
          select from runs as later where later.session = r.session and (later.id > r.id) is true
      )
  )
  and not (
      select exists (
          select from approvals as a
          where a.root_run = r.id and (a.decision is null or a.decision = 'stopped')
      )
  )
  and not (
      select exists (
          select from inbox as i
          where i.channel = r.channel and i.account = r.account
            and i.external_id = 'subagent:' || split_part(r.session, ':', 4)
      )
  )
order by r.finished_at, r.id
limit 100;

-- name: spawned
-- Return the first run of the background subagent that a tool call has started.
select id
from runs
where call_key = $1 and task is not null
limit 1;
