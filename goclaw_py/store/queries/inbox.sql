-- Messages on their way to the agent.

-- name: accept
-- Stores a batch in its order; what is known falls out. Makes its sessions, notes the activity in
-- those that exist, and locks all of them in the order of their keys. A new session belongs to the
-- node at once if it has work to do. Stores no row at all, unless $4, if another session with work
-- does not belong to the node, or one without work to another node: there, rows wait for that node
-- whatever their outcome is. One statement, so that it needs no transaction of its own; a message
-- that somebody else stores meanwhile has no id. $3 holds rows of ``NewInbox``.
with me as (
    -- A session of a node whose lease has ended is anybody's: it gets no new one.
    select id from nodes where id = $1 and lease_until > $2 for key share
), batch as (
    select
        b.*,
        b.message #>> '{target,channel}' as channel,
        b.message #>> '{target,account}' as account,
        b.message ->> 'external_id' as external_id
    from rows from (
        jsonb_to_recordset($3::jsonb) as (
            message jsonb, session text, agent text, kind text, outcome text, reason text,
            received_at timestamptz
        )
    ) with ordinality as b (
        message, session, agent, kind, outcome, reason, received_at, ordinal
    )
), fresh as (
    -- The inner select cannot become a join: a join reads all of the inbox while the statistics of
    -- the table are older than its rows.
    select *
    from batch as b
    where not (
        select exists (
            select from inbox as i
            where i.channel = b.channel and i.account = b.account and i.external_id = b.external_id
        )
    )
), places as (
    -- The last one of each session that a person has said, if there is one.
    select distinct on (session collate "C")
        session as key, agent, channel, account,
        message #>> '{target,chat}' as chat,
        message #>> '{target,thread}' as thread,
        message ->> 'peer' as peer,
        case when not message ? 'source' then message #>> '{sender,id}' end as sender,
        bool_or(outcome is null) over (partition by session) as work,
        min(ordinal) over (partition by session) as first
    from fresh
    order by session collate "C", message ? 'source', ordinal desc
), entered as (
    insert into sessions as s (
        key, agent, channel, account, chat, thread, peer, last_sender, last_heard_at, created_at,
        last_active_at, owner, fence
    )
    select
        p.key, p.agent, p.channel, p.account, p.chat, p.thread,
        case when p.sender is not null then p.peer end, p.sender,
        case when p.sender is not null then $2::timestamptz end, $2, $2,
        case when p.work then me.id end,
        case when p.work and me.id is not null then 1 else 0 end
    from places as p
    left join me on true
    order by p.key collate "C"
    on conflict (key) do update
    set channel = excluded.channel,
        account = excluded.account,
        chat = excluded.chat,
        thread = excluded.thread,
        peer = coalesce(excluded.peer, s.peer),
        last_sender = coalesce(excluded.last_sender, s.last_sender),
        last_heard_at = greatest(s.last_heard_at, excluded.last_heard_at),
        last_active_at = greatest(s.last_active_at, excluded.last_active_at)
    returning s.key, s.owner, s.queue_mode
), stored as (
    -- Sorted after the join, so that all sessions are locked before the first row gets its id.
    insert into inbox (
        channel, account, external_id, session, agent, kind, state, message, received_at,
        finished_at, outcome, reason
    )
    select
        f.channel, f.account, f.external_id, f.session, f.agent, f.kind,
        case when d.done then 'done' else 'pending' end,
        f.message, f.received_at,
        case when d.done then f.received_at end,
        case when d.done then f.outcome end,
        case when d.done then f.reason end
    from fresh as f
    join entered as e on e.key = f.session
    cross join lateral (
        select f.outcome is not null and (e.owner is null or e.owner = $1) as done
    ) as d
    where $4 or not (
        select bool_or(
            case when places.work then entered.owner is distinct from $1
            else entered.owner <> $1 end
        )
        from places join entered using (key)
    ) is true
    order by f.ordinal
    on conflict (channel, account, external_id) do nothing
    returning id, channel, account, external_id
)
select
    f.ordinal, s.id, e.owner, e.queue_mode,
    -- Those that were there before this statement: it does not see its own. Once for each session.
    case when p.first is not null then array (
        select i.id from inbox as i where i.session = f.session and i.state = 'pending'
    ) end as before
