-- Names of chats, topics, people and jobs, for people who read about them.

-- name: note
-- Store names, in the order of their keys. A guessed one replaces none.
insert into names as n (channel, account, id, name, username, search_text, seen_at, kind)
select s.channel, s.account, s.id, s.name, s.username, s.search_text, $7, s.kind
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $8::text[])
    as s (channel, account, id, name, username, search_text, kind)
order by s.channel collate "C", s.account collate "C", s.id collate "C"
on conflict (channel, account, id) do update
set name = excluded.name, username = excluded.username, search_text = excluded.search_text,
    seen_at = excluded.seen_at, kind = excluded.kind
where excluded.kind <> 'guessed';

-- name: names
-- Return the names of chats and people, and of topics where a thread ($4) is given.
select
    a.ordinal,
    case
        when a.thread is null then coalesce(nullif(n.name, ''), '@' || n.username)
        else t.name
    end as name
from unnest($1::text[], $2::text[], $3::text[], $4::text[])
    with ordinality as a (channel, account, id, thread, ordinal)
left join lateral (
    select name, username
    from names
    where channel = a.channel and account = a.account and id = a.id and a.thread is null
    offset 0
) as n on true
left join lateral (
    select name
    from topics
    where channel = a.channel and account = a.account and chat = a.id and thread = a.thread
    offset 0
) as t on true
where coalesce(nullif(n.name, ''), n.username, nullif(t.name, '')) is not null;

-- name: jobs
-- Return the names of jobs; of a deleted one the slug, as its last execution has it.
select a.id, coalesce(nullif(j.name, ''), j.slug, l.slug) as name
from unnest($1::text[]) as a (id)
left join lateral (select name, slug from cron_jobs where id = a.id offset 0) as j on true
left join lateral (
    select slug
    from job_runs
    where j.slug is null and job = a.id
    order by job desc, scheduled_at desc, id desc
    limit 1
) as l on true
where coalesce(j.slug, l.slug) is not null;

-- name: forget
-- Delete a name.
delete from names
where channel = $1 and account = $2 and id = $3
returning id;

-- name: sweep
-- Delete names that were last seen before an instant; titles are kept.
delete from names
where ctid = any (array(
    select ctid
    from names
    where seen_at < $1 and kind = 'seen'
    order by seen_at
    limit $2
    for update skip locked
))
returning id;
