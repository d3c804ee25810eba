-- The times at which jobs are due, and what became of them.
--
-- Locks go from jobs, in the order of their ids, to the rows of the log.

-- name: next_due
-- The earliest time for which something is to be claimed.
select min(next_run_at) as due_at
from cron_jobs
where state = 'active' and running is null and next_run_at is not null;

-- name: crowd
-- Counts the jobs that are due by $1 and may be claimed, but not further than $2. Without an order a
-- plan, which is made for any instant, would read the table.
select count(*) as jobs
from (
    select
    from cron_jobs
    where state = 'active' and running is null and next_run_at <= $1
    order by next_run_at
    limit $2
) as due;

-- name: ahead
-- Repeating jobs that are due after $1 although their interval ends earlier, or that were changed or
-- ran at a time which is after $1: a clock that was ahead has planned them. By id, after $2. The limit
-- inside lets it look at each job by the index, whatever the statistics say.
select j.*
from cron_jobs as j
where j.state = 'active' and j.running is null and j.next_run_at > $1 and j.kind <> 'at' and j.id > $2
  and (
      j.updated_at > $1 or j.last_run_at > $1
      or j.kind = 'every' and j.next_run_at > $1
          + (j.spec -> 'schedule' ->> 'every_ms')::bigint * interval '1 millisecond'
      or (
          select l.finished_at > $1
          from job_runs as l
          where l.job = j.id
          order by l.scheduled_at desc, l.id desc
          limit 1
      )
  )
order by j.id
limit $3;

-- name: replan
-- Plans a locked job for another time, if it is as it was read.
update cron_jobs
set next_run_at = $4
where id = $1 and revision = $2 and next_run_at = $3 and state = 'active' and running is null
returning id;

-- name: withdrawn
-- Those of claimed occurrences whose job is gone, perhaps with its log, is not active, or has another
-- time.
select claimed.id
from unnest($1::text[]) as claimed (id)
left join lateral (select job, scheduled_at from job_runs where id = claimed.id offset 0) as l on true
where not coalesce(
    (select state = 'active' and next_run_at = l.scheduled_at from cron_jobs where id = l.job),
    false
);

-- name: claim_due
-- Claims due jobs for a node that exists, the longest due first, those that somebody else is
-- claiming at the moment left out: makes a row of the log for each, or takes over the one that a
-- process has left, and marks the job. A row counts a claim for each run that was lost, or with $7,
-- for those that do without runs, for each time that it was lost; runs that were cut by a shutdown
-- count as no attempts. Tells in each row whether the node exists; one row without an
-- occurrence if nothing is due, which costs no lock and no write. One statement: a job is never
-- marked without its row. What was claimed is told from the rows of the log alone, for nobody knows
-- how many there will be, and a join might take the square of that. Due is what is due by
-- $2; $4 holds ids for new rows, $5 the time. With $6 nothing but messages.
with due as (
    select j.*
    from cron_jobs as j
    where j.state = 'active' and j.running is null and j.next_run_at <= $2
      and (not $6 or j.spec -> 'payload' ->> 'kind' = 'message')
    order by j.next_run_at, j.id
    limit $3
    for update skip locked
), me as (
    select id from nodes where id = $1 and exists (select from due) for key share
), numbered as (
    select
        id, slug, owner, next_run_at,
        to_jsonb(due)
            - '{slug,name,search_text,agent,kind,notify,channel,account,chat,running,delivers,forgets}'::text[]
            as definition,
        row_number() over (order by next_run_at, id) as ordinal
    from due
    where exists (select from me)
), claimed as (
    insert into job_runs as l (
        id, job, slug, owner, scheduled_at, claimed_at, status, node, definition
    )
    select fresh.id, n.id, n.slug, n.owner, n.next_run_at, $5, 'running', $1, n.definition
    from numbered as n
    join unnest($4::text[]) with ordinality as fresh (id, ordinal) using (ordinal)
    on conflict (job, scheduled_at) where not manual and finished_at is null do update
    set status = 'running', node = excluded.node, slug = excluded.slug, owner = excluded.owner,
        claimed_at = excluded.claimed_at, definition = excluded.definition,
        claims = case
            when $7 then l.claims + (l.status = 'lost')::integer
            else 1 + (
                select count(*)
                from runs as r
                where r.occurrence = l.id and (r.outcome = 'lost') is true
            )
        end,
        interrupted = l.status = 'interrupted',
        attempts = (
            select count(*)
            from runs as r
            where r.occurrence = l.id and r.outcome is distinct from 'interrupted'
        )
    where l.node is null
    returning
        l.id, l.job, l.scheduled_at, l.claimed_at, l.manual, l.claims, l.attempts, l.interrupted,
        l.definition, l.reason = 'stopped' as stopped,
        case when l.claims > 1 or l.interrupted then array(
            select distinct call ->> 'name'
            from runs as r
            cross join jsonb_array_elements(r.tools) as call
            where r.occurrence = l.id and (r.outcome in ('lost', 'interrupted')) is true
              and (call -> 'side_effects')::boolean
              and not (
                  select exists (
                      select from run_steps as s where s.run_id = r.id and s.kind = 'response'
                  )
              )
            order by 1
        ) end as called
), marked as (
    update cron_jobs as j
    set running = claimed.id
    from claimed
    where j.id = claimed.job and j.id = any (array(select job from claimed))
)
select
    case
        when exists (select from due) then exists (select from me)
        else exists (select from nodes where id = $1)
    end as alive,
    claimed.*
