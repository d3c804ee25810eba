-- Steps of runs, undo and forks.

-- name: own_steps
-- Return the steps of a run, in order.
select seq, kind, payload
from run_steps
where run_id = $1
order by seq;

-- name: last_turn
-- Return the first entry of the run that wrote last in a session since its last reset.
select h.run_id, h.text, h.id <= s.summarized_upto as is_summarized, r.tools, r.follows
from sessions as s
cross join lateral (
    select run_id
    from history
    where session = s.key and epoch = s.epoch and run_id is not null
    order by id desc
    limit 1
) as last
cross join lateral (
    select id, run_id, text
    from history
    where session = s.key and epoch = s.epoch and run_id = last.run_id
    order by id
    limit 1
) as h
left join lateral (select tools, follows from runs where id = h.run_id offset 0) as r on true
where s.key = $1;

-- name: undo
-- Take the last turn of a locked session out of its history, if its run is $2 and nothing runs in
-- the session, for a command $3 that has not ended, on its node $4. The entries stay stored: their
-- negative epoch is read by no run.
with last as (
    select s.key, s.epoch, s.summarized_upto
    from sessions as s
    where s.key = $1 and s.owner = $4
      and exists (select from inbox where id = $3 and state = 'pending')
      and not exists (select from runs where session = s.key and outcome is null)
      and $2 = (
          select run_id
          from history
          where session = s.key and epoch = s.epoch and run_id is not null
          order by id desc
          limit 1
      )
)
update history as h
set epoch = -1 - h.epoch, undone_at = $5
from last
where h.session = last.key and h.epoch = last.epoch and h.run_id = $2
  and not exists (
      select from history as o
      where o.session = last.key and o.epoch = last.epoch and o.run_id = $2
        and o.id <= last.summarized_upto
  )
returning h.id;

-- name: answer_again
-- Make ended messages $1 of a locked session $3 pending again with the content $2, with all attempts
-- available. Those with the same last run $4 are one turn. Locks them in the order of their ids.
with ended as (
    select i.id, one.content
    from unnest($1::bigint[], $2::text[]) as one (id, content)
    join inbox as i on i.id = one.id
    where i.id = any ($1::bigint[]) and i.session = $3 and i.state = 'done' and i.kind = 'message'
    order by i.id
    for update of i
)
update inbox
set state = 'pending', attempts = 0, run_id = null, last_run = $4, joined = null,
    finished_at = null, outcome = null, reason = null, dismissed = false,
    message = message || ended.content::jsonb
from ended
where inbox.id = ended.id and inbox.id = any ($1::bigint[])
returning inbox.id;

-- name: fork
-- Copies what a session remembers into a new session: now, or at the end of its run $3. Returns the
-- number of entries. Ids are given in order, so a summary stands for the same entries of the copy.
with origin as (
    select
        s.key, s.agent, s.epoch, s.summary, s.summarized_upto, s.summaries, s.pinned,
        r.id as run, coalesce(r.epoch, s.epoch) as read, r.started_at
    from sessions as s
    left join runs as r on r.id = $3 and r.session = s.key
    where s.key = $1
), source as (
    select h.*
    from origin as o
    join history as h on h.session = o.key and h.epoch in (o.read, -1 - o.read)
    left join runs as w on w.id = h.run_id
    where case
        when o.run is null then h.epoch = o.read
        when h.run_id = o.run then true
        else (h.undone_at is null or h.undone_at > o.started_at)
            and coalesce(w.finished_at, h.at) <= o.started_at
    end
), put as (
    insert into history (session, epoch, role, text, native, format, run_id, at, files)
    select $2, 0, role, text, native, format, run_id, at, files
    from source
    order by id
    returning id
), kept as (
    select o.key, (
        select count(*)
        from source
        where id <= o.summarized_upto
          and exists (select from source where id = o.summarized_upto)
    ) as summarized
    from origin as o
)
insert into sessions (
    key, agent, channel, account, chat, created_at, last_active_at, pinned, summary, summaries,
    summarized_upto
)
select
    $2, o.agent, $4, $5, $6, $7, $7,
    case when o.read = o.epoch then o.pinned else '{}' end,
    case when kept.summarized > 0 then o.summary else '' end,
    case when kept.summarized > 0 then o.summaries else 0 end,
    coalesce((select max(id) from (select id from put order by id limit kept.summarized) as p), 0)
from origin as o
join kept using (key)
returning (select count(*) from put) as entries;

-- name: lock_deletable
-- Lock a session in which nothing is in progress or waits.
select s.key
from sessions as s
where s.key = $1
  and not (select exists (select from runs where session = s.key and outcome is null))
  and not (
      select
          exists (select from inbox where session = s.key and state = 'pending')
          or exists (select from inbox where session = s.key and state = 'waiting')
  )
for update of s;

-- name: delete
-- Delete a locked session with everything that was said in it. Its runs stay for the usage, as does
-- the number of its messages; messages to which the log of a job or a heartbeat refers stay with that
-- log.
with gone as (
    delete from sessions
    where key = $1
    returning channel, account, chat
), titles as (
    delete from names as n
    using gone
    where n.channel = gone.channel and n.account = gone.account and n.id = gone.chat
      and n.kind <> 'seen'
), grants as (
    delete from tool_grants
    where session = $1
), received as (
    delete from inbox
    where session = $1 and state = 'done'
    returning received_at, agent, message
), sent as (
    delete from outbox
    where session = $1 and state in ('sent', 'dropped', 'dead')
      and occurrence is null and heartbeat_run is null
    returning finished_at, state
), counted as (
    insert into message_counts (at, agent, received, sent)
    select date_bin('15 minutes', received_at, 'epoch'), agent, count(*), 0
    from received
    where message ->> 'source' is distinct from 'subagent'
    group by 1, 2
    union all
    select
        date_bin('15 minutes', finished_at, 'epoch'), nullif(split_part($1, ':', 2), ''), 0, count(*)
    from sent
    where state = 'sent'
    group by 1, 2
), asked as (
    delete from approvals
    where session = $1
), steps as (
    delete from run_steps
    where run_id in (select id from runs where session = $1)
)
update runs
set tools = null, error = null
where session = $1;

-- name: has_session
-- Return a session if it is stored.
select key
from sessions
where key = $1;
