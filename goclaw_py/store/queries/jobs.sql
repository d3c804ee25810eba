-- Jobs, and the time zones of their owners.
--
-- A transaction that names a job locks its owner first, so that slugs stay unique and concurrent
-- transactions cannot exceed the limit.

-- name: lock_owner
-- Lock an owner, so that its jobs are named one at a time.
select pg_advisory_xact_lock(10, hashtext($1));

-- name: add
-- Store a job, unless its owner has one with this slug, or the maximum number of jobs in the states
-- that count. $1 is the job, $2 its owner, $3 its slug.
insert into cron_jobs (
    id, owner, slug, name, search_text, agent, kind, spec, maker, notify, channel, account, chat, state,
    revision, created_at, updated_at, next_run_at, running, last_run_at, last_status, last_error,
    failures, runs, coalesced, creator
)
select
    id, owner, slug, name, search_text, agent, kind, spec, maker, notify, channel, account, chat, state,
    revision, created_at, updated_at, next_run_at, running, last_run_at, last_status, last_error,
    failures, runs, coalesced, creator
from jsonb_to_record($1::jsonb) as j (
    id text, owner text, slug text, name text, search_text text, agent text, kind text, spec jsonb,
    maker text, notify text, channel text, account text, chat text, state text, revision integer,
    created_at timestamptz, updated_at timestamptz, next_run_at timestamptz, running text,
    last_run_at timestamptz, last_status text, last_error text, failures integer, runs bigint,
    coalesced bigint, creator text
)
where not exists (select from cron_jobs where owner = $2 and slug = $3)
  and ($5::integer is null or (
      select count(*)
      from (
          -- In the order of the index: one owner may have nearly all jobs, another one none.
          select from cron_jobs
          where owner = $2 and state = any ($4::text[])
          order by slug
          limit $5
      ) as c
  ) < $5)
returning id;

-- name: named
-- Return the owner's job with this slug.
select id
from cron_jobs
where owner = $1 and slug = $2;

-- name: job
-- Return one job.
select * from cron_jobs
where id = $1;

-- name: lock
-- Lock one job.
select * from cron_jobs
where id = $1
for update;

-- name: count
-- Return a row if an owner, which is locked, has fewer jobs in the states that count than the
-- maximum.
select
where (
    select count(*)
    from (
        select from cron_jobs
        where owner = $1 and state = any ($2::text[])
        order by slug
        limit $3
    ) as c
) < $3;

-- name: change
-- Store changes by people to locked jobs: definitions, creators, states, failures and next runs,
-- and in a move also owners; increments their revisions.
update cron_jobs as j
set owner = n.owner, slug = n.slug, name = n.name, search_text = n.search_text, agent = n.agent, kind = n.kind,
    spec = n.spec, maker = n.maker, notify = n.notify, channel = n.channel, account = n.account,
    chat = n.chat, state = n.state, failures = n.failures, next_run_at = n.next_run_at,
    updated_at = n.updated_at, revision = j.revision + 1
from jsonb_to_record($2::jsonb) as n (
    owner text, slug text, name text, search_text text, agent text, kind text, spec jsonb, maker text,
    notify text, channel text, account text, chat text, state text, failures integer,
    next_run_at timestamptz, updated_at timestamptz
)
where j.id = $1;

