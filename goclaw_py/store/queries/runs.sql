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

-- name: enter_sessions
-- Makes sessions that nobody owns, unless they exist, for a node that exists, and locks all, in the
-- order of their keys; but for those whose chat was given another id. Returns the owner of each.
insert into sessions as s (
    key, agent, channel, account, chat, thread, created_at, last_active_at
)
select distinct on (n.key collate "C")
    n.key, n.agent, n.channel, n.account, n.chat, n.thread, n.at, n.at
from unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[]
) with ordinality as n (key, agent, channel, account, chat, thread, at, ordinal)
where exists (select from nodes where id = $8 for key share)
  and not (select exists (select from moved_sessions where key = n.key))
order by n.key collate "C", n.ordinal
on conflict (key) do update set agent = s.agent
returning s.key, s.owner;

-- name: moved_to
-- Where a session is now whose chat was given another id.
select moved_to
from moved_sessions
where key = $1;

-- name: overdue
-- A node that nobody has declared dead and that has to renew its lease first.
select id
from nodes
where id = $1 and lease_until <= $2;

-- name: not_next
-- Of some messages, each given with its locked session, the sessions in which one is done, or was,
-- and is forgotten, or in which an older one is to be worked on that is not among them.
select distinct asked.session
from unnest($1::text[], $2::bigint[]) as asked (session, id)
where not coalesce((select i.state = 'pending' from inbox as i where i.id = asked.id), false)
   or (
       select exists (
           select from inbox as older
           where older.session = asked.session and older.state = 'pending'
             and (older.kind = 'message') is true and older.outcome is null
             and older.id < asked.id and older.id <> all ($2)
       )
   );