from (values (1)) as one
left join claimed on true
order by claimed.scheduled_at, claimed.job;

-- name: elsewhere
-- Of occurrences, each given with the session that it needs, those that node $3 has no more, and those
-- whose session, by its key of today, another node holds: a live owner, or a run that has not ended.
select id, session, lost
from (
    select
        a.id, present.key as session,
        not exists (select from job_runs as l where l.id = a.id and l.node = $3) as lost,
        (
            select n.id <> $3 and n.lease_until > $4
            from nodes as n
            where n.id = (select owner from sessions where key = present.key)
        ) is true or exists (
            select from runs as r
            where r.session = present.key and r.outcome is null and r.node <> $3
        ) as held
    from unnest($1::text[], $2::text[]) as a (id, session),
        lateral (
            select coalesce(
                (
                    select moved_to from moved_sessions
                    where key = a.session
                      and not exists (select from sessions where key = a.session)
                ),
                a.session
            ) as key
        ) as present
) as found
where lost or held;

-- name: lock_sessions
-- Keeps sessions from changing hands: a node that releases one afterwards sees which wait for it.
select key
from sessions
where key = any ($1::text[])
order by key
for share;

-- name: wait
-- Lets occurrences of a node wait for sessions. Their jobs stay marked, so nothing else of them is due.
with mine as (
    select l.id, a.session
    from (
        select *
        from unnest($1::text[], $2::text[]) as given (id, session)
        order by id collate "C"
    ) as a
    cross join lateral (
        select id from job_runs where id = a.id and node = $3 offset 0 for update
    ) as l
)
update job_runs as l
set status = 'waiting', node = null, waits_for = mine.session
from mine
where l.id = mine.id and l.id = any (array(select id from mine));

-- part: waited
-- A row l of the log that has waited, with the start of its first run.
select
    l.id, l.job, l.scheduled_at, l.claimed_at, l.manual, l.claims, l.attempts,
    false as interrupted, l.definition, false as stopped, null::text[] as called,
    (select min(r.started_at) from runs as r where r.occurrence = l.id) as began_at;

-- name: claim_waiting
-- Claims, for a node that exists, occurrences that wait for its sessions, and with $3 those that wait
-- for a session which no node holds at $2, but none that waits for the answer to a question; what
-- another node is claiming at the moment is left out.
with open as (
    select l.id
    from job_runs as l
    left join lateral (select owner from sessions where key = l.waits_for offset 0) as s on true
    where l.status = 'waiting' and l.reason is null
      and (
          s.owner = $1
          or $3
          and not (select exists (select from nodes where id = s.owner and lease_until > $2))
          and not (
              select exists (
                  select from runs as r
                  where r.session = l.waits_for and r.outcome is null and r.node <> $1
              )
          )
      )
    order by l.scheduled_at, l.id
    limit $4
    for update of l skip locked
), me as (
    select id from nodes where id = $1 and exists (select from open) for key share
), claimed as (
    update job_runs as l
    set status = 'running', node = $1,
        attempts = (
            select count(*)
            from runs as r
            where r.occurrence = l.id and r.outcome is distinct from 'interrupted'
        )
    from open
    where l.id = open.id and l.id = any (array(select id from open))
      and exists (select from me)
    returning l.*
)
-- use: waited
from claimed as l
order by l.scheduled_at, l.id;

