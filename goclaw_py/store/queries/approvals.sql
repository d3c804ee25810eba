-- Questions of runs to people about their tool calls.

-- name: request
-- Store questions of runs that end, with the run above each that answers messages, works for a job
-- or is a background subagent, and the session that pays for that.
with recursive above as (
    select
        id as run_id, id, parent, task is not null as is_background,
        coalesce(payer, session) as session
    from unnest($1::text[]) as asking (run)
    cross join lateral (select * from runs where id = asking.run offset 0) as r
    union all
    select a.run_id, r.id, r.parent, r.task is not null, coalesce(r.payer, r.session)
    from above as a
    cross join lateral (select * from runs where id = a.parent offset 0) as r
    where not a.is_background
)
insert into approvals (
    id, run_id, root_run, session, agent, call_id, tool, arguments, uncertain, members, channel,
    account, chat, thread, asked_at, expires_at, context
)
select
    q.id, q.run_id, a.id, a.session, r.agent, q.call_id, q.tool, q.arguments, q.uncertain,
    q.members, q.channel, q.account, q.chat, q.thread, q.asked_at, q.expires_at,
    q.context
from jsonb_to_recordset($2::jsonb) as q (
    id text, run_id text, call_id text, tool text, arguments text, uncertain boolean,
    members boolean, channel text, account text, chat text, thread text, asked_at timestamptz,
    expires_at timestamptz, context jsonb
)
cross join lateral (select agent from runs where id = q.run_id offset 0) as r
join above as a on a.run_id = q.run_id and (a.parent is null or a.is_background)
on conflict (id) do nothing;

-- name: park
-- Let the messages of runs that end wait for the answers to their questions, if there are any
-- without one, with the messages that these runs have taken in. No attempt is counted.
with parked as (
    update inbox as i
    set state = 'waiting', run_id = null, attempts = greatest(i.attempts - 1, 0)
    where i.id = any (array(
        select unnest(r.inbox)
        from unnest($1::text[]) as one (id)
        cross join lateral (select inbox from runs where id = one.id offset 0) as r
    ))
      and i.run_id = any ($1::text[]) and i.finished_at is null
      and (
          select exists (
              select from approvals as a where a.root_run = i.run_id and a.decision is null
          )
      )
    returning i.id, i.session, i.last_run
)
update inbox as i
set state = 'waiting', last_run = parked.last_run
from parked
where i.session = parked.session and i.session = any (array(select session from parked))
  and i.state = 'pending' and i.joined = parked.id;

-- name: park_occurrences
-- Let the occurrences whose runs end wait: for the answers to the questions of these runs if one has
-- none, otherwise only for their session. Return those.
with parked as (
    select l.id, r.id as run_id, r.session
    from (
        select r.*
        from unnest($1::text[]) as ending (run)
        cross join lateral (
            select id, session, node, occurrence from runs where id = ending.run and outcome is null offset 0
        ) as r
        order by r.occurrence
    ) as r
    cross join lateral (
        select id from job_runs where id = r.occurrence and node = r.node offset 0 for update
    ) as l
)
update job_runs as l
set status = 'waiting', node = null, waits_for = parked.session,
    reason = case
        when exists (
            select from approvals as a where a.root_run = parked.run_id and a.decision is null
        ) then 'approval'
    end
from parked
where l.id = parked.id and l.id = any (array(select id from parked))
returning l.reason;

-- name: lock_session
-- Lock the session of a question.
select key
from sessions
where key = (select session from approvals where id = $1)
for update;

-- name: lock_occurrence
-- Lock the occurrence for which a run asked a question, before the question, as its end does.
select id
from job_runs
where id = (select occurrence from runs where id = (select root_run from approvals where id = $1))
for update;

-- name: decide
-- Answer a question in its locked session. $5: whether its time is over, and nobody answered.
update approvals
set decision = $2, decided_at = $3, decided_by = $4
where id = $1 and decision is null and (expires_at <= $3) = $5
returning *;

-- name: add_step
-- Add the answer to the steps of the run that asked.
insert into run_steps (run_id, seq, kind, payload)
select $1, coalesce(max(seq) + 1, 0), 'decision', $2
from run_steps
where run_id = $1;