-- name: begin
-- Stores runs in sessions that are their node's own, with who has asked for them and for which job
-- they work, themselves or by a run above them; counts an attempt for their rows, and gives each the
-- draft that an earlier run for them left: of several the newest whose id is known.
-- Returns for each run a row with this and with what stands for older entries of the history, and
-- then one for every entry that is still read, the oldest first; nothing of a run whose session is
-- not the node's own, of a run for a time of a job, or for a heartbeat run, that is not claimed by the node,
-- of one whose rows are all done, of a background subagent that runs or has ended, or that was stored
-- before. One statement, so that a row never
-- counts an attempt of a run that does not exist, and so that it needs no other transaction. Notes
-- what was dropped before a run: whoever takes that up must not begin it after the run. $2 holds the
-- runs, $3 their sessions, $4 all their rows, those that were dropped too. Without $5 the commit does
-- not wait for the disk.
with not_durable as materialized (
    select set_config('synchronous_commit', 'off', true)
    where not $5::boolean
), asked as (
    select *
    from rows from (
        jsonb_to_recordset($2::jsonb) as (
            id text, session text, agent text, trigger text, lane text, parent text, model text,
            channel text, account text, chat text, thread text, started_at timestamptz,
            payer text, submitted_at timestamptz, inbox bigint[], occurrence text, heartbeat_run text,
            call_key text, task jsonb, dropped jsonb
        )
    ) with ordinality as a (
        id, session, agent, trigger, lane, parent, model, channel, account, chat, thread,
        started_at, payer, submitted_at, inbox, occurrence, heartbeat_run, call_key, task, dropped,
        ordinal
    )
), mine as (
    select s.*
    from (select distinct key from unnest($3::text[]) as k (key) order by key) as wanted
    cross join lateral (
        select key, owner, fence, epoch, summary, summarized_upto, pinned
        from sessions
        where key = wanted.key
        limit 1
        for update
    ) as s
    where s.owner = $1
), waiting as (
    -- Locked after all of their sessions: whoever has ended one meanwhile is seen. By their ids: a
    -- chat that is given another id takes them into another session.
    select i.id
    from (
        select distinct id
        from unnest($4::bigint[]) as w (id)
        where (select count(*) from mine) > 0
        order by id
    ) as wanted
    cross join lateral (
        select id, state, outcome
        from inbox
        where id = wanted.id
        limit 1
        for update
    ) as i
    -- One with an outcome is stopped or dropped, and waits only for its end.
    where i.state = 'pending' and i.outcome is null
), stored as (
    insert into runs (
        id, session, agent, trigger, lane, node, fence, epoch, parent, model, channel, account,
        chat, thread, started_at, payer, submitted_at, occurrence, heartbeat_run, call_key, task,
        inbox, has_draft, sender, job, follows
    )
    select
        a.id, a.session, a.agent, a.trigger, a.lane, $1, mine.fence, mine.epoch, a.parent, a.model,
        a.channel, a.account, a.chat, a.thread, a.started_at,
        -- Its chat may have been given another id since the run was asked for.
        nullif(
            coalesce(
                (
                    select moved_to
                    from moved_sessions
                    where key = a.payer and not exists (select from sessions where key = a.payer)
                ),
                a.payer
            ),
            a.session
        ),
        a.submitted_at, a.occurrence, a.heartbeat_run, a.call_key, a.task, a.inbox,
        exists (select from drafts where drafts.inbox && a.inbox),
        -- Each is found by its id.
        coalesce(
            (
                select
                    case i.message ->> 'source'
                        when 'subagent' then (
                            select sender from runs where id = substr(i.external_id, 10)
                        )
                        when 'api' then 'api'
                        else concat_ws(
                            '/', i.channel, i.account, i.message -> 'sender' ->> 'id'
                        )
                    end
                from inbox as i
                where i.id = a.inbox[1]
            ),
            (select sender from runs where id = a.parent)
        ),
        coalesce(
            (select job from job_runs where id = a.occurrence),
            (select job from runs where id = a.parent)
        ),
        -- Ids of runs are in the order of time.
        coalesce(
            -- Each row by its key: a list within the subquery would be looked for in the whole inbox
            -- while the statistics of the table are older than its rows.
            (
                select max((select i.last_run from inbox as i where i.id = one.id))
                from unnest(a.inbox) as one (id)
            ),
            (select max(r.id) from runs as r where r.occurrence = a.occurrence),
            (select max(r.id) from runs as r where r.heartbeat_run = a.heartbeat_run),
            (select max(r.id) from runs as r where r.call_key = a.call_key),
            (select max(r.id) from runs as r where r.session = a.session and a.task is not null)
        )
    from asked as a
    join mine on mine.key = a.session
    where (
        a.occurrence is null
        or exists (select from job_runs as l where l.id = a.occurrence and l.node = $1)
    ) and (
        -- By its id: who has it in hand has no index.
        a.heartbeat_run is null
        or (select l.node from heartbeat_runs as l where l.id = a.heartbeat_run) = $1
    ) and (
        cardinality(a.inbox) = 0
        or exists (select from waiting where waiting.id = any (a.inbox))
    ) and (
        a.task is null
        or coalesce(
            (
                select coalesce(r.outcome, '') in ('lost', 'interrupted')
                from runs as r
                where r.session = a.session
                order by r.started_at desc, r.id desc
                limit 1
            ),
            true
        )
    )
    order by a.ordinal
    on conflict (id) do nothing
    returning id, session, epoch, started_at, inbox, heartbeat_run, follows
), resumed as (
    -- Its agent was busy until now.
    update heartbeat_runs as l
    set status = 'running', detail = ''
    from stored
    where l.id = stored.heartbeat_run and l.id = any (array(select heartbeat_run from stored where heartbeat_run is not null))
      and l.status = 'deferred'
), begun as (
    select
        stored.*, asked.dropped, asked.ordinal, mine.summary, mine.pinned, mine.summarized_upto
    from stored
    join asked using (id)
    join mine on mine.key = stored.session
), answering as (
    select row_id as id, begun.id as run_id
    from begun
    cross join lateral unnest(begun.inbox) as row_id
    where row_id in (select id from waiting)
), passed as (
    update inbox as i
    set outcome = d.outcome, reason = d.reason
    from begun, jsonb_to_recordset(begun.dropped) as d (id bigint, outcome text, reason text)
    where i.id = d.id and i.run_id is null
      and i.id = any (array(select id from waiting))
), counted as (
    -- The list of ids lets the primary key find them, whatever the statistics say; a join might read
    -- all rows. They are locked above, so they are pending.
    update inbox as i
    set run_id = answering.run_id, last_run = answering.run_id, attempts = i.attempts + 1
    from answering
    where i.id = answering.id and i.id = any (array(select id from answering))
), active as (
    update sessions as s
    set last_active_at = greatest(s.last_active_at, last.at)
    from (select session, max(started_at) as at from begun group by session) as last
    where s.key = last.session and s.key = any (array(select session from begun))
), found as (
    -- A draft of several messages goes to the first run that answers one of them.
    select distinct on (d.run_id) d.run_id, d.external_id, d.opened_at, begun.id, begun.inbox
    from begun
    join drafts as d on d.inbox && begun.inbox
    order by d.run_id, begun.ordinal
), ranked as (
    select
        *,
        row_number() over (
            partition by id order by external_id is null, opened_at desc, run_id
        ) as place
    from found
), taken as (
    update drafts
    set run_id = ranked.id, inbox = ranked.inbox
    from ranked
    where drafts.run_id = ranked.run_id and ranked.place = 1
    returning
        drafts.run_id, drafts.external_id, drafts.after_message,
        coalesce(drafts.opened_by, drafts.run_id) as opened_by
), left_over as (
    -- No message waits for it any more, so it is closed as abandoned.
    update drafts
    set inbox = '{}'
    from ranked
    where drafts.run_id = ranked.run_id and ranked.place > 1
    returning ranked.id as run_id
)
select
    begun.id, taken.external_id as draft, taken.opened_by, taken.after_message,
    exists (select from left_over) as left_over, begun.summary, begun.pinned,
    array (
        select row_id
        from unnest(begun.inbox) as row_id
        where not exists (select from waiting where waiting.id = row_id)
    ) as ended,
    -- One that was stopped while it asked is not continued: it may have had another prompt.
    case
        when begun.follows is not null and not exists (
            select from approvals where root_run = begun.follows and decision = 'stopped'
        ) then begun.follows
    end as follows,
    null::bigint as place, null::text as role, null::text as text, null::bytea as native,
    null::text as format
