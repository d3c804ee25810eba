-- Nodes, their leases, and recovery of the work of expired nodes.
--
-- A claim is decided in two statements: the first locks the rows, the second looks at the nodes.
-- A single statement would see the nodes as they were before the wait for the lock, so that a node
-- that joined and claimed meanwhile would be considered expired.

-- name: time
-- Return the time of the server.
select clock_timestamp() as time;

-- name: join
-- Store a node; storing it again renews its lease.
insert into nodes (id, host, pid, release, started_at, lease_until, state)
values ($1, $2, $3, $4, $5, $6, $7::jsonb)
on conflict (id) do update set lease_until = excluded.lease_until;

-- name: renew
-- Renew a lease; returns a row unless the node was marked as expired, and whether there are other
-- nodes. $3 is its state, null if unchanged. A late renewal does not shorten the lease, unless the
-- clock was set back ($4).
update nodes
set lease_until = case when $4 then $2 else greatest(lease_until, $2) end,
    state = coalesce($3::jsonb, state)
where id = $1
returning exists (select from nodes as other where other.id <> $1) as among_others;

-- name: end_lease
-- Expire the lease of a node that has left.
update nodes
set lease_until = $2
where id = $1;

-- name: owner
-- Return the owner of a session.
select owner
from sessions
where key = $1;

-- name: list
-- Return all nodes that have not been deleted.
select id, host, pid, release, started_at, lease_until, state
from nodes
order by started_at, id;

-- name: lock_node
-- Prevent the recovery of a node until the end of the transaction.
select id
from nodes
where id = $1
for update;

-- name: unattended
-- Return the ids of what a node has begun or claimed, except $2.
select id
from runs
where node = $1 and outcome is null and id <> all ($2::text[])
union all
select id
from job_runs
where node = $1 and id <> all ($2::text[])
union all
select heartbeat_run
from heartbeats
where node = $1 and heartbeat_run <> all ($2::text[]);

-- name: lock_expired
-- Lock the nodes whose lease has expired, except those that another node is recovering: all of
-- them, or those of a list.
select id
from nodes
where lease_until <= $1 and ($2::text[] is null or id = any ($2::text[]))
order by started_at, id
for update skip locked;

-- name: lock_lease
-- Lock a named lease and return its owner.
select owner
from leases
where name = $1
for update;

-- name: enter_lease
-- Create a lease without an owner, unless it exists.
insert into leases (name)
values ($1)
on conflict (name) do nothing;

-- name: claim_lease
-- Assign a locked lease to an existing node, if it is free or the lease of its owner has expired.
update leases
set owner = $2, fence = fence + 1
where name = $1
  and exists (select from nodes where id = $2 for key share)
  and not exists (select from nodes where id = leases.owner and lease_until > $3)
returning owner;

-- name: drop_lease
-- Release a lease if this node owns it.
update leases
set owner = null
where name = $1 and owner = $2
returning name;

-- name: lock_sessions_of
-- Lock all sessions of some nodes, in the order in which all transactions lock them.
select key
from sessions
where owner = any ($1::text[])
order by key
for update;

-- name: subagents_elsewhere
-- The running background subagents for which session $1 pays, on none of the nodes $2; with $3 only
-- those that this person requested.
select id
from runs
where payer = $1 and outcome is null and task is not null and node <> all ($2::text[])
  and ($3::text is null or sender = $3)
order by started_at, id;

-- name: mark_stopped_runs
-- Note that unfinished runs were stopped. ``is true`` keeps the partial indexes of open rows out: with
-- statistics of an earlier day, the planner reads the whole index.
with open as (
    select r.id
    from (select unnest($1::text[]) as id order by 1) as stopped
    cross join lateral (
        select id
        from runs
        where id = stopped.id and (outcome is null) is true
        offset 0
        for update
    ) as r
)
update runs
set reason = 'stopped'
from open
where runs.id = open.id and runs.id = any (array(select id from open));

