-- Messages that a node is sending have a state of their own again.
drop view outbox_heads;
drop index outbox_unsent;
drop index outbox_waiting;
alter table outbox drop constraint outbox_owner;
alter table outbox drop constraint outbox_state;
update outbox set state = 'sending' where owner is not null;
alter table outbox
    add constraint outbox_state
        check (state in ('pending', 'sending', 'sent', 'dead', 'dropped')),
    add constraint outbox_owner check ((state = 'sending') = (owner is not null)),
    add constraint outbox_owner_fkey foreign key (owner) references nodes (id);
alter table outbox reset (fillfactor);
comment on column outbox.owner is 'The node that is sending it.';
create index outbox_unsent on outbox (channel, account, chat, id)
    where state in ('pending', 'sending');
comment on index outbox_unsent is 'Unsent messages of each chat, in order; the view outbox_heads.';
create index outbox_waiting on outbox (id) where state in ('pending', 'sending');
comment on index outbox_waiting is 'List of unsent messages.';
create index outbox_sending on outbox (owner) where owner is not null;
comment on index outbox_sending is 'What a node is sending.';

create view outbox_heads as
with recursive heads as (
    (
        select channel, account, chat, id, state, next_attempt_at
        from outbox
        where state in ('pending', 'sending')
        order by channel, account, chat, id
        limit 1
    )
    union all
    select head.*
    from heads as previous
    cross join lateral (
        select o.channel, o.account, o.chat, o.id, o.state, o.next_attempt_at
        from outbox as o
        where o.state in ('pending', 'sending')
          and (o.channel, o.account, o.chat)
            > (previous.channel, previous.account, previous.chat)
        order by o.channel, o.account, o.chat, o.id
        limit 1
    ) as head
)
select channel, account, chat, id, state, next_attempt_at
from heads;
comment on view outbox_heads is 'The oldest unsent message of each chat: the next one to send, which blocks those behind it.';

drop index runs_active;
drop index runs_of_agent;
drop index runs_of_sender;
drop index runs_of_trigger;
drop index runs_used;
drop index runs_long;
alter table runs
    drop column inbox,
    drop column has_draft;
create index runs_newest on runs (started_at, id);
comment on index runs_newest is 'List of runs, and usage of a day.';
create index runs_of_agent on runs (agent, started_at, id);
comment on index runs_of_agent is 'List of runs of an agent.';
create index runs_of_sender on runs (sender, started_at, id) where sender is not null;
comment on index runs_of_sender is 'List of runs that a person asked for.';
create index runs_of_trigger on runs (trigger, started_at, id);
comment on index runs_of_trigger is 'List of runs with a trigger.';
create index runs_active on runs (node, session) where outcome is null;
comment on index runs_active is 'Running runs of a node.';
create index runs_active_in_session on runs (session) where outcome is null;
comment on index runs_active_in_session is 'Running runs of a session.';
create index runs_talking on runs (agent) where outcome is null and trigger in ('chat', 'api');
comment on index runs_talking is 'Whether people talk to an agent: its heartbeat then waits.';
create index runs_at_work on runs
    using gist (tstzrange(started_at, greatest(started_at, finished_at), '[]'))
    where finished_at is not null;
comment on index runs_at_work is 'Runs that were running at a given time.';
create index runs_used on runs (started_at)
    include (
        agent, job, sender, model, trigger, lane, outcome,
        requests, input_tokens, output_tokens, cached_tokens, cost_usd, submitted_at, first_text_at
    )
    where outcome is not null;
comment on index runs_used is 'Usage, waiting times and counts over months, from the index alone.';

drop index inbox_asking;
alter table inbox reset (fillfactor);
create index inbox_of_asking_run on inbox (last_run) where state = 'waiting';
comment on index inbox_of_asking_run is 'Messages of a run that waits for an answer.';
create index inbox_of_run on inbox (run_id) where run_id is not null;
comment on index inbox_of_run is 'Messages that a run answers or has answered.';
