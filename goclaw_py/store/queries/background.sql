-- Group messages without a mention of the bot, kept as context.

-- name: note
-- Store messages in their order, and keep only as many of each session as each message specifies.
-- $1 are the messages.
with batch as (
    select
        b.*, b.message #>> '{target,channel}' as channel, b.message #>> '{target,account}' as account,
        b.message ->> 'external_id' as external_id
    from rows from (
        jsonb_to_recordset($1::jsonb) as (message jsonb, session text, keep integer)
    ) with ordinality as b (message, session, keep, ordinal)
), fresh as (
    select *
    from batch as b
    where not (
        select exists (
            select from unmentioned as u
            where u.channel = b.channel and u.account = b.account and u.external_id = b.external_id
        )
    )
), surplus as (
    delete from unmentioned as u
    where u.id = any (array(
        select surplus.id
        from (select session, min(keep) as keep, count(*) as new from fresh group by session) as f
        cross join lateral (
            select old.id
            from unmentioned as old
            where old.session = f.session
            order by old.id desc
            offset greatest(f.keep - f.new, 0)
        ) as surplus
    ))
)
insert into unmentioned (channel, account, external_id, session, message, sent_at, received_at)
select channel, account, external_id, session, message, (message ->> 'sent_at')::timestamptz, $2
from fresh
order by ordinal
on conflict do nothing;

-- name: amend
-- Replace the text of a stored message by that of its edit.
update unmentioned
set message = message || $4::jsonb
where channel = $1 and account = $2 and external_id = $3;

-- name: claim
-- Give a run $2 the messages of a session that were sent until $3 and not before $4, unless another
-- run has them that is running, or that ended in any way but a crash or a shutdown.
with free as (
    select u.id
    from unmentioned as u
    where u.session = $1 and u.sent_at <= $3 and u.received_at >= $4
      and (
          u.run_id is null or u.run_id = $2
          or (select r.outcome from runs as r where r.id = u.run_id) in ('interrupted', 'lost')
      )
    order by u.id
    for update of u skip locked
)
update unmentioned
set run_id = $2
where id = any (array(select id from free))
returning id, message;

-- name: of_session
-- Return the stored messages of a session.
select id, message, session, received_at, run_id
from unmentioned
where session = $1
order by id desc;

-- name: find
-- Return one message by its external id.
select id, message, session, received_at, run_id
from unmentioned
where channel = $1 and account = $2 and external_id = $3;

-- name: sweep
-- Delete some of the messages that arrived before an instant. Returns one row for each.
delete from unmentioned
where id = any (array(
    select id
    from unmentioned
    where received_at < $1
    order by received_at, id
    limit $2
    for update skip locked
))
returning id;

-- name: move
-- Move the stored messages of sessions to other sessions.
update unmentioned as u
set session = move.new
from unnest($1::text[], $2::text[]) as move (old, new)
where u.session = move.old and u.session = any ($1::text[]);