-- name: waiting
-- Those that wait for a session or an answer, and that no node has claimed; with $1 only those that
-- wait for an answer to a question of a run in this session.
-- use: waited
from job_runs as l
where l.status = 'waiting' and ($1::text is null or l.reason = 'approval' and l.waits_for = $1)
order by l.scheduled_at, l.id;

-- name: not_claimed_by
-- Return the occurrences that have not ended, do not wait, and are claimed by none of some nodes.
-- use: waited
from job_runs as l
where l.id = any (array(
    select id from job_runs where finished_at is null and not manual and node is null
    union all
    select id from job_runs where node is not null and node <> all ($1::text[])
)) and l.status <> 'waiting'
order by l.scheduled_at, l.id;

-- name: lock_job
-- Locks one job.
select * from cron_jobs
where id = $1
for update;

-- name: claim_now
-- Claims a locked job of which nothing runs, for a run by hand.
with claimed as (
    insert into job_runs (
        id, job, slug, owner, scheduled_at, claimed_at, status, manual, node, definition
    )
    select
        $2, id, slug, owner, $3, $3, 'running', true, $4,
        to_jsonb(j) - '{slug,name,search_text,agent,kind,notify,channel,account,chat,running,delivers,forgets}'::text[]
    from cron_jobs as j
    where id = $1
    returning id, job
)
update cron_jobs
set running = (select id from claimed)
where id = $1 and exists (select from claimed);

-- name: lock
-- Locks occurrences after their jobs, which are $2; tells whose they are.
with jobs as (
    select id
    from cron_jobs
    where id = any ($2::text[])
    order by id
    for update
)
select id, job, node, finished_at
from job_runs
where id = any ($1::text[]) and (select count(*) from jobs) >= 0
order by id
for update;

-- name: jobs_of
-- The jobs of occurrences.
select l.id, l.job
from unnest($1::text[]) as a (id)
cross join lateral (select id, job from job_runs where id = a.id offset 0) as l;

-- name: unknown_to
-- What a node has claimed because it was due, but for what it knows of.
select id, job
from job_runs
where node = $1 and not manual and id <> all ($2::text[]);

-- name: wait_again
-- Lets wait again what a node has claimed because a session was free, but for what it knows of, if it
-- is by hand: given back it would end.
update job_runs
set status = 'waiting', node = null
where node = $1 and manual and waits_for is not null and id <> all ($2::text[]);

-- name: claimed_by
-- What some nodes work on, or only some of it ($2).
select id, job
from job_runs
where node = any ($1::text[]) and ($2::text[] is null or id = any ($2::text[]));

-- name: end
-- Ends locked occurrences that run, with what that makes of their jobs, which are locked too. How
-- much a job takes of what the end says about its next run, its state and its deletion is told in
-- `store.job_rules.taken`. What was used is the sum over the runs, if any is known, and otherwise
-- what the end brings. $1 holds the ends, $2 their ids, $3 their jobs.
with asked as (
    select *
    from jsonb_to_recordset($1::jsonb) as (
        id text, revision integer, status text, reason text, finished_at timestamptz,
        started_at timestamptz, attempts integer, output text, error text, requests bigint,
        input_tokens bigint, output_tokens bigint, cached_tokens bigint, cost_usd numeric,
        changes boolean, next_run_at timestamptz, state text, failed boolean, coalesced integer,
        ran boolean, removes boolean, forgets boolean, waits boolean
    )
), used as (
    select
        occurrence, sum(requests)::bigint as requests, sum(input_tokens)::bigint as input_tokens,
        sum(output_tokens)::bigint as output_tokens, sum(cached_tokens)::bigint as cached_tokens,
        sum(cost_usd) as cost_usd
    from runs
    where occurrence = any ($2::text[]) and requests is not null
    group by occurrence
), ending as (
    select
        a.*, l.job,
        case
            when not a.changes then 'nothing'
            when j.revision = a.revision then 'all'
            when not l.manual and j.state = 'active' and j.next_run_at = l.scheduled_at then 'time'
            else 'nothing'
        end as takes
    from asked as a
    cross join lateral (select job, manual, scheduled_at from job_runs where id = a.id offset 0) as l
    left join lateral (
        select revision, state, next_run_at from cron_jobs where id = l.job offset 0
    ) as j on true
), decided as (
    select
        *,
        takes = 'all' and removes is true and not waits as deletes,
        takes = 'all' and removes is true and waits as delivers,
        -- Null where the job keeps its own.
        case
            when takes = 'time' and next_run_at is not null then 'active'
            when takes <> 'nothing' then state
        end as new_state
    from ending
), deleted as (
    delete from cron_jobs as j
    using decided as e
    where j.id = e.job and j.id = any ($3::text[]) and e.deletes
), freed as (
    update cron_jobs as j
    set running = nullif(j.running, e.id),
        last_run_at = case
            when e.status = 'skipped' then j.last_run_at
            else coalesce(e.started_at, e.finished_at)
        end,
        last_status = e.status,
        last_error = e.error,
        failures = case
            when e.failed is null then j.failures
            when e.failed then j.failures + 1
            else 0
        end,
        runs = j.runs + e.ran::integer,
        coalesced = j.coalesced + e.coalesced,
        state = coalesce(e.new_state, j.state),
        next_run_at = case
            when e.new_state is null then j.next_run_at
            when e.new_state = 'active' then e.next_run_at
        end,
        delivers = case when e.delivers then e.id end,
        forgets = e.delivers and e.forgets
    from decided as e
    where j.id = e.job and j.id = any ($3::text[]) and not e.deletes
), forgotten as (
    delete from job_runs as l
    using decided as e
    where l.job = e.job and l.job = any ($3::text[]) and e.deletes and e.forgets
)
update job_runs as l
set status = e.status, reason = e.reason, finished_at = e.finished_at,
    started_at = coalesce(e.started_at, l.started_at), attempts = e.attempts, node = null,
    output = e.output, error = e.error,
    requests = coalesce(u.requests, e.requests),
    input_tokens = coalesce(u.input_tokens, e.input_tokens),
    output_tokens = coalesce(u.output_tokens, e.output_tokens),
    cached_tokens = coalesce(u.cached_tokens, e.cached_tokens),
    cost_usd = case when u.requests is null then e.cost_usd else u.cost_usd end
