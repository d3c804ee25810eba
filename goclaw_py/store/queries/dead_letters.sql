-- Incoming messages that failed, and edits of waiting messages.

-- name: lock_edited
-- Lock an edit and the message that it edits, in the order of their ids.
select id, channel, account, external_id, kind, state, run_id, outcome
from inbox
where id = any (array[
    $1, (select id from inbox where channel = $2 and account = $3 and external_id = $4)
])
order by id
for update;

-- name: amend
-- Put the text of an edit into a locked message.
update inbox
set message = message || $2::jsonb
where id = $1;

-- name: exists
-- Return a row if a message was stored and is not deleted yet.
select id
from inbox
where channel = $1 and account = $2 and external_id = $3;

-- name: last_version
-- Return the newest version of a message before a row: the message, or the last of its edits. Their
-- ids begin with its id and a colon.
select version.message
from (
    (
        select id, message
        from inbox
        where channel = $1 and account = $2 and external_id = $3
        offset 0
    )
    union all
    (
        select id, message
        from inbox
        where channel = $1 and account = $2
          and external_id > $3 || ':' and external_id < $3 || ';'
          and message ->> 'edits' = $3
        offset 0
    )
) as version
where version.id < $4
order by version.id desc
limit 1;

-- name: ended
-- Return the newest failed messages before a row that nobody has dismissed.
select
    id, message, run_id, received_at, finished_at, outcome, reason, session, agent, attempts,
    case when state = 'waiting' then last_run end as asking_run
from inbox
where state = 'done' and kind = 'message' and not dismissed
  and outcome in ('failed', 'timed_out', 'dropped', 'rejected', 'abandoned', 'lost')
  and id < $2
  -- use: selected
order by id desc
limit $1;

-- name: waiting
-- Return the newest messages that have not ended and that no run answers, before a row.
select
    id, message, run_id, received_at, finished_at, outcome, reason, session, agent, attempts,
    case when state = 'waiting' then last_run end as asking_run
from inbox
where state <> 'done' and kind = 'message' and run_id is null and id < $2
  -- use: selected
order by id desc
limit $1;

-- name: running
-- Return the newest messages that a run answers, before a row.
select
    id, message, run_id, received_at, finished_at, outcome, reason, session, agent, attempts,
    null as asking_run
from inbox
where state <> 'done' and kind = 'message' and run_id is not null and id < $2
  -- use: selected
order by id desc
limit $1;

-- name: dismissed
-- Return the newest failed messages before a row that an operator has dismissed.
select
    id, message, run_id, received_at, finished_at, outcome, reason, session, agent, attempts,
    case when state = 'waiting' then last_run end as asking_run
from inbox
where dismissed and kind = 'message' and id < $2
  -- use: selected
order by id desc
limit $1;

-- name: channels
-- Return the channels of stored messages and of seen chats. It skips from channel to channel in the
-- indexes.
with recursive
received as (
    (select channel from inbox order by channel limit 1)
    union all
    select next.channel
    from received as last
    cross join lateral (
        select channel from inbox where channel > last.channel order by channel limit 1
    ) as next
),
seen as (
    (select channel from chats order by channel limit 1)
    union all
    select next.channel
    from seen as last
    cross join lateral (
        select channel from chats where channel > last.channel order by channel limit 1
    ) as next
)
select channel from received
union
select channel from seen;

-- name: counts
-- Count the failed messages, the waiting ones, those of them that wait for an approval, and the
-- dismissed ones. $1 and $2 are those of the lists, and select all.
select
    (
        select count(*)
        from inbox
        where state = 'done' and kind = 'message' and not dismissed
          and outcome in ('failed', 'timed_out', 'dropped', 'rejected', 'abandoned', 'lost')
          and $1::bigint is not null and id < $2
          -- use: selected
    ) as ended,
    whole.waiting, whole.asking,
    (
        select count(*)
        from inbox
        where dismissed and kind = 'message' and id < $2
          -- use: selected
    ) as dismissed
from (
    select count(*) as waiting, count(*) filter (where state = 'waiting') as asking
    from inbox
    where state <> 'done' and kind = 'message' and run_id is null and id < $2
      -- use: selected
) as whole;

-- part: selected
-- The conditions of a filter. With an account, channel and account are those of the session, by
-- which nodes claim messages, as in the backlog of the outbox.
and ($3::text is null or $9::text is not null or channel = $3)
and ($4::text is null or (channel, account, message -> 'target' ->> 'chat') = ($4, $5::text, $6::text))
and ($7::timestamptz is null or received_at >= $7)
and ($8::text = '' or strpos(lower((message ->> 'text') collate "C"), $8) > 0)
and ($9::text is null or exists (
    select
    from sessions as s
    where s.key = inbox.session and s.account = $9 and ($3::text is null or s.channel = $3)
))

-- name: message
-- Return one row of the inbox.
select
    id, message, run_id, received_at, finished_at, outcome, reason, session, agent, attempts,
    case when state = 'waiting' then last_run end as asking_run
from inbox
where id = $1;

-- name: message_with_external_id
-- Return one row of the inbox, by the external id of its message.
select
    id, message, run_id, received_at, finished_at, outcome, reason, session, agent, attempts,
    case when state = 'waiting' then last_run end as asking_run
from inbox
where channel = $1 and account = $2 and external_id = $3;

-- name: messages_of_run
-- Return the messages that a run began with or took in, in the order of their arrival; another run
-- has answered those that it did not finish.
select
    id, message, run_id, received_at, finished_at, outcome, reason, session, agent, attempts,
    case when state = 'waiting' then last_run end as asking_run
from inbox
where id = any (array(select unnest(inbox) from runs where id = $1))
order by id;

-- name: retry
-- Make failed messages pending again, with all attempts available. Locks them in the order of their
-- ids.
with ended as (
    select id
    from inbox
    where id = any ($1::bigint[]) and state = 'done' and kind = 'message'
      and outcome <> 'completed'
    order by id
    for update
)
update inbox
set state = 'pending', attempts = 0, run_id = null, finished_at = null, outcome = null,
    reason = null, dismissed = false
from ended
where inbox.id = ended.id
returning inbox.id;

-- name: dismiss
-- Remove failed messages from the list of failed messages, and cancel waiting ones, in locked
-- sessions. A run that has a message ends it. Locks them in the order of their ids.
with listed as (
    select i.id
    from (select distinct id from unnest($1::bigint[]) as given (id) order by id) as wanted
    cross join lateral (
        select *
        from inbox
        where id = wanted.id
        limit 1
        for update
    ) as i
    where i.kind = 'message' and not i.dismissed
      and (
          i.state = 'done' and i.outcome <> 'completed'
          or i.state = 'pending' and i.run_id is null and i.joined is null and i.outcome is null
      )
)
update inbox
set dismissed = true, state = 'done', outcome = coalesce(outcome, 'cancelled'),
    reason = case when state = 'done' then reason else 'stopped' end,
    finished_at = coalesce(finished_at, $2)
where inbox.id = any (array(select id from listed))
returning inbox.id;