-- name: move_unreadable
-- Assign a locked job, whose definition this release cannot read, to an owner, under a slug; if it
-- reports its results to the chat ($6, $7, $8), replace that by $9. Everything else that another
-- release has stored there is unchanged.
update cron_jobs
set owner = $2, slug = $3, search_text = $4, updated_at = $5, revision = revision + 1,
    chat = case when (channel, account, chat) = ($6, $7, $8) then $9 else chat end,
    spec = case
        when jsonb_typeof(spec) <> 'object' then spec
        when
            (spec #>> '{target,channel}', spec #>> '{target,account}', spec #>> '{target,chat}')
            = ($6, $7, $8)
        then
            jsonb_set(spec, '{target,chat}', to_jsonb($9::text))
            || jsonb_build_object('slug', $3::text)
        else spec || jsonb_build_object('slug', $3::text)
    end
where id = $1;

-- name: delete
-- Delete a job and return it.
delete from cron_jobs
where id = $1
returning id;

-- name: forget
-- Delete the history of a job.
delete from job_runs
where job = $1;

-- name: with_slug
-- Return jobs with this slug, of one owner or of all; only as many as show that there are several.
select * from cron_jobs
where slug = $1 and ($2::text is null or owner = $2)
order by id
limit 4;

-- name: with_id
-- Return the job with this id; if there is none, jobs whose id is between a prefix and the last id
-- with this prefix. The whole id is the first of them.
select * from cron_jobs
where id >= $1 and id <= $2 and ($3::text is null or owner = $3)
order by id
limit case
    when exists (
        select from cron_jobs where id = $1 and ($3::text is null or owner = $3)
    ) then 1 else 4
end;

-- name: slugs
-- Return the slugs of an owner's jobs between a prefix and the last slug with this prefix.
select slug
from cron_jobs
where owner = $1 and slug >= $2 and slug <= $3;

-- name: all
-- Return a page of all jobs, in the order of their next runs, and their number, counted up to $3;
-- one row without a job if the page is empty. It uses indexes only.
select whole.total, j.*
from (
    select count(*) as total
    from (select from cron_jobs order by owner, slug limit $3) as c
) as whole
left join (
    select j.*
    from (
        select id
        from cron_jobs
        order by next_run_at, created_at, id
        limit $1 offset $2
    ) as page
    cross join lateral (select * from cron_jobs where id = page.id offset 0) as j
) as j on true
order by j.next_run_at nulls last, j.created_at, j.id;

-- name: all_of_owner
-- The same for the jobs of the owner $4.
select whole.total, j.*
from (
    select count(*) as total
    from (select from cron_jobs where owner = $4 order by slug limit $3) as c
) as whole
left join (
    select j.*
    from (
        select id
        from cron_jobs
        where owner = $4
        order by next_run_at, created_at, id
        limit $1 offset $2
    ) as page
    cross join lateral (select * from cron_jobs where id = page.id offset 0) as j
) as j on true
order by j.next_run_at nulls last, j.created_at, j.id;

-- name: all_of_state
-- The same for the jobs in the state $4, which must not be active: other states have an index.
select whole.total, j.*
from (
    select count(*) as total
    from (
        select from cron_jobs
        where state = $4 and state <> 'active'
        order by next_run_at, created_at, id
        limit $3
    ) as c
) as whole
left join (
    select j.*
    from (
        select id
        from cron_jobs
        where state = $4 and state <> 'active'
        order by next_run_at, created_at, id
        limit $1 offset $2
    ) as page
    cross join lateral (select * from cron_jobs where id = page.id offset 0) as j
) as j on true
order by j.next_run_at nulls last, j.created_at, j.id;

-- name: search
-- The same for the jobs that match a search. Null, an empty list and an empty text match
-- everything. Any text may match within names, so all jobs are read once. $16 is another order.
with found as (
    select id, next_run_at, created_at
      -- use: ordered
    from cron_jobs
    where ($4::text is null or owner = $4)
      and ($5::text is null or agent = $5)
      and ($6::text = '' or strpos(search_text, $6) > 0)
      and ($7::text[] = '{}' or state = any ($7))
      and ($8::text[] = '{}' or kind = any ($8))
      and ($9::text is null or notify = $9)
      and ($10::text is null or (channel, account, chat) = ($10, $11::text, $12::text))
      and ($13::timestamptz is null or created_at > $13)
      and ($14::timestamptz is null or created_at < $14)
      and ($15::timestamptz is null or next_run_at < $15)
), page as (
    select *
    from found
    order by title, last_run desc nulls last, next_run_at nulls last, created_at, id
    limit $1 offset $2
)
select whole.total, j.*
from (select least(count(*), $3) as total from found) as whole
left join (
    select page.title, page.last_run, j.*
    from page
    cross join lateral (select * from cron_jobs where id = page.id offset 0) as j
) as j on true
order by j.title, j.last_run desc nulls last, j.next_run_at nulls last, j.created_at, j.id;

-- name: search_of_owner
-- The same for the jobs of one owner.
with found as (
    select id, next_run_at, created_at
      -- use: ordered
    from cron_jobs
    where owner = $4
      and ($5::text is null or agent = $5)
      and ($6::text = '' or strpos(search_text, $6) > 0)
      and ($7::text[] = '{}' or state = any ($7))
      and ($8::text[] = '{}' or kind = any ($8))
      and ($9::text is null or notify = $9)
      and ($10::text is null or (channel, account, chat) = ($10, $11::text, $12::text))
      and ($13::timestamptz is null or created_at > $13)
      and ($14::timestamptz is null or created_at < $14)
      and ($15::timestamptz is null or next_run_at < $15)
), page as (
    select *
    from found
    order by title, last_run desc nulls last, next_run_at nulls last, created_at, id
    limit $1 offset $2
)
select whole.total, j.*
from (select least(count(*), $3) as total from found) as whole
left join (
    select page.title, page.last_run, j.*
    from page
    cross join lateral (select * from cron_jobs where id = page.id offset 0) as j
) as j on true
order by j.title, j.last_run desc nulls last, j.next_run_at nulls last, j.created_at, j.id;

-- part: ordered
-- What comes before the next run in another order: search_text is the slug and the name.
, case when $16::text = 'name' then
    coalesce(
        nullif(substr(search_text, strpos(search_text, E'\n') + 1), ''),
        split_part(search_text, E'\n', 1)
    )
end collate "C" as title,
case when $16::text = 'last_run' then last_run_at end as last_run

-- name: counts
-- Count the jobs that match a search by state, with the conditions of the search.
select state, count(*) as jobs
from cron_jobs
where ($1::text is null or owner = $1)
  and ($2::text is null or agent = $2)
  and ($3::text = '' or strpos(search_text, $3) > 0)
  and ($4::text[] = '{}' or state = any ($4))
  and ($5::text[] = '{}' or kind = any ($5))
  and ($6::text is null or notify = $6)
  and ($7::text is null or (channel, account, chat) = ($7, $8::text, $9::text))
  and ($10::timestamptz is null or created_at > $10)
  and ($11::timestamptz is null or created_at < $11)
  and ($12::timestamptz is null or next_run_at < $12)
group by state;

-- name: zone
-- Return the time zone that an owner has chosen.
select zone
from owner_zones
where owner = $1;

-- name: choose_zone
-- Store the time zone of an owner.
insert into owner_zones (owner, zone)
values ($1, $2)
on conflict (owner) do update set zone = excluded.zone;

-- name: forget_zone
-- Delete the time zone of an owner.
delete from owner_zones
where owner = $1;

-- name: lock_of_chat
-- Lock the jobs of the owners of a chat, and the jobs that report their results to it.
select *
from cron_jobs
where owner = any ($1::text[]) or (channel, account, chat) = ($2, $3, $4)
order by id
for update;

-- name: slugs_of
-- Return all slugs of an owner's jobs.
select slug
from cron_jobs
where owner = $1;

-- name: rename_in_log
-- Assign the history of a job to another owner.
update job_runs
set owner = $2
where job = $1;

-- name: move_zones
-- Assign the time zones of owners to the owners that replace them, unless these have chosen one.
with old as (
    delete from owner_zones
    using unnest($1::text[], $2::text[]) as move (old, new)
    where owner = move.old and owner = any ($1::text[])
    returning move.new as owner, zone
)
insert into owner_zones (owner, zone)
select owner, zone
from old
on conflict (owner) do nothing;