from begun
left join taken on taken.run_id = begun.id
left join not_durable on true
union all
select
    begun.id, null, null, null, null, null, null, null, null, h.id, h.role, h.text, h.native,
    h.format
from begun
cross join lateral (
    select id, role, text, native, format
    from history
    where session = begun.session and epoch = begun.epoch and id > begun.summarized_upto
    order by id
) as h;

-- name: lost_times
-- Those of some times of jobs that are not claimed by a node.
select asked.id
from unnest($1::text[]) as asked (id)
where (select l.node from job_runs as l where l.id = asked.id) is distinct from $2;

-- name: lost_heartbeat_runs
-- Those of some heartbeat runs that a node does not have in hand.
select asked.id
from unnest($1::text[]) as asked (id)
where (select l.node from heartbeat_runs as l where l.id = asked.id) is distinct from $2;

-- name: begun_before
-- Tells who runs it and whether it has ended, and then what `begin` tells, of what is read of a
-- session's history now. $3 are its rows.
select
    r.node, r.outcome, d.external_id as draft,
    coalesce(d.opened_by, d.run_id) as opened_by, d.after_message, s.summary, s.pinned,
    array (
        select row_id
        from unnest($3::bigint[]) as row_id
        where (
            select i.state = 'pending' or i.run_id = r.id from inbox as i where i.id = row_id
        ) is not true
    ) as ended,
    case
        when r.follows is not null and not exists (
            select from approvals where root_run = r.follows and decision = 'stopped'
        ) then r.follows
    end as follows,
    h.id as place, h.role, h.text, h.native, h.format
from runs as r
join sessions as s on s.key = $2
left join lateral (select * from drafts where run_id = r.id offset 0) as d on true
left join lateral (
    select *
    from history
    where session = s.key and epoch = s.epoch and id > s.summarized_upto
    offset 0
) as h on true
where r.id = $1
order by h.id;