from fresh as f
join entered as e on e.key = f.session
left join stored as s using (channel, account, external_id)
left join places as p on p.first = f.ordinal
order by f.ordinal;

-- name: accept_one
-- The same for one message that has not ended: a person who writes alone waits for this statement, and
-- most of its time would be spent on lists. Nothing is stored if the session is not the node's. It
-- claims a free session under the conditions of claim_sessions, unless the session was changed after
-- the statement began: the statement sees what waited before that. Locks the node only for a claim.
with before as (
    select
        exists (
            select from inbox as i where i.channel = $7 and i.account = $8 and i.external_id = $9
        ) as is_known,
        array (
            select i.id from inbox as i where i.session = $4 and i.state = 'pending'
        ) as waiting,
        found.ctid as version,
        found.owner
    from (values (true)) as one
    left join sessions as found on found.key = $4
), me as (
    select id
    from nodes
    where id = $1 and lease_until > $2
      and exists (select from before where owner is null and waiting = '{}')
      and not exists (select from runs where session = $4 and outcome is null and node <> $1)
    for key share
), entered as (
    insert into sessions as s (
        key, agent, channel, account, chat, thread, peer, last_sender, last_heard_at, created_at,
        last_active_at, owner, fence
    )
    select
        $4, $5, $7, $8, $10, $11, case when $13::text is not null then $12 end, $13,
        case when $13::text is not null then $2 end, $2, $2, me.id,
        case when me.id is null then 0 else 1 end
    from before
    left join me on true
    where not is_known
    on conflict (key) do update
    set channel = excluded.channel,
        account = excluded.account,
        chat = excluded.chat,
        thread = excluded.thread,
        peer = coalesce(excluded.peer, s.peer),
        last_sender = coalesce(excluded.last_sender, s.last_sender),
        last_heard_at = greatest(s.last_heard_at, excluded.last_heard_at),
        last_active_at = greatest(s.last_active_at, excluded.last_active_at),
        owner = coalesce(
            s.owner, case when s.ctid = (select version from before) then excluded.owner end
        ),
        fence = s.fence + case
            when s.owner is null and s.ctid = (select version from before) then excluded.fence
            else 0
        end
    returning s.owner, s.queue_mode
), stored as (
    insert into inbox (
        channel, account, external_id, session, agent, kind, state, message, received_at
    )
    select $7, $8, $9, $4, $5, $6, 'pending', $3, $2
    from entered
    where entered.owner = $1
    on conflict (channel, account, external_id) do nothing
    returning id
)
select 1 as ordinal, s.id, e.owner, e.queue_mode, before.waiting as before
from entered as e
cross join before
left join stored as s on true;

-- name: claim_sessions
-- Gives locked sessions to a node that lives, if they are free or their owner's lease has ended.
-- After an outage all leases have: nodes would take sessions from each other. A session in which
-- another node's run has not ended, or in which rows wait, waits for its recovery: its process may be
-- back first, and store what it has stopped. With $4 only those in which
-- nothing older waits: whoever takes those takes them from the start.
update sessions as s
set owner = $1, fence = s.fence + 1
where s.key = any ($2::text[])
  and s.owner is distinct from $1
  and exists (select from nodes where id = $1 and lease_until > $3 for key share)
  and not exists (
      select
      from nodes
      where id = s.owner
        and (lease_until > $3 or exists (select from inbox where session = s.key and state = 'pending'))
  )
  and not exists (select from runs where session = s.key and outcome is null and node <> $1)
  and not ($4 and exists (select from inbox where session = s.key and state = 'pending'))
returning s.key;