from decided as e
left join used as u on u.occurrence = e.id
where l.id = e.id and l.id = any ($2::text[]) and not (e.deletes and e.forgets is true);

-- name: prune
-- Deletes what has ended of the log of some locked jobs, but for so many rows of each, the newest.
delete from job_runs
where id = any (array(
    select old.id
    from unnest($1::text[], $2::integer[]) as kept (job, most)
    cross join lateral (
        select l.id, l.finished_at
        from job_runs as l
        where l.job = kept.job
        order by l.scheduled_at desc, l.id desc
        offset kept.most
    ) as old
    where old.finished_at is not null
));

-- name: unsettled
-- Jobs of which something is to be settled: a result died at $1 or later, everything that was to be
-- delivered has been, or a newer result than the one that reached nobody has reached nobody either.
select l.job
from outbox as o
cross join lateral (select job, status from job_runs where id = o.occurrence offset 0) as l
where o.state = 'dead' and o.occurrence is not null and o.finished_at >= $1 and l.status = 'ok'
union
select j.id
from cron_jobs as j
where j.delivers is not null and j.state = 'completed' and j.running is null
  and not (
      select exists (
          select from outbox as o
          where o.occurrence = j.delivers and o.state in ('pending', 'dead')
      )
  )
union
select job
from job_runs
where notified_at is null and status in ('no_route', 'undelivered')
group by job
having count(*) > 1;

-- name: lock_jobs
-- Locks some jobs.
select id
from cron_jobs
where id = any ($1::text[])
order by id
for update;

-- name: mark_undelivered
-- What went well in locked jobs, but of which a message died at $2 or later, went nowhere: the job
-- is kept.
with died as (
    select distinct on (o.occurrence) o.occurrence, o.error
    from outbox as o
    where o.state = 'dead' and o.occurrence is not null and o.finished_at >= $2
    order by o.occurrence, o.id
), marked as (
    update job_runs as l
    set status = 'undelivered', error = coalesce(died.error, '')
    from died
    where l.id = died.occurrence and l.id = any (array(select occurrence from died))
      and (l.job = any ($1::text[])) is true and (l.status = 'ok') is true
    returning l.id, l.job, l.error, coalesce(l.started_at, l.finished_at) as ran_at
)
update cron_jobs as j
set delivers = nullif(j.delivers, m.id),
    last_status = case when j.last_run_at = m.ran_at then 'undelivered' else j.last_status end,
    last_error = case when j.last_run_at = m.ran_at then m.error else j.last_error end
from marked as m
where j.id = m.job and j.id = any ($1::text[]);