-- name: interrupted_work
-- Return what a run, and those that it follows, had called and used before they were interrupted, the
-- oldest first.
with recursive earlier as (
    select id, follows, 1 as depth
    from runs
    where id = $1
    union all
    select r.id, r.follows, e.depth + 1
    from earlier as e
    cross join lateral (select id, follows from runs where id = e.follows offset 0) as r
    where e.depth < 1000
)
select
    r.id, r.outcome, r.reason,
    r.tools, r.requests, r.input_tokens, r.output_tokens, r.cached_tokens, r.cost_usd
from earlier
cross join lateral (select * from runs where id = earlier.id offset 0) as r
where r.outcome in ('lost', 'interrupted')
order by earlier.depth desc;

-- name: steps
-- The steps of an interrupted run and of the interrupted runs that it continues, in order. A run for
-- a tool call is continued whatever its outcome: its caller does not know it. A run that was
-- cancelled for a further message had another prompt, and the messages of one that could not be
-- continued begin again if they are retried.
with recursive earlier as (
    select id, follows, 1 as depth
    from runs
    where id = $1 and ((outcome in ('lost', 'interrupted')) is true or call_key is not null)
      and (reason is null or reason not in ('merged', 'not_continued'))
    union all
    select r.id, r.follows, e.depth + 1
    from earlier as e
    cross join lateral (select * from runs where id = e.follows offset 0) as r
    where (r.outcome in ('lost', 'interrupted') or r.call_key is not null)
      and (r.reason is null or r.reason not in ('merged', 'not_continued')) and e.depth < 1000
)
select s.run_id, s.seq, s.kind, s.payload
from earlier
cross join lateral (select * from run_steps where run_id = earlier.id offset 0) as s
order by earlier.depth desc, s.seq;

-- name: note
-- Stores what is known of runs that work, and their new steps; returns the ids of those that do so
-- and are the node's. $2 holds the runs, $3 their ids, $4 to $7 the steps, $8 and $9 the messages that
-- runs have taken in.
with known as (
    select *
    from jsonb_to_recordset($2::jsonb) as (
        id text, tools jsonb, requests bigint, input_tokens bigint, output_tokens bigint,
        cached_tokens bigint, cost_usd numeric, model text
    )
), noted as (
    update runs as r
    set tools = known.tools, requests = coalesce(known.requests, r.requests),
        input_tokens = coalesce(known.input_tokens, r.input_tokens),
        output_tokens = coalesce(known.output_tokens, r.output_tokens),
        cached_tokens = coalesce(known.cached_tokens, r.cached_tokens),
        cost_usd = coalesce(known.cost_usd, r.cost_usd), model = coalesce(known.model, r.model)
    from known
    where r.id = known.id and r.id = any ($3::text[]) and r.node = $1 and r.finished_at is null
    returning r.id
), added as (
    insert into run_steps (run_id, seq, kind, payload)
    select s.run_id, s.seq, s.kind, s.payload
    from unnest($4::text[], $5::integer[], $6::text[], $7::bytea[]) as s (run_id, seq, kind, payload)
    join noted on noted.id = s.run_id
    on conflict (run_id, seq) do nothing
), taken_in as (
    update inbox as i
    set joined = (
        select min(row_id)
        from runs as r
        cross join lateral unnest(r.inbox) as row_id
        where r.id = t.run_id
          and (select own.finished_at is null from inbox as own where own.id = row_id)
    )
    from unnest($8::text[], $9::bigint[]) as t (run_id, id)
    join noted on noted.id = t.run_id
    where i.id = t.id and i.id = any ($9::bigint[]) and i.finished_at is null
      and i.state <> 'waiting' and i.run_id is null
)
select id
from noted;

-- name: lock_sessions_of_runs
-- Locks the sessions of some runs, in the order of their keys, and tells whose both are. Locking the
-- sessions alone is enough: nobody writes a run without it, but for the recovery, which ends it
-- under the run's own lock.
select
    r.*, s.owner, s.fence as session_fence,
    (select exists (select from nodes where id = r.node)) as node_exists
