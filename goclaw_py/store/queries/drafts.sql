-- Messages in chats that show a partial reply. ``runs.begin`` assigns them to other runs,
-- ``runs.finish`` ends them.

-- name: open
-- Store the draft of a running run; returns nothing if the run has ended. Locks the session, so
-- that the end of the run comes before the draft or includes it, and then the run, to see whether
-- it has ended. Repeating it changes nothing.
with run as (
    select r.id, r.inbox
    from (
        select key
        from sessions
        where key = (select session from runs where id = $1)
        for share
    ) as s
    cross join lateral (
        select id, inbox
        from runs
        where id = $1 and outcome is null and session = s.key
        offset 0
        -- Not for share: two callers that repeat this would wait for each other below.
        for no key update
    ) as r
), noted as (
    -- An end of the run that waits for these locks is then decided again, and finds the draft.
    update runs
    set has_draft = true
    where id = (select id from run) and not has_draft
), waiting as (
    select i.id, i.message ->> 'message_id' as message_id
    from run
    cross join lateral unnest(run.inbox) as row_id
    cross join lateral (select * from inbox where id = row_id offset 0) as i
    where i.run_id = run.id and i.finished_at is null
)
insert into drafts (
    run_id, inbox, channel, account, chat, thread, opened_at, opened_by, after_message
)
select
    run.id,
    array(select id from waiting order by id),
    $2, $3, $4, $5, $6, run.id,
    (
        select message_id
        from waiting
        where message_id is not null
        order by id
        limit 1
    )
from run
on conflict (run_id) do update set run_id = excluded.run_id
returning run_id;

-- name: posted
-- Store the channel's id of a draft that will still be finished.
update drafts
set external_id = $2
where run_id = $1
returning run_id;

-- name: exists
-- Whether a draft of this run or of a later one has this id, or an outgoing message finishes it.
with later as (
    select l.id
    from (select session, started_at, id from runs where id = $1) as f
    cross join lateral (
        select id
        from runs
        where session = f.session and (started_at, id) >= (f.started_at, f.id)
        order by started_at, id
        limit 10000
    ) as l
)
select exists (
    select from later
    where (select external_id from drafts where run_id = later.id) = $2
        or (
            select exists (
                select from outbox as o
                -- The index has the collation of the expression, not that of ids.
                where o.message ->> 'run_id' = later.id collate "default"
                  and o.message ->> 'draft' = $2
            )
        )
) as known;

-- name: own_messages
-- Return the ids of our own messages in a chat: recent outgoing messages, and drafts; with $4 those
-- in all chats of its account, with incoming ones. Sent messages have no index by chat, so only the
-- newest of all chats are searched.
select external_id
from outbox
where id > (select coalesce(max(id), 0) from outbox) - 5000
  and channel = $1 and account = $2 and (chat = $3 or $4::boolean) and external_id is not null
union
select external_id
from drafts
where channel = $1 and account = $2 and (chat = $3 or $4::boolean) and external_id is not null
union
select message ->> 'message_id'
from (
    -- Not by the place, which may be that of all rows.
    select * from inbox where id > (select coalesce(max(id), 0) from inbox) - 5000 offset 0
) as newest
where $4::boolean
  and channel = $1 and account = $2 and message ->> 'message_id' is not null;

-- name: newest_before
-- Return the ids of the newest messages that were sent to a chat until a time, or came in there;
-- with $5 in all chats of its account. Few of each: the newest id is wanted, and that of a growing
-- reply is older than its end.
(
    select external_id
    from outbox
    where id > (select coalesce(max(id), 0) from outbox) - 5000
      and channel = $1 and account = $2 and (chat = $3 or $5::boolean)
      and external_id is not null and finished_at <= $4
    order by id desc
    limit 20
)
union all
(
    select message ->> 'message_id'
    from (
        select * from inbox where id > (select coalesce(max(id), 0) from inbox) - 5000 offset 0
    ) as newest
    where channel = $1 and account = $2 and (message -> 'target' ->> 'chat' = $3 or $5::boolean)
      and message ->> 'message_id' is not null and received_at <= $4
    order by id desc
    limit 20
);

-- name: drafts
-- Return all drafts, the oldest first.
select run_id, channel, account, chat, thread, external_id
from drafts
order by opened_at, run_id;

-- name: abandoned
-- Delete the drafts of ended runs of which no message waits for another run; returns the result of
-- the messages, or of the run if it had none. Skips drafts that another caller is deleting.
with left_over as (
    select
        d.run_id,
        coalesce(
            (
                select i.outcome
                from unnest(d.inbox) as row_id
                cross join lateral (select outcome, id from inbox where id = row_id offset 0) as i
                order by i.outcome = 'cancelled' desc, i.id desc
                limit 1
            ),
            r.outcome
        ) as outcome,
        r.session
    from drafts as d
    cross join lateral (select session, outcome from runs where id = d.run_id offset 0) as r
    where r.outcome is not null
      and not exists (
          select
          from unnest(d.inbox) as row_id
          where (select state from inbox where id = row_id) <> 'done'
      )
    for update of d skip locked
)
delete from drafts as d
using left_over
where d.run_id = left_over.run_id and d.run_id = any (array(select run_id from left_over))
returning
    d.run_id, d.channel, d.account, d.chat, d.thread, d.external_id, d.after_message,
    coalesce(d.opened_by, d.run_id) as opened_by, left_over.session, left_over.outcome;
