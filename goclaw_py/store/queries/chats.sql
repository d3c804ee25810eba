-- Chats: decisions about groups, whether chats accept messages, and where people last wrote.

-- name: chats
-- Return the most recently seen chats before a position.
select channel, account, chat, peer, name, allowed, gone, first_seen_at, last_seen_at,
    unmentioned_at
from chats
where (last_seen_at, channel, account, chat) < ($2, $3, $4, $5)
order by last_seen_at desc, channel desc, account desc, chat desc
limit $1;

-- name: chat
-- Return one chat.
select channel, account, chat, peer, name, allowed, gone, first_seen_at, last_seen_at,
    unmentioned_at
from chats
where channel = $1 and account = $2 and chat = $3;

-- name: marked
-- Return the chats that have a decision or do not accept messages, the most recently seen first. It
-- uses an index with only these rows, because the total number of chats is large.
select channel, account, chat, peer, name, allowed, gone, first_seen_at, last_seen_at,
    unmentioned_at
from chats
where allowed is not null or gone <> ''
order by last_seen_at desc, channel desc, account desc, chat desc;

-- name: undecided
-- Count the groups of the places ($1, $2) that wait for a decision, except the chats ($3, $4, $5).
select count(*)
from unnest($1::text[], $2::text[]) as p (channel, account)
join chats as c
    on c.channel = p.channel collate "C" and c.account = p.account collate "C"
where c.peer = 'group' and c.allowed is null and c.gone = ''
  and not exists (
      select from unnest($3::text[], $4::text[], $5::text[]) as b (channel, account, chat)
      where (b.channel, b.account, b.chat) = (c.channel, c.account, c.chat)
  );

-- name: note
-- Store chats, in the order of their keys. A missing name does not overwrite the stored one.
insert into chats as c (
    channel, account, chat, peer, name, first_seen_at, last_seen_at, unmentioned_at
)
select
    s.channel, s.account, s.chat, s.peer, s.name, $6, $6,
    case when s.unmentioned then $6::timestamptz end
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $7::boolean[])
    as s (channel, account, chat, peer, name, unmentioned)
order by s.channel collate "C", s.account collate "C", s.chat collate "C"
on conflict (channel, account, chat) do update
set peer = excluded.peer,
    name = case excluded.name when '' then c.name else excluded.name end,
    last_seen_at = greatest(c.last_seen_at, excluded.last_seen_at),
    unmentioned_at = coalesce(excluded.unmentioned_at, c.unmentioned_at);

-- name: allow
-- Store the decision about a group, even if the group has not been seen yet.
insert into chats (channel, account, chat, peer, allowed, first_seen_at, last_seen_at)
values ($1, $2, $3, 'group', $4, $5, $5)
on conflict (channel, account, chat) do update
set allowed = excluded.allowed;

-- name: mark
-- Store whether a chat accepts messages; returns the chat if this changed. Chats that are not
-- stored count as accepting messages.
insert into chats as c (channel, account, chat, peer, gone, first_seen_at, last_seen_at)
select $1, $2, $3, $4, $5, $6, $6
where $5 <> '' or exists (
    select from chats where channel = $1 and account = $2 and chat = $3
)
on conflict (channel, account, chat) do update
set gone = excluded.gone
where c.gone <> excluded.gone
returning c.chat;

-- name: topic
-- Return one topic.
select channel, account, chat, thread, name, gone, notified
from topics
where channel = $1 and account = $2 and chat = $3 and thread = $4;

-- name: gone_topics
-- Return the topics that are closed or deleted, from an index with only these rows.
select channel, account, chat, thread, name, gone, notified
from topics
where gone <> ''
order by channel, account, chat, thread;

-- name: note_topic
-- Store a topic, with the name $5 if it has none or was renamed ($6), and the state $7 unless that
-- is null. Returns it if its state changed.
with before as (
    select name, gone, notified
    from topics
    where channel = $1 and account = $2 and chat = $3 and thread = $4
    for update
), noted as (
    insert into topics as t (channel, account, chat, thread, name, gone)
    select $1, $2, $3, $4, $5, coalesce($7, '')
    -- Read before the row is written: what this statement has changed is not seen by "for update".
    from (select count(*) as known from before) as found
    where found.known > 0 or $5 <> '' or coalesce($7, '') <> ''
    on conflict (channel, account, chat, thread) do update
    set name = case when $5 <> '' and ($6 or t.name = '') then $5 else t.name end,
        gone = coalesce($7, t.gone),
        notified = t.notified and coalesce($7, t.gone) <> ''
    returning gone
)
select noted.gone
from noted
where noted.gone <> coalesce((select gone from before), '');