from (
    select r.*
    from unnest($1::text[]) as one
    cross join lateral (
        select id, session, node, fence, outcome, error, occurrence, heartbeat_run
        from runs
        where id = one
        offset 0
    ) as r
    order by r.session
) as r
cross join lateral (
    select owner, fence from sessions where key = r.session limit 1 for update
) as s;

-- name: finish
-- Ends runs that have not ended, in their locked sessions, with all that belongs to their ends:
-- the draft of each that one of its messages finishes, or whose id nobody knows, unless it waits
-- for the run that answers the same messages (no draft can be opened meanwhile), not for a person
-- who approves a call; the unfinished rows that it began with or has taken in, or, if it was
-- interrupted, those that it began with are free again, an attempt taken back; history and outbox
-- rows, in the given order. $1 holds the runs, $2 their ids.
-- With a node $15, locks the sessions, and ends only the runs of which everything else is known: those
-- of this node, in sessions that it still owns, without a draft, a job or a heartbeat. A draft that is
-- opened meanwhile changes the run, so it is seen. Returns the runs that ended, and whether a draft is
-- left over that nothing finishes.
with asked as (
    select *
    from jsonb_to_recordset($1::jsonb) as (
        id text, outcome text, finished_at timestamptz, reason text, error text, requests bigint,
        input_tokens bigint, output_tokens bigint, cached_tokens bigint, cost_usd numeric,
        model text, tools jsonb, first_text_at timestamptz, taken_in bigint[], notes text[],
        asked_at timestamptz
    )
), mine as (
    select s.*
    from (
        -- If one run of a session has to go the long way, all of them do, in their order.
        select r.session as key
        from unnest($2::text[]) as one
        cross join lateral (
            select session, has_draft or num_nonnulls(occurrence, heartbeat_run) > 0 as has_more
            from runs
            where id = one
            offset 0
        ) as r
        where $15::text is not null
        group by r.session
        having not bool_or(r.has_more)
        order by r.session
    ) as wanted
    cross join lateral (
        select key, owner, fence
        from sessions
        where key = wanted.key
        limit 1
        for update
    ) as s
    where s.owner = $15
), ended as (
    update runs as r
    set outcome = a.outcome, finished_at = a.finished_at, reason = a.reason, error = a.error,
        requests = coalesce(a.requests, r.requests),
        input_tokens = coalesce(a.input_tokens, r.input_tokens),
        output_tokens = coalesce(a.output_tokens, r.output_tokens),
        cached_tokens = coalesce(a.cached_tokens, r.cached_tokens),
        cost_usd = case when a.requests is null then r.cost_usd else a.cost_usd end,
        model = coalesce(a.model, r.model), tools = coalesce(a.tools, r.tools),
        first_text_at = a.first_text_at, inbox = r.inbox || a.taken_in, notes = a.notes
    from asked as a
    -- Not ``outcome is null``: that would let all runs in progress be read.
    where r.id = a.id and r.id = any ($2::text[]) and r.finished_at is null
      and (
          $15::text is null
          or r.node = $15 and not r.has_draft
          and exists (select from mine where mine.key = r.session and mine.fence = r.fence)
      )
    returning
        r.id, r.session, r.epoch, r.outcome, r.reason, r.finished_at, r.inbox, a.taken_in,
        coalesce(a.asked_at, r.submitted_at, r.started_at) as asked_at
), messages as (
    select *
    from unnest($9::text[], $10::text[], $11::text[], $12::text[], $13::jsonb[])
        with ordinality as m (run_id, channel, account, chat, message, ordinal)
), ends_of_drafts as (
    select
        d.run_id,
        d.external_id is not null and not exists (
            select from messages as m
            where m.run_id = d.run_id and m.message ->> 'draft' = d.external_id
        ) as left_over,
        ended.outcome = 'interrupted' and ended.reason is distinct from 'approval' and exists (
            select from inbox where id = any (d.inbox) and finished_at is null
        ) as waits
    from drafts as d
    join ended on ended.id = d.run_id
), forgotten as (
    delete from drafts as d
    using ends_of_drafts as e
    where d.run_id = e.run_id and not e.waits and not e.left_over
), answered as (
    -- Those that it has taken in belong to no other run.
    update inbox as i
    set state = 'done', outcome = ended.outcome, reason = ended.reason,
        finished_at = ended.finished_at, run_id = ended.id
    from ended
    where i.id = any (array(select unnest(inbox) from ended where outcome <> 'interrupted'))
      and (i.run_id = ended.id or i.run_id is null and i.id = any (ended.taken_in))
      and i.finished_at is null and i.state <> 'waiting' and ended.outcome <> 'interrupted'
), freed as (
    update inbox as i
    set run_id = null, attempts = greatest(i.attempts - 1, 0)
    from ended
    where i.id = any (array(select unnest(inbox) from ended where outcome = 'interrupted'))
      and i.run_id = ended.id and i.finished_at is null and ended.outcome = 'interrupted'
), remembered as (
    insert into history (session, epoch, role, text, native, format, run_id, at, files)
    select
        ended.session, ended.epoch, e.role, e.text, e.native, e.format, ended.id,
        case e.role when 'user' then ended.asked_at else ended.finished_at end, e.files
    from unnest($3::text[], $4::text[], $5::text[], $6::bytea[], $7::text[], $8::jsonb[])
        with ordinality as e (run_id, role, text, native, format, files, ordinal)
    join ended on ended.id = e.run_id
    order by e.ordinal
), said as (
    insert into outbox (
        channel, account, chat, message, session, occurrence, heartbeat_run, alert, created_at,
        next_attempt_at
    )
    select
        m.channel, m.account, m.chat, m.message, ended.session, m.message ->> 'occurrence',
        m.message ->> 'heartbeat_run', m.message ->> 'alert', ended.finished_at, ended.finished_at
    from messages as m
    join ended on ended.id = m.run_id
    order by m.ordinal
    returning id
)
select
    ended.id, exists (select from ends_of_drafts where left_over and not waits) as left_over,
    told.said
