-- A chat that was given another id. Locks as everybody else does: nodes, then sessions in the order
-- of their keys, then what is in them.

-- name: lock_moves
-- Allow one move at a time.
lock table moved_sessions in share row exclusive mode;

-- name: lock_nodes
-- Keep all nodes: a session may change its owner only while both nodes exist.
select id
from nodes
order by id
for key share;

-- name: sessions_of
-- Return the sessions of a chat.
select key, agent, thread, created_at
from sessions
where channel = $1 and account = $2 and chat = $3
order by key;

-- name: lock_sessions
-- Create missing sessions, and lock all of them in the order of their keys.
insert into sessions as s (
    key, agent, channel, account, chat, thread, created_at, last_active_at
)
select k.key, k.agent, $1, $2, $3, k.thread, k.created_at, k.created_at
from unnest($4::text[], $5::text[], $6::text[], $7::timestamptz[])
    as k (key, agent, thread, created_at)
order by k.key collate "C"
on conflict (key) do update set agent = s.agent
returning s.key, s.owner, s.fence, s.epoch, s.summary, s.summarized_upto, s.pinned;

-- name: end_runs
-- End the runs of a node in a locked session that it loses.
update runs
set outcome = 'lost', finished_at = $3, error = $4
where session = $1 and node = $2 and outcome is null
returning id;

-- name: realign_runs
-- Move the running runs of a locked session to the session that replaces it: those of its owner
-- keep their claim, and those of its current history write to the history that is read then.
update runs
set fence = case when node = $2 and fence = $3 then $4 else fence end,
    epoch = case when epoch = $5 then $6 else epoch end
where session = $1 and outcome is null;

-- name: merge_history
-- Makes one history of what two sessions remember since their last resets: first what a summary
-- stands for, then the rest, in the order in which runs ended: their entries stay together. Tells where the last one is that a summary stands for.
with taken as (
    delete from history
    where (session = $1 and epoch = $2) or (session = $3 and epoch = $4)
    returning *, id <= case session when $1 then $6::bigint else $7::bigint end as summarized
), put as (
    insert into history (session, epoch, role, text, native, format, run_id, at, files)
    select $3, $5, role, text, native, format, run_id, at, files
    from taken
    order by
        summarized desc, max(at) over (partition by coalesce(run_id, id::text)), id
    returning id
)
select coalesce(max(id), 0) as upto
from (
    select id
    from put
    order by id
    limit (select count(*) from taken where summarized)
) as summarized;

-- name: move_old_history
-- Move the history before the last reset.
update history
set session = $2
where session = $1;

-- name: merge_sessions
-- Merge the data of one locked session into the other one.
update sessions as s
set owner = $3,
    fence = $4,
    epoch = $5,
    created_at = least(s.created_at, o.created_at),
    last_active_at = greatest(s.last_active_at, o.last_active_at),
    queue_mode = coalesce(s.queue_mode, o.queue_mode),
    summary = $6,
    summarized_upto = $7,
    summaries = s.summaries + o.summaries,
    pinned = $8,
    peer = coalesce(s.peer, o.peer),
    last_sender = case
        when o.last_heard_at > s.last_heard_at then o.last_sender
        else coalesce(s.last_sender, o.last_sender)
    end,
    last_heard_at = greatest(s.last_heard_at, o.last_heard_at)
from sessions as o
where o.key = $1 and s.key = $2;

-- name: remove_session
-- Delete an empty session.
delete from sessions
where key = $1;

-- name: remember_moves
-- Store the new keys of sessions for callers with old keys, after any number of moves.
with before as (
    update moved_sessions
    set moved_to = move.new
    from unnest($1::text[], $2::text[]) as move (old, new)
    where moved_sessions.moved_to = move.old and moved_sessions.key <> move.new
), back as (
    delete from moved_sessions
    where key = any ($2::text[])
)
insert into moved_sessions (key, moved_to)
select old, new
from unnest($1::text[], $2::text[]) as move (old, new)
on conflict (key) do update set moved_to = excluded.moved_to;

-- name: rename_in_inbox
-- Move the messages of sessions that are waiting or may be retried.
update inbox
set session = move.new
from unnest($1::text[], $2::text[]) as move (old, new)
where id = any (array(
    select waits.id
    from unnest($1::text[]) as moved (key)
    cross join lateral (
        (select id from inbox where session = moved.key and state = 'pending' offset 0)
        union all
        (select id from inbox where session = moved.key and state = 'waiting' offset 0)
        union all
        (
            select id
            from inbox
            where session = moved.key and state = 'done' and kind = 'message'
              and outcome <> 'completed'
            offset 0
        )
    ) as waits
)) and session = move.old;

