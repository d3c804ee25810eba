-- Messages on their way to the agent.

-- name: known
-- Tells which rows of a batch are stored already, by their place in it.
select batch.ordinal
from unnest($1::text[], $2::text[], $3::text[])
    with ordinality as batch (channel, account, external_id, ordinal)
join inbox using (channel, account, external_id);

-- name: enter_sessions
-- Makes the sessions that do not exist, notes the activity in the others, locks all of them in the
-- order of their keys. A new one belongs to the node at once if it has work to do.
with me as (
    select id from nodes where id = $1 for key share
)
insert into sessions as s (
    key, agent, channel, account, chat, thread, created_at, last_active_at, owner, fence
)
select
    b.key, b.agent, b.channel, b.account, b.chat, b.thread, $2, $2,
    case when b.work then me.id end,
    case when b.work and me.id is not null then 1 else 0 end
from unnest(
    $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::boolean[]
) as b (key, agent, channel, account, chat, thread, work)
left join me on true
order by b.key collate "C"
on conflict (key) do update
set channel = excluded.channel,
    account = excluded.account,
    chat = excluded.chat,
    thread = excluded.thread,
    last_active_at = greatest(s.last_active_at, excluded.last_active_at)
returning s.key, s.owner, s.queue_mode;

-- name: claim_sessions
-- Gives locked sessions to a node that exists, if they are free or their owner's lease has ended.
-- With $4 only those in which nothing older waits: whoever takes those takes them from the start.
update sessions as s
set owner = $1, fence = s.fence + 1
where s.key = any ($2::text[])
  and s.owner is distinct from $1
  and exists (select from nodes where id = $1 for key share)
  and not exists (select from nodes where id = s.owner and lease_until > $3)
  and not ($4 and exists (select from inbox where session = s.key and state = 'pending'))
returning s.key;

-- name: insert
-- Stores a batch in its order; what is known by now falls out. Returns ids and places in the batch.
with batch as (
    select *
    from unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::jsonb[],
        $8::text[], $9::text[]
    ) with ordinality as b (
        channel, account, external_id, session, agent, kind, message, outcome, reason, ordinal
    )
), stored as (
    insert into inbox (
        channel, account, external_id, session, agent, kind, state, message, received_at,
        finished_at, outcome, reason
    )
    select
        channel, account, external_id, session, agent, kind,
        case when outcome is null then 'pending' else 'done' end,
        message, $10,
        case when outcome is not null then $10::timestamptz end,
        outcome, reason
    from batch
    order by ordinal
    on conflict (channel, account, external_id) do nothing
    returning id, channel, account, external_id
)
select stored.id, batch.ordinal
from stored
join batch using (channel, account, external_id)
order by batch.ordinal;

-- name: lock_waiting_sessions
-- Locks the sessions with pending rows that a node might claim. Those of a dead node wait for its
-- recovery while a run of it is unfinished, so that its rows come back counted and in order.
select s.key
from sessions as s
where s.key in (select session from inbox where state = 'pending')
  and exists (
      select from unnest($3::text[], $4::text[]) as place (channel, account)
      where place.channel = s.channel and place.account = s.account
  )
  and s.owner is distinct from $1
  and not exists (select from nodes where id = s.owner and lease_until > $2)
  and not exists (
      select from runs where session = s.key and outcome is null and node <> $1
  )
order by s.key
for update of s skip locked;

-- name: pending_of
-- The unfinished rows of all sessions of a node; what crashed its run twice comes last.
select
    i.id, i.message, i.session, i.agent, i.kind, i.attempts, i.received_at, s.queue_mode
from sessions as s
join inbox as i on i.session = s.key and i.state = 'pending'
where s.owner = $1
order by i.attempts >= 2, i.id;

-- name: settle
-- Ends those of the rows that are not done. Locks them in order of their ids.
with open as (
    select id
    from inbox
    where id = any ($1::bigint[]) and state = 'pending'
    order by id
    for update
)
update inbox
set state = 'done', outcome = $2, reason = $3, finished_at = $4
from open
where inbox.id = open.id
returning inbox.session;

-- name: waiting
-- The oldest messages of a session that are not done.
select id, message, run_id, received_at, finished_at, outcome, reason
from inbox
where session = $1 and state = 'pending' and kind = 'message'
order by id
limit $2;

-- name: unanswered
-- The newest messages of a session that ended otherwise than with an answer.
select id, message, run_id, received_at, finished_at, outcome, reason
from inbox
where session = $1 and state = 'done' and kind = 'message' and outcome <> 'completed'
order by id desc
limit $2;

-- name: lock_sessions
-- Locks some sessions of a node.
select key
from sessions
where key = any ($1::text[]) and owner = $2
order by key
for update;

-- name: release_sessions
-- Frees locked sessions in which nothing waits or runs.
update sessions
set owner = null
where key = any ($1::text[])
  and not exists (select from inbox where session = sessions.key and state = 'pending')
  and not exists (
      select from runs where session = sessions.key and outcome is null and node = sessions.owner
  );