from ended
left join (
    select case when exists (select from said) then pg_notify($14, '') end as said
) as told on true;

-- name: summarize
-- Lets a summary stand for a history up to one of its entries, for a run that has not ended, in its
-- locked session; unless that was reset since the run began, another summary stands for as much, or
-- there is no such entry any more.
update sessions as s
set summary = $2, summarized_upto = $3, summaries = s.summaries + 1
from runs as r
where r.id = $1 and r.outcome is null and s.key = r.session and s.epoch = r.epoch
  and s.summarized_upto < $3
  and exists (
      select from history as h
      where h.id = $3 and h.session = s.key and h.epoch = s.epoch
  );

-- name: remember
-- Appends to a session's history while none of these runs is in progress, in the given order.
insert into history (session, epoch, role, text, native, format, files, at, run_id)
select $1, $2, e.role, e.text, e.native, e.format, e.files, e.at, e.run_id
from unnest(
    $3::text[], $4::text[], $5::bytea[], $6::text[], $7::jsonb[], $8::timestamptz[], $9::text[]
) with ordinality as e (role, text, native, format, files, at, run_id, ordinal)
order by e.ordinal;

-- name: reset
-- Begins a fresh history, without what was said before. A run that began before writes to the old one.
with forgotten as (
    delete from unmentioned
    where session = $1
), asked_again as (
    delete from tool_grants
    where session = $1
)
update sessions
set epoch = epoch + 1, last_active_at = greatest(last_active_at, $2), summary = '',
    summarized_upto = 0, summaries = 0, pinned = '{}'
where key = $1;

-- name: pin
-- Keeps what a conversation must not forget, for a run that works, in its locked session; unless
-- that was reset since the run began. Its chat may have been given another id meanwhile.
update sessions as s
set pinned = $2
from runs as r
where r.id = $3 and r.outcome is null and s.key = r.session and s.epoch = r.epoch
  and (s.key = $1 or s.key = (select moved_to from moved_sessions where key = $1))
returning s.key;

-- name: choose_mode
-- Keeps the queue mode of a session; null goes back to that of the settings.
update sessions
set queue_mode = $2
where key = $1;