-- name: mark_notified
-- Store that people were notified that a topic is gone; returns the topic unless that was stored
-- before.
update topics
set notified = true
where channel = $1 and account = $2 and chat = $3 and thread = $4 and gone <> '' and not notified
returning thread;

-- name: last_activity
-- Return where people last wrote, before a position, except for denied chats, and for those that do
-- not accept messages, or with $11 only these. With $12 only where an owner wrote last: somebody
-- approved as such or listed ($13, $14, $15; no id: everybody there). The order is that of the list
-- of sessions.
select s.channel, s.account, s.chat, s.thread, s.peer, s.agent, s.last_sender, s.last_heard_at
from sessions as s
where s.heard_in is not null and s.heard_in <= $4
  and (
      s.last_heard_at, s.channel collate "C", s.account collate "C", s.chat collate "C",
      coalesce(s.thread, '') collate "C", s.agent collate "C", s.last_sender collate "C"
  ) < ($4, $5::text, $6::text, $7::text, $8::text, $9::text, $10::text)
  and ($1::text is null or s.agent = $1)
  and (not $2 or s.peer = 'direct')
  and $11::boolean = coalesce((
      select case when c.allowed is false then not $11 else c.gone <> '' end
      from chats as c
      where c.channel = s.channel and c.account = s.account and c.chat = s.chat
  ), false)
  and (
      not $12::boolean
      or (
          -- No plain ``exists``: the planner would read all people at once.
          select exists (
              select from people as p
              where p.channel = s.channel and p.account = s.account
                and p.sender_id = s.last_sender and p.role = 'owner'
          )
      )
      or exists (
          select from unnest($13::text[], $14::text[], $15::text[]) as o (channel, account, sender)
          where o.channel = s.channel and o.account = s.account
            and (o.sender is null or o.sender = s.last_sender)
      )
  )
order by
    s.heard_in desc, s.last_heard_at desc, s.channel collate "C" desc, s.account collate "C" desc,
    s.chat collate "C" desc, coalesce(s.thread, '') collate "C" desc, s.agent collate "C" desc,
    s.last_sender collate "C" desc
limit $3;

-- name: asides
-- What was said in the chat of a session and is in no history, the newest $2 of each kind: commands
-- that were typed; messages that no run, job or heartbeat has written, except questions; those of
-- tool calls that wait, unless this session may answer its own; messages of failed runs among the
-- newest $2 runs.
with here as (
    select key, channel, account, chat, created_at
    from sessions
    where key = $1
)
select a.at, a.role, a.text, a.id, a.replaces, a.run_id, a.rich
from here
cross join lateral (
    (
        select
            received_at as at, 'user' as role, message ->> 'text' as text, external_id as id,
            null as replaces, null as run_id, false as rich, inbox.id as place
        from inbox
        where session = here.key and state = 'done' and kind = 'command'
          and message ->> 'press' is null
        order by inbox.id desc
        limit $2
    )
    union all
    (
        select
            created_at, 'assistant', message ->> 'text', external_id, message ->> 'draft', null,
            (message -> 'rich')::boolean, id
        from outbox
        where channel = here.channel and account = here.account and chat = here.chat
          and (session = here.key or session is null) and state = 'sent'
          and message ->> 'run_id' is null and occurrence is null and heartbeat_run is null
          and (alert is null or alert not like 'approval:%')
        order by id desc
        limit $2
    )
    union all
    (
        select o.created_at, 'assistant', o.text, o.external_id, null, null, false, o.id
        from (
            select id, session
            from approvals
            where decision is null
            order by expires_at desc
            limit $2
        ) as q
        cross join lateral (
            select id, created_at, external_id, message ->> 'text' as text
            from outbox
            where alert = 'approval:' || q.id and (state = 'sent') is true
              and channel = here.channel and account = here.account and chat = here.chat
              and (q.session <> here.key or message ->> 'buttons' is null)
            offset 0
        ) as o
    )
    union all
    (
        select o.created_at, 'assistant', o.text, o.external_id, o.draft, r.id, o.rich, o.id
        from (
            select id, outcome
            from runs
            where session = here.key
            order by started_at desc, id desc
            limit $2
        ) as r
        cross join lateral (
            select
                id, created_at, external_id, state, message ->> 'text' as text,
                message ->> 'draft' as draft, (message -> 'rich')::boolean as rich
            from outbox
            where message ->> 'run_id' = r.id
            order by id
            limit $2
        ) as o
        where r.outcome in ('failed', 'timed_out', 'lost', 'abandoned', 'rejected')
          and o.state = 'sent'
    )
) as a
where a.at >= here.created_at and a.text <> ''
order by a.at, a.role desc, a.place;
