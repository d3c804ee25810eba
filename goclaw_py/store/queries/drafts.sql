-- Messages in a chat that show a growing reply. Runs take them over in ``runs.begin`` and end them
-- in ``runs.finish``.

-- name: open
-- Enters the draft of a run that works; returns nothing if it does not. Locks the session, so that
-- the run ends before or sees the draft, and the run, to see whether it has ended meanwhile.
with run as (
    select r.id
    from runs as r
    join sessions as s on s.key = r.session
    where r.id = $1 and r.outcome is null
    for share of s, r
)
insert into drafts (run_id, inbox, channel, account, chat, thread, opened_at)
select
    run.id,
    array(select i.id from inbox as i where i.run_id = $1 and i.state = 'pending'),
    $2, $3, $4, $5, $6
from run
on conflict (run_id) do update set run_id = excluded.run_id
returning run_id;

-- name: posted
-- Keeps the channel's id of a draft that somebody will finish.
update drafts
set external_id = $2
where run_id = $1
returning run_id;

-- name: drafts
-- All drafts, the oldest first.
select run_id, channel, account, chat, thread, external_id
from drafts
order by opened_at, run_id;

-- name: forsaken
-- Forgets the drafts of ended runs of which no message waits for another run.
delete from drafts as d
using runs as r
where r.id = d.run_id and r.outcome is not null
  and not exists (select from inbox where id = any (d.inbox) and state = 'pending')
returning
    d.run_id, d.channel, d.account, d.chat, d.thread, d.external_id, r.session,
    r.outcome = 'cancelled'
        or exists (select from inbox where id = any (d.inbox) and outcome = 'cancelled') as stopped;
