-- Heartbeats and their runs.
--
-- Locks go from heartbeats, in the order of their agents, to the rows of the log.

-- name: enter
-- Makes the heartbeats that do not exist, switched off.
insert into heartbeats (agent)
select distinct a.agent collate "C" as agent
from unnest($1::text[]) as a (agent)
order by agent
on conflict (agent) do nothing;

-- name: lock
-- Locks heartbeats.
select *
from heartbeats
where agent = any ($1::text[])
order by agent
for update;

-- name: update
-- Store the schedule and the switches of locked heartbeats.
update heartbeats as h
set interval_us = n.interval_us, anchor = n.anchor, next_at = n.next_at, wake_at = n.wake_at,
    wake_kind = n.wake_kind, switched = n.switched, muted_until = n.muted_until,
    began_at = n.began_at
from unnest(
    $1::text[], $2::bigint[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[], $6::text[],
    $7::boolean[], $8::timestamptz[], $9::timestamptz[]
) as n (agent, interval_us, anchor, next_at, wake_at, wake_kind, switched, muted_until, began_at)
where h.agent = n.agent and h.agent = any ($1::text[]);

-- name: replan_items
-- Lets no checklist item of some agents be checked after $2, which is now.
update heartbeat_items
set done_at = $2
where agent = any ($1::text[]) and done_at > $2;

-- name: list
-- Heartbeats of some agents, or all, by name.
select *
from heartbeats
where $1::text[] is null or agent = any ($1::text[])
order by agent;

-- name: next_due
-- The earliest time from when on a heartbeat run can be claimed. $1 are agents with commas between, $2: wakes
-- count, $3 after the last heartbeat run.
select
    min(
        case
            when heartbeat_run is not null then began_at
            else least(
                next_at,
                case
                    when $2::boolean and wake_at is not null
                        then greatest(wake_at, began_at + $3::interval)
                end
            )
        end
    ) as due_at
from heartbeats
where agent = any (string_to_array($1, ',')) and node is null;

-- name: claim
-- Claims what is due of some agents for a node that exists, those that somebody else is claiming at
-- the moment left out: first what was given back, which goes on in its row, then what is due by the
-- grid and at most $6 wakes, the longest due first, with a new row of the log for each. As many as
-- there are ids in $4. What of the grid is due by then is answered by any of them: its next point
-- is the first one after $3, in whole microseconds. A heartbeat run by the grid answers a wake that waits, as a
-- wake itself does. Tells in each row whether the node exists; one row without an agent if nothing is
-- due, which costs no lock and no write. One statement: a heartbeat never names a heartbeat run without a row.
with left_over as (
    select h.agent, h.heartbeat_run, h.began_at, l.kind, l.due_at
    from heartbeats as h
    cross join lateral (
        select kind, due_at from heartbeat_runs where id = h.heartbeat_run offset 0
    ) as l
    where h.agent = any (string_to_array($2, ',')) and h.heartbeat_run is not null and h.node is null
    order by h.began_at, h.agent
    limit cardinality($4::text[])
    for update of h skip locked
), due as (
    select agent, next_at
    from heartbeats
    where agent = any (string_to_array($2, ',')) and heartbeat_run is null and next_at <= $3
    order by next_at, agent
    limit cardinality($4::text[])
    for update skip locked
), woken as (
    select agent, wake_kind, wake_at
    from heartbeats
    where agent = any (string_to_array($2, ',')) and heartbeat_run is null and (next_at <= $3) is not true
      and wake_at <= $3 and (began_at + $5::interval <= $3) is not false
    order by wake_at, agent
    limit least($6, cardinality($4::text[]))
    for update skip locked
), me as (
    select id
    from nodes
    where id = $1
      and (
          exists (select from left_over) or exists (select from due) or exists (select from woken)
      )
    for key share
), chosen as (
    select *
    from (
        select agent, true as again, heartbeat_run, kind, due_at, began_at as at
        from left_over
        union all
        select agent, false, null, 'interval', next_at, next_at
        from due
        union all
        select agent, false, null, wake_kind, wake_at, wake_at
        from woken
    ) as found
    where exists (select from me)
    order by again desc, at, agent
    limit cardinality($4::text[])
), numbered as (
    select
        agent, again, kind, due_at,
        row_number() over (order by again desc, at, agent) as ordinal,
        coalesce(
            heartbeat_run, ($4::text[])[row_number() over (order by again desc, at, agent)]
        ) as id
    from chosen
), entered as (
    insert into heartbeat_runs (id, agent, kind, due_at, claimed_at, status, node)
    select id, agent, kind, due_at, $3, 'running', $1
    from numbered
    where not again
), resumed as (
    update heartbeat_runs as l
    set status = 'running', detail = '', node = $1, claimed_at = $3
    from numbered as n
    where n.again and l.id = n.id and l.id = any (array(select heartbeat_run from left_over))
), marked as (
    update heartbeats as h
    set heartbeat_run = n.id,
        node = $1,
        began_at = case when n.again then h.began_at else $3 end,
        next_at = case
            when h.next_at <= $3 then h.anchor + (
                ((extract(epoch from $3 - h.anchor) * 1000000)::bigint / h.interval_us + 1)
                * h.interval_us
            ) * interval '1 microsecond'
            else h.next_at
        end,
        wake_at = case when n.again or h.wake_at > $3 then h.wake_at end,
        wake_kind = case when n.again or h.wake_at > $3 then h.wake_kind end
    -- With the list of all agents in $2 a plan may take the square of it.
    from numbered as n
    where h.agent = n.agent and h.agent = any (array(select agent from numbered))
    returning h.*, n.kind, n.due_at, $3::timestamptz as claimed_at, n.ordinal
)
select
    case
        when exists (select from left_over) or exists (select from due)
            or exists (select from woken) then exists (select from me)
        else exists (select from nodes where id = $1)
    end as alive,
    marked.*
from (values (1)) as one
left join marked on true
order by marked.ordinal;

-- name: claim_now
-- Claims a heartbeat run by hand of a locked heartbeat that has none; it answers a wake that waits.
with entered as (
    insert into heartbeat_runs (id, agent, kind, due_at, claimed_at, status, node)
    values ($2, $1, 'manual', $3, $3, 'running', $4)
)
update heartbeats
set heartbeat_run = $2, node = $4, began_at = $3, wake_at = null, wake_kind = null
where agent = $1;

-- name: claimed
-- Return a heartbeat with its claimed heartbeat run.
select h.*, l.kind, l.due_at, l.claimed_at
from heartbeats as h
cross join lateral (
    select kind, due_at, claimed_at from heartbeat_runs where id = h.heartbeat_run offset 0
) as l
where h.agent = $1;

-- name: defer
-- Marks a heartbeat run that a node has in hand.
update heartbeat_runs
set status = 'deferred', detail = $3
where id = $1 and node = $2
returning id;

-- name: lock_heartbeat_runs
-- Locks heartbeat runs after their heartbeats, which are those of the agents $2; tells whose they are.
with held as (
    select agent
    from heartbeats
    where agent = any ($2::text[])
    order by agent
    for update
)
select id, agent, node, finished_at
from heartbeat_runs
where id = any ($1::text[]) and (select count(*) from held) >= 0
order by id
for update;

-- name: end
-- Ends heartbeat runs that are open, with all that this changes, after locking them behind their heartbeats.
-- What an end does not say is told from its runs: when the first began, and what they have used. $1
-- holds the ends, $2 their ids; those that name a node which does not hold them are refused and told.
-- Of each agent the log keeps its newest $3 rows, and those with usage of the last $4, which counts.
-- Tells whether a heartbeat run of one of them is due by then. One statement: most heartbeat runs end without a run,
-- and this is all that it takes to store them.
with asked as (
    select *
    from jsonb_to_recordset($1::jsonb) as (
        id text, agent text, holder text, status text, skip text, detail text, reply text,
        channel text, account text, chat text, thread text, started_at timestamptz,
        finished_at timestamptz,
        noted_at timestamptz, attempts integer, failed boolean, events bigint[], done text[],
        requests bigint, input_tokens bigint, output_tokens bigint, cached_tokens bigint,
        cost_usd numeric
    )
), held as (
    select agent
    from heartbeats
    where agent = any (array(select agent from asked))
    order by agent
    for update
), locked as (
    select id, node
    from heartbeat_runs
    where id = any ($2::text[]) and finished_at is null and (select count(*) from held) >= 0
    order by id
    for update
), refused as (
    select a.id
    from asked as a
    join locked as l on l.id = a.id
    where a.holder is not null and l.node is distinct from a.holder
), ending as (
    select a.*
    from asked as a
    join locked as l on l.id = a.id
    where a.id not in (select id from refused)
), worked as (
    select
        heartbeat_run, session, started_at, requests, input_tokens, output_tokens, cached_tokens, cost_usd
    from runs
    where heartbeat_run = any ($2::text[])
), ran as (
    select
        heartbeat_run, min(started_at) as began_at, sum(requests)::bigint as requests,
        sum(input_tokens)::bigint as input_tokens, sum(output_tokens)::bigint as output_tokens,
        sum(cached_tokens)::bigint as cached_tokens, sum(cost_usd) as cost_usd
    from (
        select * from worked
        union all
        -- What its subagents and delegates have used is paid for by its session. The limit lets it
        -- look at each session by the index, whatever the statistics say.
        select w.heartbeat_run, w.session, null, c.*
        from (select distinct heartbeat_run, session from worked) as w
        cross join lateral (
            select requests, input_tokens, output_tokens, cached_tokens, cost_usd
            from runs
            where payer = w.session
            limit 10000
        ) as c
    ) as used
    group by heartbeat_run
), carried as (
    delete from heartbeat_events as v
    using ending as e
    where v.agent = e.agent and v.id = any (e.events)
), noted as (
    insert into heartbeat_items (agent, key, done_at)
    select distinct on (e.agent, item.key collate "C") e.agent, item.key, coalesce(e.noted_at, e.finished_at)
    from ending as e
    cross join unnest(e.done) as item (key)
    order by e.agent, item.key collate "C", coalesce(e.noted_at, e.finished_at) desc
    on conflict (agent, key) do update set done_at = excluded.done_at
), ended as (
    update heartbeat_runs as l
    set status = e.status, skip = e.skip, detail = e.detail, reply = e.reply, channel = e.channel,
        account = e.account, chat = e.chat, thread = e.thread,
        started_at = coalesce(e.started_at, ran.began_at), finished_at = e.finished_at,
        attempts = e.attempts, node = null,
        requests = coalesce(e.requests, ran.requests),
        input_tokens = coalesce(e.input_tokens, ran.input_tokens),
        output_tokens = coalesce(e.output_tokens, ran.output_tokens),
        cached_tokens = coalesce(e.cached_tokens, ran.cached_tokens),
        cost_usd = case when e.requests is null then ran.cost_usd else e.cost_usd end
    from ending as e
    left join ran on ran.heartbeat_run = e.id
    where l.id = e.id and l.id = any ($2::text[])
), freed as (
    update heartbeats as h
    set heartbeat_run = null, node = null,
        -- What was due by the grid when it was decided is answered by it.
        next_at = case
            when h.next_at <= e.noted_at then h.anchor + (
                ((extract(epoch from e.noted_at - h.anchor) * 1000000)::bigint / h.interval_us + 1)
                * h.interval_us
            ) * interval '1 microsecond'
            else h.next_at
        end,
        failures = case
            when e.failed is null then h.failures
            when e.failed then h.failures + 1
            else 0
        end
    from ending as e
    where h.agent = e.agent and h.heartbeat_run = e.id
    returning h.wake_at is not null or h.next_at <= e.finished_at as due
), pruned as (
    delete from heartbeat_runs
    where id = any (array(
        select old.id
        from (select agent, min(finished_at) as now from ending group by agent) as e
        -- The limits let it look at each agent by the index, whatever the statistics say.
        cross join lateral (
            select l.claimed_at, l.id
            from heartbeat_runs as l
            where l.agent = e.agent
            order by l.claimed_at desc, l.id desc
            offset $3 - 1
            limit 1
        ) as last
        cross join lateral (
            select l.id
            from heartbeat_runs as l
            where l.agent = e.agent and (l.claimed_at, l.id) < (last.claimed_at, last.id)
              and l.finished_at is not null
              and (l.requests is null or l.claimed_at < e.now - $4::interval)
            limit $3
        ) as old
    ))
)
select
    coalesce((select bool_or(due) from freed), false) as due,
    array(select id from refused) as refused;

-- name: lock_claimed
-- Lock the heartbeats with a run that some nodes have claimed, and return these runs.
select agent, heartbeat_run
from heartbeats
where node = any ($1::text[]) and ($2::text[] is null or heartbeat_run = any ($2::text[]))
order by agent
for update;

-- name: lock_unknown
-- The same of those heartbeat runs of one node that it does not know of. One by hand that was not given back
-- since is left alone: its claim can be repeated.
select h.agent, h.heartbeat_run
from heartbeats as h
cross join lateral (
    select kind, due_at, claimed_at from heartbeat_runs where id = h.heartbeat_run offset 0
) as l
where h.node = $1 and h.heartbeat_run <> all ($2::text[])
  and (l.kind <> 'manual' or l.due_at <> l.claimed_at)
order by h.agent
for update of h;

-- name: attempts
-- How many runs began for heartbeat runs, without those that a shutdown cut; nothing of those without.
select heartbeat_run, count(*) as attempts
from runs
where heartbeat_run = any ($1::text[]) and outcome is distinct from 'interrupted'
group by heartbeat_run;

-- name: release
-- Release the heartbeat runs $1 of the locked heartbeats of the agents $2.
with ran as (
    select
        b.id, sum(r.requests)::bigint as requests, sum(r.input_tokens)::bigint as input_tokens,
        sum(r.output_tokens)::bigint as output_tokens,
        sum(r.cached_tokens)::bigint as cached_tokens, sum(r.cost_usd) as cost_usd
    from unnest($1::text[]) as b (id)
    left join runs as r on r.heartbeat_run = b.id and r.heartbeat_run = any ($1::text[])
    group by b.id
), deferred as (
    update heartbeat_runs as l
    set status = 'deferred', node = null, requests = ran.requests,
        input_tokens = ran.input_tokens, output_tokens = ran.output_tokens,
        cached_tokens = ran.cached_tokens, cost_usd = ran.cost_usd
    from ran
    where l.id = ran.id and l.id = any ($1::text[])
)
update heartbeats
set node = null
where agent = any ($2::text[]) and heartbeat_run = any ($1::text[]);

-- part: spent
-- What the heartbeat runs of agent $1 that were claimed since $2 have used.
select
    sum(requests)::bigint as requests, sum(input_tokens)::bigint as input_tokens,
    sum(output_tokens)::bigint as output_tokens, sum(cached_tokens)::bigint as cached_tokens,
    sum(cost_usd) as cost_usd
from heartbeat_runs
where agent = $1 and (agent, claimed_at) >= ($1, $2);

-- name: run_facts
-- Return the facts for the checks of a heartbeat run: events, items, whether people talk to the
-- agent, and what its heartbeat runs that were claimed since $2 have used. One statement, because
-- every heartbeat run needs it.
select
    array(select id from heartbeat_events where agent = $1 order by id) as event_ids,
    array(select text from heartbeat_events where agent = $1 order by id) as event_texts,
    array(select at from heartbeat_events where agent = $1 order by id) as event_times,
    array(select key from heartbeat_items where agent = $1 order by key) as keys,
    array(select done_at from heartbeat_items where agent = $1 order by key) as done,
    exists (select from inbox where agent = $1 and state = 'pending' and kind = 'message')
    or exists (
        select from runs where agent = $1 and outcome is null and trigger in ('chat', 'api')
    ) as is_busy,
    spent.*
from (
    -- use: spent
) as spent;

-- name: used
-- What the heartbeat runs of an agent that were claimed since then have used.
-- use: spent

-- name: alert_state
-- Return whether an alert was sent since $2, or waits to be sent, without a message that failed for
-- good; null if neither.
select bool_or(o.state = 'sent') as sent
from outbox as o
where o.alert = $1
  and (o.state = 'pending' or (o.state = 'sent' and o.finished_at >= $2))
  and not (
      select exists (
          select from outbox as d
          where d.heartbeat_run = o.heartbeat_run and d.state in ('dead', 'dropped')
      )
  );

-- name: count_events
-- How many wait.
select count(*) as events
from heartbeat_events
where agent = $1;

-- name: add_event
-- Keeps one more.
insert into heartbeat_events (agent, text, at)
values ($1, $2, $3)
returning *;

-- name: events
-- Those that wait, the oldest first.
select *
from heartbeat_events
where agent = $1
order by id;

-- part: shown
-- A row l of the log with its runs and its messages, in their order.
select
    l.*,
    array(select r.id from runs as r where r.heartbeat_run = l.id order by r.started_at, r.id) as runs,
    (select min(r.started_at) from runs as r where r.heartbeat_run = l.id) as began_at,
    array(
        select case when o.owner is null then o.state else 'sending' end
        from (select id, state, owner from outbox where heartbeat_run = l.id offset 0) as o
        order by o.id
    ) as states,
    array(
        select o.error
        from (select id, error from outbox where heartbeat_run = l.id offset 0) as o
        order by o.id
    ) as errors;

-- part: shown_as
-- What an alert is shown as ($5), or any. No ``exists``: the planner would read all messages at once.
      and (
          $5::text is null
          or $5 = case
              when channel is null then 'logged'
              when coalesce(
                  (select true from outbox as o
                   where o.heartbeat_run = l.id and o.state in ('dead', 'dropped') limit 1),
                  false
              ) then 'delivery_failed'
              else 'alerted'
          end
      );

-- name: log
-- The newest rows of the log before a place, each with its runs and its messages in their order.
-- use: shown
from (
    select *
    from heartbeat_runs as l
    where (claimed_at, id) < ($2, $3)
      and claimed_at >= coalesce($4, '-infinity'::timestamptz)
    order by claimed_at desc, id desc
    limit $1
) as l
order by l.claimed_at desc, l.id desc;

-- name: log_with_status
-- Those with a status, and shown as $5. For the way in which it is said see the lists of runs.
-- use: shown
from (
    select *
    from heartbeat_runs as l
    where status >= $4 and (status, claimed_at, id) < ($4, $2, $3)
      and claimed_at >= coalesce($6, '-infinity'::timestamptz)
      -- use: shown_as
    order by status desc, claimed_at desc, id desc
    limit $1
) as l
order by l.claimed_at desc, l.id desc;

-- name: log_with_skip
-- Those that were skipped for one cause; what else is asked for as above.
-- use: shown
from (
    select *
    from heartbeat_runs as l
    where skip >= $6 and (skip, claimed_at, id) < ($6, $2, $3) and (status = $4) is true
      and claimed_at >= coalesce($7, '-infinity'::timestamptz)
      -- use: shown_as
    order by skip desc, claimed_at desc, id desc
    limit $1
) as l
order by l.claimed_at desc, l.id desc;

-- name: log_of_agent
-- Those of one agent, with a status or any ($4), a cause ($6), and shown as $5.
-- use: shown
from (
    select *
    from heartbeat_runs as l
    where agent >= $7 and (agent, claimed_at, id) < ($7, $2, $3)
      and (agent, claimed_at) >= ($7, coalesce($8, '-infinity'::timestamptz))
      and ($4::text is null or status = $4) and ($6::text is null or skip = $6)
      -- use: shown_as
    order by agent desc, claimed_at desc, id desc
    limit $1
) as l
order by l.claimed_at desc, l.id desc;

-- name: heartbeat_run
-- One row of the log, with the same.
-- use: shown
from heartbeat_runs as l
where l.id = $1;

-- name: undelivered
-- Alerts of some agents of which a message has died since then and nobody was told, the first that
-- died first, each with its messages in their order.
with died as (
    select distinct on (heartbeat_run) heartbeat_run, finished_at, id
    from outbox
    where state = 'dead' and heartbeat_run is not null and finished_at >= $2
    order by heartbeat_run, finished_at, id
)
select
    l.id, l.agent, l.channel, l.account, l.chat, l.thread, dead.error, dead.message,
    array(
        select o.message
        from (select id, message from outbox where heartbeat_run = l.id offset 0) as o
        order by o.id
    ) as said
from died
cross join lateral (select * from heartbeat_runs where id = died.heartbeat_run offset 0) as l
cross join lateral (
    select o.error, o.message
    from (
        select * from outbox where heartbeat_run = l.id and (state = 'dead') is true offset 0
    ) as o
    order by o.id
    limit 1
) as dead
where l.agent = any ($1::text[]) and l.status = 'alerted' and l.notified_at is null
order by died.finished_at, died.id;

-- name: mark_notified
-- Notes that somebody was told of a heartbeat run; returns a row unless that was noted before.
update heartbeat_runs
set notified_at = $2
where id = $1 and notified_at is null
returning id;

-- name: sweep_log
-- Deletes some of the rows that ended before an instant, those that were claimed first. Returns a
-- row for each; waits for no lock.
delete from heartbeat_runs
where id = any (array(
    select id
    from heartbeat_runs
    where claimed_at < $1 and finished_at < $1
    order by claimed_at, id
    limit $2
    for update skip locked
))
returning id;

-- name: sweep_items
-- Forgets items that were not carried since an instant.
delete from heartbeat_items
where done_at < $1;

-- name: retarget
-- Lets heartbeat runs have alerted in the new chat. Alerts keep their keys, which name the old one.
with alerted as (
    select id
    from heartbeat_runs
    where channel = $1 and account = $2 and chat = $3
    order by id
    for update
)
update heartbeat_runs as l
set chat = $4
from alerted
where l.id = alerted.id and l.id = any (array(select id from alerted))
returning l.id;