-- name: grant
-- Allow a tool, in a session or ('') in all.
insert into tool_grants (agent, session, tool, granted_at, granted_by)
values ($1, $2, $3, $4, $5)
on conflict (agent, session, tool) do nothing;

-- name: release
-- Make the messages of a run pending again if all of its questions are answered.
update inbox
set state = 'pending'
where state = 'waiting' and last_run = $1
  and not exists (select from approvals where root_run = $1 and decision is null)
returning id;

-- name: released_subagent
-- Return a run if it is that of a background subagent whose questions are all answered.
select id
from runs
where id = $1 and task is not null
  and not exists (select from approvals where root_run = $1 and decision is null);

-- name: release_occurrence
-- Let the occurrence of a run wait only for its session if all questions of the run are answered.
update job_runs
set reason = null
where id = (select occurrence from runs where id = $1) and status = 'waiting' and reason = 'approval'
  and not exists (select from approvals where root_run = $1 and decision is null)
returning id;

-- name: approval
-- Return a question.
select *
from approvals
where id = $1;

-- name: find
-- Return the question with this id; if there is none, questions whose id is between a prefix and the last id
-- with this prefix. The whole id is the first of them.
select *
from approvals
where id >= $1 and id <= $2
order by id
limit case when exists (select from approvals where id = $1) then 1 else 4 end;

-- name: approvals
-- Return questions before a position, the newest first.
select *
from approvals
where (
      $2::text is null
      or session = $2
      or (channel, account, chat) = ($6, $7, $8) and thread is not distinct from $9
  )
  and (not $3::boolean or decision is null) and (asked_at, id) < ($4, $5)
order by asked_at desc, id desc
limit $1;

-- name: expired
-- Return questions whose time is over.
select id
from approvals
where decision is null and expires_at <= $1
order by expires_at
limit 100;

-- name: waiting_turns
-- Return the runs of a locked session whose messages wait for answers, the oldest question first.
select a.root_run as id
from approvals as a
cross join lateral (select occurrence, sender from runs where id = a.root_run offset 0) as r
where a.session = $1 and a.decision is null and r.occurrence is null
  and ($2::text is null or r.sender = $2)
group by a.root_run
order by min(a.asked_at), a.root_run;

-- name: stop
-- Answer the questions of runs that are stopped.
update approvals
set decision = 'stopped', decided_at = $2
where root_run = any ($1::text[]) and decision is null
returning *;

-- name: stop_of_occurrences
-- Answer the questions of occurrences that have ended: at $2, or as of the question.
update approvals
set decision = 'stopped', decided_at = coalesce($2, asked_at)
where root_run = any (array(select id from runs where occurrence = any ($1::text[])))
  and decision is null
returning *;

-- name: end_waiting
-- End the messages of stopped runs, and let them belong to these.
update inbox
set state = 'done', outcome = 'cancelled', reason = $3, finished_at = $2, run_id = last_run
where state = 'waiting' and last_run = any ($1::text[])
returning id, message, run_id, received_at;

-- name: is_granted
-- Return a row if a tool is allowed.
select tool
from tool_grants
where agent = $1 and session in ('', $2) and tool = $3;

-- name: grants
-- Return what is allowed.
select agent, session, tool, granted_at, granted_by
from tool_grants
order by agent, tool, session;

-- name: revoke
-- Allow a tool no longer.
delete from tool_grants
where agent = $1 and tool = $2 and session = $3
returning tool;

-- name: rename
-- Move the questions and what is allowed to the new keys of sessions.
with moved as (
    update approvals as a
    set session = move.new
    from unnest($1::text[], $2::text[]) as move (old, new)
    where a.session = move.old and a.session = any ($1::text[])
)
update tool_grants as g
set session = move.new
from unnest($1::text[], $2::text[]) as move (old, new)
where g.session = move.old and g.session = any ($1::text[])
  and not (
      select exists (
          select from tool_grants as other
          where other.agent = g.agent and other.tool = g.tool and other.session = move.new
      )
  );

-- name: retarget
-- Move the questions that were asked in a chat to its new id.
update approvals
set chat = $4
where channel = $1 and account = $2 and chat = $3;