-- name: lock_waiting_sessions
-- Locks the sessions with pending rows that a node might claim. Those of an expired node wait for its
-- recovery: its rows come back counted and in order, and its process may be back first, and store
-- what it has stopped.
-- It skips from session to session in the index, so long queues cost no more than short ones.
with recursive waiting as (
    (select session from inbox where state = 'pending' order by session limit 1)
    union all
    select next.session
    from waiting as last
    cross join lateral (
        select session
        from inbox
        where state = 'pending' and session > last.session
        order by session
        limit 1
    ) as next
)
select s.key
from sessions as s
where s.key = any (array(select session from waiting))
  and (s.channel, s.account) in (select * from unnest($2::text[], $3::text[]))
  and s.owner is distinct from $1
  and not (select exists (select from nodes where id = s.owner))
  and not (
      select exists (
          select from runs where session = s.key and outcome is null and node <> $1
      )
  )
order by s.key
for update of s skip locked;

-- name: pending_of
-- The unfinished rows of all sessions of a node, without some; what crashed its run twice comes last,
-- with what that run had taken in. The ids are compared as sets: a join may take the square of the
-- backlog.
with fresh as (
    select i.id
    from sessions as s
    cross join lateral (
        select id from inbox where session = s.key and state = 'pending' offset 0
    ) as i
    where s.owner = $1
    except
    select unnest($2::bigint[])
)
select
    i.id, i.message, i.session, i.agent, i.kind, i.attempts, i.received_at, i.outcome, i.reason,
    i.joined, i.last_run, (select queue_mode from sessions where key = i.session) as queue_mode
from fresh
cross join lateral (select * from inbox where id = fresh.id offset 0) as i
order by
    coalesce(
        (select attempts from inbox as head where head.id = i.joined and head.state = 'pending'),
        i.attempts
    ) >= 2,
    i.id;

-- name: ended
-- Those of some rows that are done.
select id
from inbox
where id = any ($1::bigint[]) and state = 'done';

-- name: lock_sessions_of
-- Locks the sessions of those of some rows that are not done.
select key
from sessions
where key = any (array(
    select i.session
    from unnest($1::bigint[]) as given (id)
    cross join lateral (select session, state from inbox where id = given.id offset 0) as i
    where i.state = 'pending'
))
order by key
for update;

-- name: lock_sessions_named
-- Locks some sessions.
select key
from sessions
where key = any ($1::text[])
order by key
for update;

-- name: settle
-- Ends those of the rows that are not done, in locked sessions; with a node $5 none of a session
-- that another one owns.
with open as (
    select id
    from inbox
    where id = any ($1::bigint[]) and state = 'pending'
      and ((select owner from sessions where key = inbox.session) <> $5) is not true
    order by id
    for update
)
update inbox
set state = 'done', outcome = $2, reason = $3, finished_at = $4
where id = any (array(select id from open))
returning session;

