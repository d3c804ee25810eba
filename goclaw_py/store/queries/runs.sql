-- Runs, sessions and their history.

-- name: lock_session
-- Locks one session.
select key, owner, fence, epoch
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

-- name: moved_to
-- Where a session is now whose chat was given another id.
select moved_to
from moved_sessions
where key = $1;

-- name: begin
-- Stores a run in a session that is its node's own, counts an attempt for its rows, and gives it the
-- draft that an earlier run for them left: of several the newest whose id is known. Returns that,
-- with each entry of the history, the newest first, or with one that is null; returns nothing if the
-- session is not the node's own or the run was stored before. One statement, so that a row never
-- counts an attempt of a run that does not exist, and so that it needs no other transaction.
with mine as (
    select key, fence, epoch
    from sessions
    where key = $2 and owner = $6
    for update
), begun as (
    insert into runs (
        id, session, agent, trigger, lane, node, fence, epoch, parent, model, channel, account,
        chat, thread, started_at
    )
    select $1, mine.key, $3, $4, $5, $6, mine.fence, mine.epoch, $7, $8, $9, $10, $11, $12, $13
    from mine
    on conflict (id) do nothing
    returning id, session, epoch
), counted as (
    update inbox
    set run_id = $1, attempts = attempts + 1
    where id = any ($14::bigint[]) and state = 'pending' and exists (select from begun)
), active as (
    update sessions
    set last_active_at = greatest(last_active_at, $13)
    where key = $2 and exists (select from begun)
), found as (
    select run_id, row_number() over (order by external_id is null, opened_at desc, run_id) as place
    from drafts
    where inbox && $14::bigint[]
), taken as (
    update drafts
    set run_id = begun.id, inbox = $14
    from begun, found
    where drafts.run_id = found.run_id and found.place = 1
    returning drafts.external_id
), surplus as (
    delete from drafts
    using begun, found
    where drafts.run_id = found.run_id and found.place > 1
    returning drafts.external_id
)
select
    (select external_id from taken) as draft,
    exists (select from taken where external_id is null)
        or exists (select from surplus where external_id is null) as unsure,
    h.role, h.text, h.native, h.format, h.run_id, h.at
from begun
left join lateral (
    select * from history
    where history.session = begun.session and history.epoch = begun.epoch
    order by history.id desc
) as h on true;

-- name: owner_of_run
-- Tells who runs it, whether it has ended, and which draft is its own.
select
    r.node, r.outcome, d.external_id as draft,
    d.run_id is not null and d.external_id is null as unsure
from runs as r
left join drafts as d on d.run_id = r.id
where r.id = $1;

-- name: lock_sessions_of_runs
-- Locks the sessions of some runs, in the order of their keys, and tells whose both are. Locking the
-- sessions alone is enough: nobody writes a run without it, but for the recovery, which ends it
-- under the run's own lock.
select
    r.id, r.session, r.node, r.fence, r.outcome, r.error,
    s.owner, s.fence as session_fence,
    exists (select from nodes where id = r.node) as node_exists
from runs as r
join sessions as s on s.key = r.session
where r.id = any ($1::text[])
order by s.key
for update of s;

-- name: finish
-- Ends a run that has not ended, in its locked session, with all that belongs to its end: its draft,
-- unless that waits for the run that answers the same messages (no draft can be opened meanwhile);
-- the unfinished rows that it began with or has taken in, or, if it was interrupted, those that it
-- began with are free again, an attempt taken back; history and outbox rows, in the given order.
with ended as (
    update runs
    set outcome = $2, finished_at = $3, reason = $4, error = $5, requests = $6,
        input_tokens = $7, output_tokens = $8, cached_tokens = $9, cost_usd = $10
    where id = $1 and outcome is null
    returning id, session, epoch
), forgotten as (
    delete from drafts
    where run_id = $1 and exists (select from ended)
      and ($2 <> 'interrupted' or not exists (
          select from inbox where id = any (drafts.inbox) and state = 'pending'
      ))
), answered as (
    update inbox
    set state = 'done', outcome = $2, reason = $4, finished_at = $3
    where run_id = $1 and state = 'pending' and $2 <> 'interrupted' and exists (select from ended)
), freed as (
    update inbox
    set run_id = null, attempts = greatest(attempts - 1, 0)
    where run_id = $1 and state = 'pending' and $2 = 'interrupted' and exists (select from ended)
), taken_in as (
    -- No other run has them.
    update inbox
    set state = 'done', outcome = $2, reason = $4, finished_at = $3, run_id = $1
    where id = any ($11::bigint[]) and state = 'pending' and run_id is null
      and $2 <> 'interrupted' and exists (select from ended)
), remembered as (
    insert into history (session, epoch, role, text, native, format, run_id, at)
    select ended.session, ended.epoch, e.role, e.text, e.native, e.format, $1, $3
    from ended
    cross join unnest($12::text[], $13::text[], $14::bytea[], $15::text[])
        with ordinality as e (role, text, native, format, ordinal)
    order by e.ordinal
), said as (
    insert into outbox (
        channel, account, chat, message, session, possible_duplicate, created_at, next_attempt_at
    )
    select
        m.channel, m.account, m.chat, m.message, ended.session,
        coalesce((m.message -> 'unsure')::boolean, false), $3, $3
    from ended
    cross join unnest($16::text[], $17::text[], $18::text[], $19::jsonb[])
        with ordinality as m (channel, account, chat, message, ordinal)
    order by m.ordinal
)
select case when cardinality($16::text[]) > 0 then pg_notify($20, '') end
from ended;

-- name: remember
-- Appends to a session's history outside of any run, in the given order.
insert into history (session, epoch, role, text, native, format, at)
select $1, $2, e.role, e.text, e.native, e.format, $3
from unnest($4::text[], $5::text[], $6::bytea[], $7::text[])
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