-- name: mark_stopped_occurrences
-- Note that occurrences, or those of some runs, were stopped; what waits is in no process.
with open as (
    select l.id
    from (
        select unnest($1::text[]) as id
        union
        select r.occurrence
        from unnest($1::text[]) as stopped (id)
        cross join lateral (
            select occurrence from runs where id = stopped.id offset 0
        ) as r
        where r.occurrence is not null
        order by 1
    ) as found
    cross join lateral (
        select id
        from job_runs
        where id = found.id and (finished_at is null and status <> 'waiting') is true
        offset 0
        for update
    ) as l
)
update job_runs
set reason = 'stopped'
from open
where job_runs.id = open.id and job_runs.id = any (array(select id from open));

-- name: end_runs_of
-- End the unfinished runs of some nodes, or only some of these ($5), with the outcome $2; runs that
-- were being stopped, or whose messages the stop has ended, as cancelled.
update runs
set error = coalesce(error, $6), (outcome, reason, finished_at) = (
    select
        coalesce(stopped.outcome, case when runs.reason = 'stopped' then 'cancelled' end, $2),
        case when stopped.outcome is null then coalesce(runs.reason, $3) else stopped.reason end,
        $4::timestamptz
    from (values (1)) as one
    left join lateral (
        select i.outcome, i.reason
        from unnest(runs.inbox) as row_id
        cross join lateral (select * from inbox where id = row_id offset 0) as i
        where i.run_id = runs.id and i.session = runs.session and i.kind = 'message'
          and i.state = 'done' and i.outcome = 'cancelled'
        order by i.id
        limit 1
    ) as stopped on true
)
where node = any ($1::text[]) and outcome is null and ($5::text[] is null or id = any ($5::text[]))
returning
    runs.id, runs.session, runs.channel, runs.account, runs.chat, runs.thread, runs.started_at,
    runs.outcome;

-- name: end_crashed_rows
-- End the messages of some runs that have no attempts left, with those that these runs have taken in,
-- unless a stop has cancelled them; returns them, so that their senders can be notified. Notes in the runs that they have these messages.
with crashed as (
    select i.id, i.session, i.run_id
    from runs as r
    cross join lateral unnest(r.inbox) as row_id
    cross join lateral (select * from inbox where id = row_id offset 0) as i
    where r.id = any ($1::text[]) and i.run_id = r.id and i.state = 'pending' and i.attempts >= $2
      and i.outcome is null
), ended as (
    update inbox as i
    set state = 'done', outcome = 'lost', reason = 'crashed', finished_at = $3,
        run_id = crashed.run_id
    from crashed
    where i.session = crashed.session and i.state = 'pending' and i.outcome is null
      and i.session = any (array(select session from crashed))
      and (i.id = crashed.id or i.joined = crashed.id)
    returning i.id, i.session, i.message, i.run_id, i.id <> crashed.id as was_taken_in
), noted as (
    update runs as r
    set inbox = r.inbox || taken.ids
    from (
        select run_id, array_agg(id order by id) as ids
        from ended
        where was_taken_in
        group by run_id
    ) as taken
    where r.id = taken.run_id and r.id = any (array(select run_id from ended where was_taken_in))
)
select id, session, message, run_id
from ended;

-- name: free_rows
-- Make the unfinished messages of some runs pending again, and subtract the given number of
-- attempts.
update inbox
set run_id = null, attempts = greatest(attempts - $2, 0)
where id = any (array(
        select unnest(r.inbox)
        from unnest($1::text[]) as one (id)
        cross join lateral (select inbox from runs where id = one.id offset 0) as r
    ))
  and run_id = any ($1::text[]) and finished_at is null;

-- name: free_outbox
-- Make outgoing messages that some nodes were sending pending again; their old claims become
-- invalid.
update outbox
set owner = null, possible_duplicate = true, fence = fence + 1
where state = 'pending' and owner = any ($1::text[])
returning id;

-- name: free_sessions
-- Release all sessions of some nodes.
update sessions
set owner = null
where owner = any ($1::text[]);

-- name: free_leases
-- Release all named leases of some nodes.
update leases
set owner = null
where owner = any ($1::text[]);

-- name: remove
-- Delete nodes that own nothing any more.
delete from nodes
where id = any ($1::text[]);

-- name: notify
-- Notify all listeners when the transaction commits.
select pg_notify(channel, '')
from unnest($1::text[]) as channel;