-- name: rename_in_runs
-- Move the runs of sessions.
update runs
set session = move.new
from unnest($1::text[], $2::text[]) as move (old, new)
where session = move.old and session = any ($1::text[]);

-- name: rename_payers
-- Rename the sessions that pay for runs of other sessions.
update runs
set payer = move.new
from unnest($1::text[], $2::text[]) as move (old, new)
where payer = move.old and payer = any ($1::text[]);

-- name: rename_waits
-- Rename the sessions for which occurrences of jobs wait.
update job_runs
set waits_for = move.new
from unnest($1::text[], $2::text[]) as move (old, new)
where status = 'waiting' and waits_for = move.old;

-- name: retarget_sessions
-- Set the new chat as the target of the remaining sessions, which are not named after their chat.
update sessions
set chat = $4
where channel = $1 and account = $2 and chat = $3
returning key;

-- name: retarget_inbox
-- Send answers to messages of sessions to the new chat. Message ids are not valid there.
update inbox
set message = jsonb_set(
    message - 'message_id' - 'reply_to', '{target,chat}', to_jsonb($2::text)
)
where id = any (array(
    select waits.id
    from unnest($3::text[]) as moved (key)
    cross join lateral (
        (select id from inbox where session = moved.key and state = 'pending' offset 0)
        union all
        (select id from inbox where session = moved.key and state = 'waiting' offset 0)
        union all
        (
            select id
            from inbox
            where session = moved.key and state = 'done' and kind = 'message'
              and outcome <> 'completed'
            offset 0
        )
    ) as waits
)) and message #>> '{target,chat}' = $1;

-- name: retarget_runs
-- Set the new chat in running runs, and in those of sessions.
update runs
set chat = $4
where channel = $1 and account = $2 and chat = $3
  and (outcome is null or session = any ($5::text[]))
returning id;

-- name: retarget_outbox
-- Send unsent messages to the new chat; locks them in the order of their ids. Message ids are not
-- valid there, so they are neither replies nor edits of drafts.
with unsent as (
    select id
    from outbox
    where id = any (array(
        select id
        from outbox
        where channel = $1 and account = $2 and chat = $3 and state = 'pending'
        order by channel, account, chat, id
    )) and state = 'pending'
    order by id
    for update
)
update outbox
set chat = $4,
    message = jsonb_set(
        message - 'reply_to' - 'draft' - 'lost', '{target,chat}', to_jsonb($4::text)
    ),
    session = coalesce(
        (
            select move.new
            from unnest($5::text[], $6::text[]) as move (old, new)
            where move.old = outbox.session
        ),
        outbox.session
    )
from unsent
where outbox.id = unsent.id and outbox.id = any (array(select id from unsent))
returning outbox.id;

-- name: drop_drafts
-- Delete the drafts in the old chat, which cannot be finished from the new one.
delete from drafts
where channel = $1 and account = $2 and chat = $3
returning run_id;

-- name: move_request
-- Move the access request of a group to its new id, unless that has one.
update pairing_requests as p
set sender_id = $4, chat = $4
where channel = $1 and account = $2 and sender_id = $3 and peer = 'group'
  and not exists (
      select from pairing_requests as o
      where o.channel = $1 and o.account = $2 and o.sender_id = $4
  )
returning p.id;

-- name: drop_request
-- Delete the access request of a group under its old id, if the new id has another one.
delete from pairing_requests
where channel = $1 and account = $2 and sender_id = $3 and peer = 'group'
returning id;

-- name: move_topics
-- Move the topics of the old chat to the new one; existing topics of the new one are kept.
with old as (
    delete from topics
    where channel = $1 and account = $2 and chat = $3
    returning thread, name, gone, notified
), put as (
    insert into topics (channel, account, chat, thread, name, gone, notified)
    select $1, $2, $4, thread, name, gone, notified
    from old
    on conflict (channel, account, chat, thread) do nothing
)
select thread from old;

-- name: move_chat
-- Merge the old chat into the new one; a decision about the new one is kept.
with old as (
    delete from chats
    where channel = $1 and account = $2 and chat = $3
    returning peer, name, allowed, gone, first_seen_at, last_seen_at, unmentioned_at
)
insert into chats as c (
    channel, account, chat, peer, name, allowed, gone, first_seen_at, last_seen_at, unmentioned_at
)
select $1, $2, $4, peer, name, allowed, gone, first_seen_at, last_seen_at, unmentioned_at
from old
on conflict (channel, account, chat) do update
set name = case c.name when '' then excluded.name else c.name end,
    allowed = coalesce(c.allowed, excluded.allowed),
    first_seen_at = least(c.first_seen_at, excluded.first_seen_at),
    last_seen_at = greatest(c.last_seen_at, excluded.last_seen_at),
    unmentioned_at = greatest(c.unmentioned_at, excluded.unmentioned_at)
returning chat;
