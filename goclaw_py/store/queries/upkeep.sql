-- Deletion of old rows. No statement waits for a lock.
--
-- What a row depends on is asked for by inner selects that cannot become joins: a join would read
-- the whole of the other table.

-- name: sweep_inbox
-- Delete messages that ended before $3, and failed messages that ended before $4, among the $2 rows
-- after the row $1; except those of drafts and of running runs. Returns the number of deleted and
-- of checked rows, and the last one. Ids grow with time, so no other index is needed.
with looked as (
    select id, received_at
    from inbox
    where id > $1
    order by id
    limit $2
), gone as (
    delete from inbox
    where id = any (array(
        select i.id
        from inbox as i
        where i.id = any (array(select id from looked)) and i.state = 'done'
          and i.finished_at < case
              when i.kind = 'message' and not i.dismissed and i.outcome in (
                  'failed', 'timed_out', 'dropped', 'rejected', 'abandoned', 'lost'
              ) then $4::timestamptz
              else $3::timestamptz
          end
          and not (
              select exists (select from runs as r where r.id = i.run_id and r.outcome is null)
          )
          and not (select exists (select from drafts as d where d.inbox && array[i.id]))
        order by i.id
        for update of i skip locked
    ))
    returning received_at, agent, message
), counted as (
    insert into message_counts (at, agent, received, sent)
    select date_bin('15 minutes', received_at, 'epoch'), agent, count(*), 0
    from gone
    where message ->> 'source' is distinct from 'subagent'
    group by 1, 2
)
select
    (select count(*) from gone) as gone, count(*) as looked_at, max(id) as last,
    (array_agg(received_at order by id desc))[1] as since
from looked;

-- name: sweep_outbox
-- Delete messages that were sent or dropped before $3, and undeliverable ones from before $4, among
-- the $2 rows after the row $1; except those that a history refers to. Returns the same as above.
with looked as (
    select id, created_at
    from outbox
    where id > $1
    order by id
    limit $2
), gone as (
    delete from outbox
    where id = any (array(
        select o.id
        from outbox as o
        where o.id = any (array(select id from looked))
          and o.state in ('sent', 'dropped', 'dead')
          and o.finished_at < case o.state
              when 'dead' then $4::timestamptz
              else $3::timestamptz
          end
          and not (select exists (select from job_runs as l where l.id = o.occurrence))
          and not (select exists (select from heartbeat_runs as l where l.id = o.heartbeat_run))
        order by o.id
        for update of o skip locked
    ))
    returning finished_at, session, state
), counted as (
    insert into message_counts (at, agent, received, sent)
    select
        date_bin('15 minutes', finished_at, 'epoch'), nullif(split_part(session, ':', 2), ''), 0,
        count(*)
    from gone
    where state = 'sent'
    group by 1, 2
)
select
    (select count(*) from gone) as gone, count(*) as looked_at, max(id) as last,
    (array_agg(created_at order by id desc))[1] as since
from looked;

-- name: end_unread
-- End some pending answers of chats of the channels $2 as sent: those from before $3, and all but the
-- newest $4 of a chat. Returns one row for each.
with unread as (
    select
        id, owner, created_at,
        row_number() over (partition by channel, account, chat order by id desc) as place
    from outbox
    where channel = any ($2::text[]) and state = 'pending' and session is not null
      and message ->> 'run_id' is not null and occurrence is null and heartbeat_run is null
)
update outbox
set state = 'sent', external_id = '', error = null, finished_at = $1
where id = any (array(
    select o.id
    from outbox as o
    where o.id = any (array(
            select id
            from unread
            where owner is null and (created_at < $3 or place > $4)
            order by id
            limit $5
        ))
      and o.state = 'pending' and o.owner is null
    order by o.id
    for update of o skip locked
))
returning id;

-- name: sweep_runs
-- Delete some of the runs that ended before an instant, in the order of their start; except those
-- with a draft, and those that a history refers to. Returns one row for each.
delete from runs
where id = any (array(
    select r.id
    from runs as r
    where r.started_at < $1 and (r.finished_at < $1) is true and r.outcome is not null
      and not (select exists (select from drafts as d where d.run_id = r.id))
      and not (select exists (select from job_runs as l where l.id = r.occurrence))
      and not (select exists (select from heartbeat_runs as l where l.id = r.heartbeat_run))
    order by r.started_at, r.id
    limit $2
    for update of r skip locked
))
returning id;

-- name: lock_idle_sessions
-- Lock some sessions, of one run ($3) or of a deleted job ($4), in which nothing has happened since
-- an instant and nothing is waiting. The first condition matches the index. A concurrent start of
-- work changes the row, which is then checked again.
select s.key
from sessions as s
where split_part(s.key, ':', 3) in ('cron', 'heartbeat', 'subagent', 'delegate')
  and s.active_in < $1 and s.last_active_at < $1 and s.owner is null
  and (
      s.key ~ $3
      or s.key ~ $4
      and not (select exists (select from cron_jobs where id = split_part(s.key, ':', 4)))
  )
  and not (select exists (select from runs as r where r.session = s.key and r.outcome is null))
  and coalesce(
      (
          select r.finished_at
          from runs as r
          where r.session = s.key
          order by r.started_at desc, r.id desc
          limit 1
      ) < $1,
      true
  )
  and not (
      select exists (
          select from inbox as i
          where i.session = s.key and (i.state = 'pending' or i.state = 'waiting')
      )
  )
  and not (
      select exists (
          select from inbox as i
          where i.session = s.key and i.state = 'done' and i.kind = 'message'
            and i.outcome <> 'completed'
      )
  )
order by s.active_in, s.last_active_at, s.key
limit $2
for update of s skip locked;

-- name: forget_history
-- Delete some of the entries of locked sessions, in the order of the sessions.
delete from history
where id = any (array(
    select h.id
    from unnest($1::text[]) as forgotten (key)
    cross join lateral (
        select id
        from history
        where session = forgotten.key
        order by epoch, id
        limit $2
    ) as h
    limit $2
))
returning id;

-- name: forget_steps
-- Delete some of the steps of the runs in locked sessions: they contain what the history does.
delete from run_steps
where ctid = any (array(
    select one.ctid
    from runs as r
    cross join lateral (select ctid from run_steps where run_id = r.id offset 0) as one
    where r.session = any ($1::text[])
    limit $2
))
returning seq;

-- name: forget_sessions
-- Delete those of some locked sessions that have neither history nor steps any more.
delete from sessions as s
where s.key = any ($1::text[])
  and not (select exists (select from history where session = s.key))
  and not (
      select exists (
          select
          from runs as r
          cross join lateral (select from run_steps where run_id = r.id limit 1) as one
          where r.session = s.key
      )
  )
returning s.key;

-- name: sweep_requests
-- Delete some of the pairing requests that expired before an instant.
delete from pairing_requests
where ctid = any (array(
    select ctid
    from pairing_requests
    where expires_at < $1
    order by expires_at, channel, account, sender_id
    limit $2
    for update skip locked
))
returning sender_id;

-- name: sweep_incidents
-- Delete some of the problems with such keys that are older than an instant.
delete from incidents
where key = any (array(
    select key
    from incidents
    where since < $1
      and key like any ($2::text[])
    order by since, key
    limit $3
    for update skip locked
))
returning key;

-- name: sweep_message_counts
-- Delete some of the counts of messages from before an instant.
delete from message_counts
where id = any (array(
    select id from message_counts where at < $1 order by at limit $2 for update skip locked
))
returning id;