-- name: delete_delivered
-- Deletes locked jobs whose results have all been delivered, with their logs if they want that.
with deleted as (
    delete from cron_jobs as j
    where j.id = any ($1::text[])
      and j.delivers is not null and j.state = 'completed' and j.running is null
      and not (
          select exists (
              select from outbox as o
              where o.occurrence = j.delivers and o.state in ('pending', 'dead')
          )
      )
    returning j.id, j.forgets
), forgotten as (
    delete from job_runs as l
    using deleted as d
    where l.job = d.id and l.job = any ($1::text[]) and d.forgets
)
select id from deleted;

-- name: supersede
-- Of the results of some jobs that reached nobody only the newest is told.
update job_runs as l
set notified_at = $2
where l.job = any ($1::text[]) and l.notified_at is null and l.status in ('no_route', 'undelivered')
  and exists (
      select from job_runs as newer
      where newer.job = l.job and newer.notified_at is null
        and newer.status in ('no_route', 'undelivered')
        and (newer.scheduled_at, newer.id) > (l.scheduled_at, l.id)
  );

-- name: not_notified
-- Return the results that were not delivered, the oldest first, each with the message that its chat
-- refused; not those whose messages operators have dropped.
select
    l.id, l.job, l.scheduled_at, l.output, l.error, l.definition, l.status, dead.message
from job_runs as l
left join lateral (
    select o.message
    from (
        select id, message
        from outbox
        where occurrence = l.id and (state = 'dead') is true
        offset 0
    ) as o
    order by o.id
    limit 1
) as dead on true
where l.notified_at is null and l.status in ('no_route', 'undelivered')
  and (l.status = 'no_route' or dead.message is not null)
order by l.scheduled_at, l.id
limit $1;

-- name: mark_result_notified
-- Note that operators are notified of a result that was not delivered; return a row unless that was
-- noted before.
update job_runs
set notified_at = $2
where id = $1 and notified_at is null and status in ('no_route', 'undelivered')
returning id;

-- name: left_of
-- Locks what was given back of a locked job, or of one that is gone, and waits to be claimed again. What
-- waits for its session or an answer keeps waiting while its job wants it, by hand until that is gone.
select l.id
from job_runs as l
left join lateral (
    select id, state, next_run_at from cron_jobs where id = l.job offset 0
) as j on true
where l.job = $1 and l.finished_at is null and l.node is null
  and (not l.manual or l.reason = 'approval' and j.id is null)
  and not (
      l.status = 'waiting' and j.state = 'active' and j.next_run_at = l.scheduled_at
  ) is true
order by l.id
for update of l;

-- name: release
-- Release locked occurrences, with the status $2, or the one that they have: skipped, if they have
-- waited for their session, and stopped, if for an answer. One by hand, and one whose job is not active, due at another time by now, or gone, ends for good: at $3,
-- or when the last of its runs ended. A job tells of what ended unless it has run since.
with freed as (
    select
        l.id, l.job, coalesce(l.started_at, ran.began_at) as began_at, l.claimed_at,
        coalesce(
            $2, nullif(l.status, 'waiting'),
            case when l.reason = 'approval' then 'cancelled' else 'skipped' end
        ) as status,
        coalesce($3, ran.ended_at, l.claimed_at) as ended_at,
        l.manual
            or (j.state = 'active' and j.next_run_at = l.scheduled_at) is not true as for_good,
        ran.requests, ran.input_tokens, ran.output_tokens, ran.cached_tokens, ran.cost_usd
    from unnest($1::text[]) as given (id)
    cross join lateral (select * from job_runs where id = given.id offset 0) as l
    left join lateral (
        select state, next_run_at from cron_jobs where id = l.job offset 0
    ) as j on true
    left join lateral (
        select
            min(r.started_at) as began_at, max(r.finished_at) as ended_at,
            sum(r.requests)::bigint as requests, sum(r.input_tokens)::bigint as input_tokens,
            sum(r.output_tokens)::bigint as output_tokens,
            sum(r.cached_tokens)::bigint as cached_tokens, sum(r.cost_usd) as cost_usd
        from runs as r
        where r.occurrence = l.id
    ) as ran on true
), rows as (
    update job_runs as l
    set status = f.status, node = null,
        reason = case
            when l.status <> 'waiting' then l.reason
            when l.reason = 'approval' then 'stopped'
            else 'busy'
        end,
        started_at = case when f.for_good then f.began_at else l.started_at end,
        finished_at = case when f.for_good then f.ended_at end, requests = f.requests,
        input_tokens = f.input_tokens, output_tokens = f.output_tokens,
        cached_tokens = f.cached_tokens, cost_usd = f.cost_usd
    from freed as f
    where l.id = f.id and l.id = any ($1::text[])
)
update cron_jobs as j
set running = nullif(j.running, f.id),
    last_run_at = case
        when f.for_good and f.status <> 'skipped' then coalesce(f.began_at, f.claimed_at)
        else j.last_run_at
    end,
    last_status = case when f.for_good then f.status else j.last_status end,
    last_error = case when f.for_good then '' else j.last_error end
