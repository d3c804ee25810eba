-- A message that is answered writes fewer index entries: a column that changes while a message waits
-- or a run is in progress is in no index, so the new row version fits on the same page (a HOT update),
-- and indexes for pages get a run when it has ended.
--
-- Rewrites the rows of runs that answered messages, and builds seven indexes: about a minute for a
-- million runs and messages (docs/scaling.md).

-- Incoming messages

-- A run knows its messages instead of the messages being indexed by their run.
alter table runs
    add column inbox bigint[] not null default '{}',
    add column has_draft boolean not null default false;
comment on column runs.inbox is 'The messages that it answers or has answered: ids of inbox.';
comment on column runs.has_draft is 'A message that shows its partial reply was opened for it (drafts).';

-- Dropped before the rows of runs are rewritten, so that this writes fewer index entries.
drop index runs_newest;
drop index runs_of_agent;
drop index runs_of_sender;
drop index runs_of_trigger;
drop index runs_active;
drop index runs_active_in_session;
drop index runs_talking;
drop index runs_at_work;
drop index runs_used;

update runs
set inbox = answered.ids
from (
    select run_id, array_agg(id order by id) as ids
    from inbox
    where run_id is not null
    group by run_id
) as answered
where runs.id = answered.run_id;
update runs
set has_draft = true
where id in (select run_id from drafts);

drop index inbox_of_run;
drop index inbox_of_asking_run;
create index inbox_asking on inbox (id) where state = 'waiting';
comment on index inbox_asking is 'Messages whose run waits for an answer. Few, so they are not indexed by their run.';
alter table inbox set (fillfactor = 70);

-- Runs

create index runs_active on runs (session) where outcome is null;
comment on index runs_active is 'Runs in progress.';
create index runs_of_agent on runs (agent, started_at, id) where outcome is not null;
comment on index runs_of_agent is 'List of the ended runs of an agent.';
create index runs_of_sender on runs (sender, started_at, id)
    where outcome is not null and sender is not null;
comment on index runs_of_sender is 'List of the ended runs that a person asked for.';
create index runs_of_trigger on runs (trigger, started_at, id) where outcome is not null;
comment on index runs_of_trigger is 'List of the ended runs with a trigger.';
-- The index includes all summed columns, so that the table is not read: its rows contain tool calls and
-- are ten times as large.
create index runs_used on runs (started_at, id)
    include (
        agent, job, sender, model, trigger, lane, outcome,
        requests, input_tokens, output_tokens, cached_tokens, cost_usd, submitted_at, first_text_at
    )
    where outcome is not null;
comment on index runs_used is 'List of ended runs; usage, waiting times and counts over months, from the index alone.';
-- If the clock was set back, a run may end before it began.
create index runs_long on runs
    using gist (tstzrange(started_at, greatest(started_at, finished_at), '[]'))
    where finished_at - started_at > interval '1 minute';
comment on index runs_long is 'Runs of more than a minute that were running at a given time. Shorter ones are found by their start.';

-- Outgoing messages

-- The owner says which messages are being sent: a state of its own would be in the condition of every
-- index, so each claim would write all of them.
drop view outbox_heads;
drop index outbox_unsent;
drop index outbox_waiting;
drop index outbox_sending;
alter table outbox drop constraint outbox_owner;
alter table outbox drop constraint outbox_state;
-- A claim locks its node; checking the reference again for each row would cost as much as the claim.
alter table outbox drop constraint outbox_owner_fkey;
update outbox set state = 'pending' where state = 'sending';
alter table outbox
    add constraint outbox_state check (state in ('pending', 'sent', 'dead', 'dropped')),
    add constraint outbox_owner check (owner is null or state = 'pending');
alter table outbox set (fillfactor = 70);
comment on column outbox.owner is 'The node that is sending it; null: it waits, or has ended.';
create index outbox_unsent on outbox (channel, account, chat, id) where state = 'pending';
comment on index outbox_unsent is 'Unsent messages of each chat, in order; the view outbox_heads.';
create index outbox_waiting on outbox (id) where state = 'pending';
comment on index outbox_waiting is 'List of unsent messages, and of those that a node is sending.';

-- It skips from chat to chat in the index, so a chat with a long queue costs no more than others.
create view outbox_heads as
with recursive heads as (
    (
        select channel, account, chat, id, owner, next_attempt_at
        from outbox
        where state = 'pending'
        order by channel, account, chat, id
        limit 1
    )
    union all
    select head.*
    from heads as previous
    cross join lateral (
        select o.channel, o.account, o.chat, o.id, o.owner, o.next_attempt_at
        from outbox as o
        where o.state = 'pending'
          and (o.channel, o.account, o.chat)
            > (previous.channel, previous.account, previous.chat)
        order by o.channel, o.account, o.chat, o.id
        limit 1
    ) as head
)
select channel, account, chat, id, owner, next_attempt_at
from heads;
comment on view outbox_heads is 'The oldest unsent message of each chat: the next one to send, which blocks those behind it.';
