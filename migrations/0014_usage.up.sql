-- Who asked for a run, and for which job it works, itself or for a run above it: what was used is
-- added up by them, long after the message and the row of the job's log are gone.

-- Null for what nobody asked for and for what works for no job. A sender is told as
-- `channel/account/id`, whoever asks over the API as `api`.
alter table runs
    add column sender text collate "C",
    add column job    text collate "C";

-- The runs that are there already, as far as it is known of them.
update runs as r
set job = l.job
from cron_run_logs as l
where l.id = r.occurrence;

with asked as (
    select distinct on (run_id) run_id, channel, account, message
    from inbox
    where run_id is not null
    order by run_id, id
)
update runs as r
set sender = case a.message ->> 'source'
    when 'subagent' then null
    when 'api' then 'api'
    else a.channel || '/' || a.account || '/' || (a.message -> 'sender' ->> 'id')
end
from asked as a
where a.run_id = r.id;

with recursive above as (
    select id as run, parent as root
    from runs
    where parent is not null
    union all
    select above.run, r.parent
    from above
    join runs as r on r.id = above.root
    where r.parent is not null
)
update runs as r
set sender = root.sender, job = root.job
from above
join runs as root on root.id = above.root and root.parent is null
where r.id = above.run and num_nonnulls(root.sender, root.job) > 0;

-- Runs that bring a subagent's result into its chat.
update runs as r
set sender = asked.sender
from inbox as i
join runs as asked on asked.id = substr(i.external_id, length('subagent:') + 1)
where i.run_id = r.id and i.message ->> 'source' = 'subagent' and r.sender is null;

-- Usage is added up over months at a time. With all that is added up in the index the table is not
-- read: its rows hold tool calls, and are ten times as large. A run gets in when it ends.
create index runs_used on runs (started_at)
    include (
        agent, job, sender, model, trigger, lane,
        requests, input_tokens, output_tokens, cached_tokens, cost_usd
    )
    where outcome is not null;
