-- Nodes, their leases, and what dead ones left.
--
-- A claim is decided in two statements: the first locks the rows, the second looks at the nodes.
-- In one statement the nodes would be seen as they were before the wait for the lock, and a node
-- that joined and claimed meanwhile would be taken for a dead one.

-- name: time
-- What time it is at the server.
select clock_timestamp() as time;

-- name: join
-- Enters a node; entering it again renews it.
insert into nodes (id, host, pid, release, started_at, lease_until, state)
values ($1, $2, $3, $4, $5, $6, $7::jsonb)
on conflict (id) do update set lease_until = excluded.lease_until;

-- name: renew
-- Returns a row unless the node was declared dead, and whether there are others. $3 is its state,
-- null if it stays. One that comes late makes the lease no shorter; $4, a clock that was put back, may.
update nodes
set lease_until = case when $4 then $2 else greatest(lease_until, $2) end,
    state = coalesce($3::jsonb, state)
where id = $1
returning exists (select from nodes as other where other.id <> $1) as among_others;

-- name: end_lease
-- Ends the lease of a node that is gone.
update nodes
set lease_until = $2
where id = $1;

-- name: owner
-- Whose a session is.
select owner
from sessions
where key = $1;

-- name: list
-- Every node that nobody has removed.
select id, host, pid, release, started_at, lease_until, state
from nodes
order by started_at, id;

-- name: lock_node
-- Keeps one node from being recovered until the transaction ends.
select id
from nodes
where id = $1
for update;

-- name: lock_dead
-- Locks the nodes whose lease has ended, but for those that somebody else is recovering: all of
-- them, or those of a list.
select id
from nodes
where lease_until <= $1 and ($2::text[] is null or id = any ($2::text[]))
order by started_at, id
for update skip locked;

-- name: lock_lease
-- Locks a named lease and tells its owner.
select owner
from leases
where name = $1
for update;

-- name: enter_lease
-- Makes a lease that nobody owns, unless it exists.
insert into leases (name)
values ($1)
on conflict (name) do nothing;

-- name: take_lease
-- Gives a locked lease to a node that exists, if it is free or its owner's lease has ended.
update leases
set owner = $2, fence = fence + 1
where name = $1
  and exists (select from nodes where id = $2 for key share)
  and not exists (select from nodes where id = leases.owner and lease_until > $3)
returning owner;

-- name: drop_lease
-- Frees a lease if this node owns it.
update leases
set owner = null
where name = $1 and owner = $2
returning name;

-- name: lock_sessions_of
-- Locks all sessions of some nodes, in the order that every other transaction locks them.
select key
from sessions
where owner = any ($1::text[])
order by key
for update;

-- name: end_runs_of
-- Ends the unfinished runs of some nodes; those that were being stopped, whose messages have ended
-- with the stop, as cancelled.
update runs
set outcome = coalesce(stopped.outcome, $2),
    reason = case when stopped.outcome is null then $3 else stopped.reason end,
    finished_at = $4
from runs as r
left join lateral (
    select outcome, reason
    from inbox
    where session = r.session and kind = 'message' and state = 'done' and outcome <> 'completed'
      and run_id = r.id and outcome = 'cancelled'
    order by id
    limit 1
) as stopped on true
where r.id = runs.id and r.node = any ($1::text[]) and runs.outcome is null
returning
    runs.id, runs.session, runs.channel, runs.account, runs.chat, runs.thread, runs.started_at,
    runs.outcome;

-- name: end_crashed_rows
-- Ends the rows of some runs that were started as often as allowed; returns them to be apologised.
update inbox
set state = 'done', outcome = 'lost', reason = 'crashed', finished_at = $3
where run_id = any ($1::text[]) and state = 'pending' and attempts >= $2
returning id, session, message;

-- name: free_rows
-- Lets the unfinished rows of some runs run again, taking back as many attempts as are given.
update inbox
set run_id = null, attempts = greatest(attempts - $2, 0)
where run_id = any ($1::text[]) and state = 'pending';

-- name: free_outbox
-- Puts back what some nodes were sending; the old tickets become invalid.
update outbox
set state = 'pending', owner = null, possible_duplicate = true, fence = fence + 1
where owner = any ($1::text[])
returning id;

-- name: free_sessions
-- Frees all sessions of some nodes.
update sessions
set owner = null
where owner = any ($1::text[]);

-- name: free_leases
-- Frees all named leases of some nodes.
update leases
set owner = null
where owner = any ($1::text[]);

-- name: remove
-- Removes nodes that own nothing any more.
delete from nodes
where id = any ($1::text[]);

-- name: notify
-- Tells every listener when the transaction commits.
select pg_notify(channel, '')
from unnest($1::text[]) as channel;
