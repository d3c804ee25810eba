-- Runs, sessions and their history.

-- name: lock_session
-- Locks one session.
select owner, fence, epoch
from sessions
where key = $1
for update;

-- name: enter_session
-- Makes a session that nobody owns, unless it exists.
insert into sessions (
    key, agent, channel, account, chat, thread, created_at, last_active_at
)
values ($1, $2, $3, $4, $5, $6, $7, $7)
on conflict (key) do nothing;

-- name: begin
-- Stores a run with the fence and epoch of its locked session and counts an attempt for its rows.
-- Returns nothing if the run was stored before. One statement, so that a row never counts an
-- attempt of a run that does not exist.
with begun as (
    insert into runs (
        id, session, agent, trigger, lane, node, fence, epoch, parent, model, channel, account,
        chat, thread, started_at
    )
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
    on conflict (id) do nothing
    returning id
), counted as (
    update inbox
    set run_id = begun.id, attempts = attempts + 1
    from begun
    where inbox.id = any ($16::bigint[]) and inbox.state = 'pending'
), active as (
    update sessions
    set last_active_at = greatest(last_active_at, $15)
    from begun
    where sessions.key = $2
)
select id from begun;

-- name: owner_of_run
-- Tells who runs it and whether it has ended.
select node, outcome
from runs
where id = $1;

-- name: lock_session_of_run
-- Locks the session of a run and tells whose both are. Locking the session alone is enough:
-- nobody writes a run without it, but for the recovery, which ends it under the run's own lock.
select
    r.session, r.node, r.fence, r.epoch, r.outcome,
    s.owner, s.fence as session_fence,
    exists (select from nodes where id = r.node) as node_exists
from runs as r
join sessions as s on s.key = r.session
where r.id = $1
for update of s;

-- name: finish
-- Ends a run that has not ended.
update runs
set outcome = $2, finished_at = $3, reason = $4, error = $5, requests = $6, input_tokens = $7,
    output_tokens = $8, cached_tokens = $9, cost_usd = $10
where id = $1 and outcome is null
returning id;

-- name: finish_rows
-- Ends the unfinished rows of a run.
update inbox
set state = 'done', outcome = $2, reason = $3, finished_at = $4
where run_id = $1 and state = 'pending';

-- name: finish_taken_in
-- Ends the unfinished rows that a run has taken in. No other run has them.
update inbox
set state = 'done', outcome = $2, reason = $3, finished_at = $4, run_id = $1
where id = any ($5::bigint[]) and state = 'pending' and run_id is null;

-- name: remember
-- Appends to a session's history, in the given order.
insert into history (session, epoch, role, text, native, format, run_id, at)
select $1, $2, e.role, e.text, e.native, e.format, $3, $4
from unnest($5::text[], $6::text[], $7::bytea[], $8::text[])
    with ordinality as e (role, text, native, format, ordinal)
order by e.ordinal;

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
-- The sessions that were active last.
select
    s.*,
    (select count(*) from inbox as i where i.session = s.key and i.state = 'pending') as waiting,
    (select count(*) from history as h where h.session = s.key and h.epoch = s.epoch) as entries
from sessions as s
order by s.last_active_at desc, s.key desc
limit $1;

-- name: session
-- One session.
select
    s.*,
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

-- name: reset
-- Begins a fresh history. A run that began before writes to the old one.
update sessions
set epoch = epoch + 1, last_active_at = greatest(last_active_at, $2)
where key = $1;

-- name: choose_mode
-- Keeps the queue mode of a session; null goes back to that of the settings.
update sessions
set queue_mode = $2
where key = $1;