-- name: stop
-- The same for messages that somebody has stopped, each named by its external id, and for rows $7
-- that a stop of everything has found, unless they were sent after $10 or not by $11. Of the latter, a
-- row that an unfinished run of the node $6 has, also taken in, is only marked: that run may have an
-- answer already. Its end ends the row; if it has none, the mark lets no other run begin with the row.
-- A row that was dropped before, with an outcome $8, is marked with that, and ends with its notice.
with found as (
    select
        i.id, one.outcome, one.reason,
        one.outcome is not null or i.is_running as is_marked
    from (
        select (
            select id
            from inbox
            where channel = s.channel and account = s.account and external_id = s.external_id
        ) as id, null as outcome, s.reason, null::timestamptz as until, null as sender
        from unnest($1::text[], $2::text[], $3::text[], $4::text[])
            as s (channel, account, external_id, reason)
        union all
        select e.id, e.outcome, e.reason, e.until, e.sender
        from unnest($7::bigint[], $8::text[], $9::text[], $10::timestamptz[], $11::text[])
            as e (id, outcome, reason, until, sender)
        order by 1
    ) as one
    cross join lateral (
        select
            id,
            one.until is not null and exists (
                select
                from runs
                where outcome is null and node = $6
                  and id = coalesce(
                      inbox.run_id, (select head.run_id from inbox as head where head.id = inbox.joined)
                  )
            ) as is_running
        from inbox
        where id = one.id and (state = 'pending' and kind = 'message') is true
          and ((select owner from sessions where key = inbox.session) <> $6) is not true
          and ((message ->> 'sent_at')::timestamptz > one.until) is not true
          and (
              coalesce(nullif(message ->> 'asker', ''), message #>> '{sender,id}') <> one.sender
          ) is not true
          -- One that is dropped, or marked, waits only for its end.
          and (one.until is null or outcome is null)
        offset 0
        for update
    ) as i
), open as (
    -- One that is named too is not marked, it ends.
    select distinct on (id) *
    from found
    order by id, is_marked
)
update inbox
set outcome = coalesce(open.outcome, 'cancelled'), reason = open.reason,
    state = case when open.is_marked then inbox.state else 'done' end,
    finished_at = case when not open.is_marked then $5::timestamptz end
from open
where inbox.id = open.id and inbox.id = any (array(select id from open))
returning inbox.id;

-- name: waiting_before
-- The pending messages of a locked session, with $2 those that came before this row.
select id
from inbox
where session = $1 and state = 'pending' and (kind = 'message') is true and (id >= $2) is not true;

-- name: waiting
-- The oldest messages of a session that are not done.
select
    id, message, run_id, received_at, finished_at, outcome, reason,
    case when state = 'waiting' then last_run end as asking_run
from inbox
where id = any (array(
    (select id from inbox where session = $1 and state = 'pending' offset 0)
    union all
    (select id from inbox where session = $1 and state = 'waiting' offset 0)
)) and kind = 'message'
order by id
limit $2;

-- name: unanswered
-- The newest messages of a session that ended otherwise than with an answer, and were not undone.
select
    id, message, run_id, received_at, finished_at, outcome, reason,
    case when state = 'waiting' then last_run end as asking_run
from inbox
where session = $1 and state = 'done' and kind = 'message' and outcome <> 'completed'
  and not exists (
      select from history as h where h.run_id = inbox.run_id and h.undone_at is not null
  )
order by id desc
limit $2;

-- name: chained_turns
-- Counts the turns in a row of a session, up to that of run $1 and at most $2, that only results of
-- subagents have begun, since a person was last heard there. Attempts at the same messages are one
-- turn; of turns at the same time that with the older message is the first. Each message by its
-- key: a list would be looked for in the whole inbox.
select count(distinct inbox) as turns
from (
    select inbox, bool_and(is_chained) over (order by started_at desc, inbox desc) as in_a_row
    from (
        select
            r.started_at, r.inbox,
            not exists (
                select from unnest(r.inbox) as one (id)
                where (select i.message ->> 'source' from inbox as i where i.id = one.id)
                    is distinct from 'subagent'
            ) as is_chained
        from runs as own
        join sessions as s on s.key = own.session
        cross join lateral (
            select started_at, inbox
            from runs
            where session = own.session and trigger = 'chat' and inbox <> '{}'
              and (outcome is null or outcome <> 'interrupted')
              and (reason is null or reason <> 'merged')
              and started_at <= own.started_at
              and (started_at < own.started_at or inbox <= own.inbox)
              and (s.last_heard_at is null or started_at >= s.last_heard_at)
            order by started_at desc, inbox desc
            limit $2
        ) as r
        where own.id = $1
    ) as lately
) as turns
where in_a_row;

-- name: lock_sessions
-- Locks some sessions of a node.
select key
from sessions
where key = any ($1::text[]) and (owner = $2) is true
order by key
for update;

-- name: release_sessions
-- Frees locked sessions in which nothing runs, and, unless $2, no message waits; tells in which, and
-- whether a time of a job waits for it.
update sessions as s
set owner = null
from unnest($1::text[]) as k (key),
    lateral (
        select exists (select from inbox where session = k.key and state = 'pending') as waits
    ) as w
where s.key = k.key and s.key = any ($1::text[])
  and ($2::boolean or not w.waits)
  and not (
      select exists (
          select from runs where session = s.key and outcome is null and node = s.owner
      )
  )
returning
    w.waits,
    exists (
        select from job_runs where status = 'waiting' and waits_for = s.key
    ) as is_wanted;