from freed as f
where j.id = f.job and j.id = any (array(select job from freed))
  and (
      j.running = f.id
      or f.for_good and f.claimed_at >= coalesce(j.last_run_at, f.claimed_at)
  );

-- part: shown
-- A row l of the log with its runs in their order, and with the states of its messages.
select
    l.*,
    array(
        select r.id from runs as r where r.occurrence = l.id order by r.started_at, r.id
    ) as runs,
    (select min(r.started_at) from runs as r where r.occurrence = l.id) as began_at,
    array(
        select case when o.owner is null then o.state else 'sending' end
        from outbox as o
        where o.occurrence = l.id
    ) as deliveries;

-- name: log
-- The newest rows of the log before a place, each with its runs in their order and with
-- the states of its messages.
-- use: shown
from (
    select *
    from job_runs
    where (scheduled_at, id) < ($2, $3)
    order by scheduled_at desc, id desc
    limit $1
) as l
order by l.scheduled_at desc, l.id desc;

-- name: log_with_status
-- Those with one status; for the way in which it is said see the lists of runs.
-- use: shown
from (
    select *
    from job_runs
    where status >= $4 and (status, scheduled_at, id) < ($4, $2, $3)
    order by status desc, scheduled_at desc, id desc
    limit $1
) as l
order by l.scheduled_at desc, l.id desc;

-- name: log_of_job
-- Those of one job, with any status or one.
-- use: shown
from (
    select *
    from job_runs
    where job >= $5 and (job, scheduled_at, id) < ($5, $2, $3)
      and ($4::text is null or status = $4)
    order by job desc, scheduled_at desc, id desc
    limit $1
) as l
order by l.scheduled_at desc, l.id desc;

-- name: logged
-- One row of the log, with the same.
-- use: shown
from job_runs as l
where l.id = $1;

-- name: has_message_in
-- Return a row if a message about an occurrence was for a chat.
select
where exists (
    select from outbox
    where occurrence = $1 and (channel, account, chat) = ($2, $3, $4)
);

-- part: counts
-- How the rows ended. What ended before it began, since the clock was put back, took no time.
select
    count(*) filter (where status <> 'skipped') as runs,
    count(*) filter (where status = 'ok') as ok,
    count(*) filter (where status in ('failed', 'timed_out', 'lost')) as failed,
    count(*) filter (where status = 'skipped') as skipped,
    avg(greatest(extract(epoch from finished_at - started_at), 0))
        filter (where status = any ($2::text[]) and started_at is not null) as mean_s,
    percentile_disc(0.95) within group (
        order by greatest(extract(epoch from finished_at - started_at), 0)
    ) filter (where status = any ($2::text[]) and started_at is not null) as p95_s,
    sum(cost_usd) as cost_usd;

-- name: stats
-- What became of all that was due at an instant or later and has ended. The second bound excludes
-- none: without it a plan, which is made for any instant, would read a third of the log.
-- use: counts
from job_runs
where scheduled_at >= $1 and scheduled_at <= 'infinity' and finished_at is not null;

-- name: stats_of_job
-- The same of one job.
-- use: counts
from job_runs
where job = $3 and (job, scheduled_at) >= ($3, $1) and finished_at is not null;

-- name: sweep_log
-- Deletes some of the rows that ended before an instant, those that were due first; what was due
-- later has not ended before, but for a moment. Returns a row for each; waits for no lock.
delete from job_runs
where id = any (array(
    select id
    from job_runs
    where scheduled_at < $1 and finished_at < $1
    order by scheduled_at, id
    limit $2
    for update skip locked
))
returning id;

-- name: sweep_jobs
-- Deletes some of the jobs that are over and have neither run, nor been changed, nor anything in the
-- log since an instant. Returns a row for each; waits for no lock.
delete from cron_jobs
where id = any (array(
    select j.id
    from cron_jobs as j
    where j.state in ('completed', 'failed') and j.running is null
      and greatest(j.updated_at, j.last_run_at) < $1
      and not exists (select from job_runs as l where l.job = j.id)
    order by greatest(j.updated_at, j.last_run_at)
    limit $2
    for update skip locked
))
returning id;
