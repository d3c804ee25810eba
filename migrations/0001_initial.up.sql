-- The first schema. The comments are stored in the database (psql: \d+ TABLE) and become docs/schema.md
-- (`make schema-page`); a heading `-- == Feature ==` begins a part of that page.
--
-- Keys are compared byte by byte (collate "C"): they are ids of other systems, and prefix searches can
-- use the ordinary index. There are millions of finished rows but few open ones, so each query for open
-- rows has a partial index.

-- == Cluster ==
-- The gateway processes on this database: their leases, the requests between them, shared lanes.

create table nodes (
    id          text        collate "C" primary key,
    host        text        not null,
    pid         integer     not null,
    release     text        not null,
    started_at  timestamptz not null,
    lease_until timestamptz not null,
    state       jsonb       not null default '{}'
);
comment on table nodes is 'Gateway processes. A row is removed when the process ends or another node has recovered its work.';
comment on column nodes.id is 'New for every process start.';
comment on column nodes.release is 'Version of goclaw_py.';
comment on column nodes.lease_until is 'Other nodes may take over the work of this node after this time, unless it is renewed.';
comment on column nodes.state is 'What the node reports about itself, for status pages and other nodes.';

create table leases (
    name  text   collate "C" primary key,
    owner text   collate "C" references nodes (id),
    fence bigint not null default 0
);
comment on table leases is 'Named locks that one node holds at a time, for example for the connection of a channel account.';
comment on column leases.owner is 'The node that holds the lease; null if it is free.';
comment on column leases.fence is 'Fencing token: grows with every new owner.';
create index leases_owned on leases (owner) where owner is not null;
comment on index leases_owned is 'Leases of a node, to release them.';

create table node_calls (
    id       bigint      generated always as identity primary key,
    node     text        collate "C" not null references nodes (id) on delete cascade,
    question text        not null,
    asked_at timestamptz not null,
    answer   text
);
comment on table node_calls is 'Requests from one node to another (ADR 20). Rows live for minutes.';
comment on column node_calls.node is 'The node that has to answer.';
comment on column node_calls.question is 'The request, as JSON.';
comment on column node_calls.answer is 'The answer, as JSON; null while there is none.';
create index node_calls_open on node_calls (node, id) where answer is null;
comment on index node_calls_open is 'Requests that a node has not answered.';
create index node_calls_by_age on node_calls (asked_at);
comment on index node_calls_by_age is 'Deletion of old requests.';

create table lane_slots (
    id      bigint  generated always as identity primary key,
    lane    text    collate "C" not null,
    node    text    collate "C" not null references nodes (id) on delete cascade,
    granted boolean not null default false
);
comment on table lane_slots is 'Slots of lanes whose limit counts for the whole cluster, and the queue for them.';
comment on column lane_slots.id is 'Slots are granted in this order.';
comment on column lane_slots.node is 'The node that uses the slot or waits for it.';
comment on column lane_slots.granted is 'True: the node uses the slot. False: it waits.';
create index lane_slots_in_order on lane_slots (lane, granted, id);
comment on index lane_slots_in_order is 'Used slots of a lane, and the next one to grant.';
create index lane_slots_of_node on lane_slots (node);
comment on index lane_slots_of_node is 'Slots of a node that is removed.';

-- == Sessions ==
-- Conversations with agents, and their stored history.

create table sessions (
    key             text        collate "C" primary key,
    agent           text        not null,
    channel         text,
    account         text,
    chat            text,
    thread          text,
    created_at      timestamptz not null,
    last_active_at  timestamptz not null,
    owner           text        collate "C" references nodes (id),
    fence           bigint      not null default 0,
    epoch           integer     not null default 0,
    queue_mode      text,
    peer            text,
    last_sender     text,
    last_heard_at   timestamptz,
    summary         text        not null default '',
    summarized_upto bigint      not null default 0,
    summaries       integer     not null default 0,
    pinned          text[]      not null default '{}',
    active_in       timestamptz generated always as (
        date_bin('10 seconds', last_active_at, timestamptz '2000-01-01 00:00:00+00')
    ) stored,
    heard_in        timestamptz generated always as (
        date_bin('10 seconds', last_heard_at, timestamptz '2000-01-01 00:00:00+00')
    ) stored,
    constraint sessions_target_is_whole
        check (num_nonnulls(channel, account, chat) in (0, 3)),
    constraint sessions_queue_mode
        check (queue_mode in ('queue', 'followup', 'interrupt', 'collect', 'steer')),
    constraint sessions_peer check (peer in ('direct', 'group')),
    constraint sessions_heard_is_whole
        check (num_nonnulls(peer, last_sender, last_heard_at) in (0, 3))
-- Every message and every run updates its session. The changed columns are in no index, so the new row
-- version fits on the same page and no index is written.
) with (autovacuum_vacuum_scale_factor = 0.05, fillfactor = 50);
comment on table sessions is 'Conversations. One node at a time works on a session; its messages are answered in their order.';
comment on column sessions.key is 'Begins with agent:AGENT:; the spec (SESS) lists the forms.';
comment on column sessions.channel is 'Where replies go, with account, chat and thread; null for sessions without a chat.';
comment on column sessions.owner is 'The node that works on it; null if any node may.';
comment on column sessions.fence is 'Fencing token: grows with every new owner. Writes with an older one are refused.';
comment on column sessions.epoch is 'Grows with every reset. Only history of the current epoch is read.';
comment on column sessions.queue_mode is 'What happens with a message that arrives during a run; null: as configured.';
comment on column sessions.peer is 'Kind of the chat in which a person wrote last.';
comment on column sessions.last_sender is 'The person who wrote last; null in sessions without a person.';
comment on column sessions.last_heard_at is 'When that was.';
comment on column sessions.summary is 'Replaces the older part of the history in prompts; empty: there is none.';
comment on column sessions.summarized_upto is 'The last row of history that the summary replaces.';
comment on column sessions.summaries is 'How often it was summarized.';
comment on column sessions.pinned is 'Facts that every summary has to keep.';
comment on column sessions.active_in is 'last_active_at in steps of ten seconds: indexed, and most updates do not change it.';
comment on column sessions.heard_in is 'last_heard_at in steps of ten seconds.';
create index sessions_owned on sessions (owner) where owner is not null;
comment on index sessions_owned is 'Sessions of a node.';
create index sessions_active on sessions (active_in);
comment on index sessions_active is 'List of sessions, most recently active first.';
create index sessions_heard on sessions (heard_in) where heard_in is not null;
comment on index sessions_heard is 'Where people wrote last: targets of heartbeat alerts.';
-- Sessions of chats are excluded, because their number is unlimited and they are never deleted.
create index sessions_passing on sessions (active_in)
    where split_part(key, ':', 3) in ('cron', 'heartbeat', 'subagent', 'delegate');
comment on index sessions_passing is 'Old sessions that are no chats, to delete them.';

create table history (
    id        bigint      generated always as identity primary key,
    session   text        collate "C" not null references sessions (key) on delete cascade,
    epoch     integer     not null,
    role      text        not null,
    text      text        not null,
    native    bytea,
    format    text,
    run_id    text        collate "C",
    at        timestamptz not null,
    undone_at timestamptz,
    files     jsonb,
    constraint history_role check (role in ('user', 'assistant'))
);
comment on table history is 'What was said in sessions, as the agent reads it again.';
comment on column history.epoch is 'sessions.epoch when it was said; others are not read. Undone entries have -1 - epoch.';
comment on column history.text is 'As plain text.';
comment on column history.native is 'As the agent library stores it, with tool calls; null: text is all.';
comment on column history.format is 'Name and version of the encoding of native.';
comment on column history.run_id is 'The run that wrote it. In the copy of a fork: the run that wrote the original.';
comment on column history.undone_at is 'When /undo removed it from the conversation; null: it was not undone.';
comment on column history.files is 'Files of the workspace that came or went with it: kind, path, name, mime. Null: none.';
create index history_of_session on history (session, epoch, id);
comment on index history_of_session is 'History of a session, in order.';
create index history_of_run on history (run_id, id) where run_id is not null;
comment on index history_of_run is 'What a run has said.';

create table moved_sessions (
    key      text collate "C" primary key,
    moved_to text collate "C" not null
);
comment on table moved_sessions is 'Old keys of sessions whose chat was given another id, for messages and jobs that still use them.';
comment on column moved_sessions.moved_to is 'The key of the session now.';

-- == Incoming messages ==
-- Messages from chats until they are answered.

create table inbox (
    id          bigint      generated always as identity primary key,
    channel     text        collate "C" not null,
    account     text        collate "C" not null,
    external_id text        collate "C" not null,
    session     text        collate "C" not null,
    agent       text        not null,
    kind        text        not null,
    state       text        not null,
    message     jsonb       not null,
    attempts    integer     not null default 0,
    run_id      text        collate "C",
    received_at timestamptz not null,
    finished_at timestamptz,
    outcome     text,
    reason      text,
    dismissed   boolean     not null default false,
    last_run    text        collate "C",
    joined      bigint,
    constraint inbox_known unique (channel, account, external_id),
    constraint inbox_kind check (kind in ('message', 'command')),
    constraint inbox_state check (state in ('pending', 'waiting', 'done')),
    constraint inbox_attempts check (attempts >= 0),
    constraint inbox_done_has_an_end
        check ((state = 'done') = (outcome is not null and finished_at is not null))
) with (autovacuum_vacuum_scale_factor = 0.02);
comment on table inbox is 'Incoming messages, in the order of arrival. Kept after their end, to deduplicate redeliveries.';
comment on column inbox.external_id is 'The id that the channel gives the message, unique within channel and account.';
comment on column inbox.kind is 'message: for the agent. command: answered by the gateway.';
comment on column inbox.state is 'waiting: its run has asked a person about a tool call (approvals).';
comment on column inbox.attempts is 'Runs that began for it, without those that a shutdown interrupted.';
comment on column inbox.run_id is 'The run that answers it or has answered it.';
comment on column inbox.joined is 'The message whose run has taken in this one: the run that continues it has it too.';
comment on column inbox.outcome is 'How it ended, as in runs.outcome.';
comment on column inbox.reason is 'Why it ended like that, if it was not completed.';
comment on column inbox.dismissed is 'An operator has seen that it failed: it is not listed any more.';
comment on column inbox.last_run is 'A run of it that a crash or shutdown interrupted: the next run is told its tool calls.';
comment on index inbox_known is 'Deduplication: whether a message was stored before.';
create index inbox_pending on inbox (session, id) where state = 'pending';
comment on index inbox_pending is 'Pending messages of a session, in order.';
create index inbox_open on inbox (id) where state <> 'done' and kind = 'message';
comment on index inbox_open is 'List of unfinished messages.';
create index inbox_waiting on inbox (agent) where state = 'pending' and kind = 'message';
comment on index inbox_waiting is 'Whether messages wait for an agent: its heartbeat then waits.';
create index inbox_of_asking_run on inbox (last_run) where state = 'waiting';
comment on index inbox_of_asking_run is 'Messages of a run that waits for an answer.';
create index inbox_of_run on inbox (run_id) where run_id is not null;
comment on index inbox_of_run is 'Messages that a run answers or has answered.';
create index inbox_unanswered on inbox (session, id)
    where state = 'done' and kind = 'message' and outcome <> 'completed';
comment on index inbox_unanswered is 'Messages of a session that ended without an answer.';
create index inbox_failed on inbox (id) include (outcome)
    where state = 'done' and kind = 'message' and not dismissed
        and outcome in ('failed', 'timed_out', 'dropped', 'rejected', 'abandoned', 'lost');
comment on index inbox_failed is 'List and number of failed messages, from the index alone.';

create index inbox_received on inbox (received_at) include (agent)
    where message ->> 'source' is distinct from 'subagent';
comment on index inbox_received is 'Number of messages that people and programs sent, from the index alone.';

create table unmentioned (
    id          bigint      generated always as identity primary key,
    channel     text        collate "C" not null,
    account     text        collate "C" not null,
    external_id text        collate "C" not null,
    session     text        collate "C" not null,
    message     jsonb       not null,
    sent_at     timestamptz not null,
    received_at timestamptz not null,
    run_id      text        collate "C",
    constraint unmentioned_known unique (channel, account, external_id)
) with (autovacuum_vacuum_scale_factor = 0.05);
comment on table unmentioned is 'Group messages that did not mention the bot: context for the next one that does. Kept for a day at most.';
comment on column unmentioned.sent_at is 'By the clock of the channel.';
comment on column unmentioned.run_id is 'The run whose prompt contained it; null: none yet.';
comment on index unmentioned_known is 'Deduplication, and edits.';
create index unmentioned_of_session on unmentioned (session, id);
comment on index unmentioned_of_session is 'Context of a session, and its oldest surplus.';
create index unmentioned_by_age on unmentioned (received_at);
comment on index unmentioned_by_age is 'Deletion after a day.';

-- == Runs ==
-- Runs of agents: one prompt each, with its usage.

create table runs (
    id            text        collate "C" primary key,
    session       text        collate "C" not null,
    agent         text        not null,
    trigger       text        not null,
    lane          text        not null,
    node          text        collate "C" not null,
    fence         bigint      not null,
    epoch         integer     not null,
    parent        text        collate "C",
    model         text        not null,
    channel       text,
    account       text,
    chat          text,
    thread        text,
    submitted_at  timestamptz,
    started_at    timestamptz not null,
    first_text_at timestamptz,
    finished_at   timestamptz,
    outcome       text,
    reason        text,
    error         text,
    requests      bigint,
    input_tokens  bigint,
    output_tokens bigint,
    cached_tokens bigint,
    cost_usd      numeric,
    payer         text        collate "C",
    tools         jsonb,
    occurrence    text        collate "C",
    heartbeat_run text        collate "C",
    sender        text        collate "C",
    job           text        collate "C",
    call_key      text        collate "C",
    task          jsonb,
    follows       text        collate "C",
    constraint runs_target_is_whole
        check (num_nonnulls(channel, account, chat) in (0, 3)),
    constraint runs_usage_is_whole
        check (num_nonnulls(requests, input_tokens, output_tokens, cached_tokens) in (0, 4)),
    constraint runs_ended check ((outcome is null) = (finished_at is null)),
    constraint runs_outcome check (outcome in (
        'completed', 'failed', 'cancelled', 'dropped', 'rejected', 'timed_out', 'abandoned',
        'interrupted', 'lost'))
);
comment on table runs is 'Runs of agents. They may outlive the messages and jobs that they belong to.';
comment on column runs.trigger is 'chat, api, cron, heartbeat, subagent, …';
comment on column runs.lane is 'The lane whose limit it counts for.';
comment on column runs.node is 'The node that executes or has executed it.';
comment on column runs.fence is 'sessions.fence when it began.';
comment on column runs.epoch is 'sessions.epoch when it began.';
comment on column runs.parent is 'The run that started it as subagent or delegate.';
comment on column runs.channel is 'Where its reply goes, with account, chat and thread; null: nowhere.';
comment on column runs.submitted_at is 'When it was enqueued; null: it started at once.';
comment on column runs.first_text_at is 'When the first text of the reply arrived.';
comment on column runs.outcome is 'How it ended; null while it is running.';
comment on column runs.reason is 'Why, if it was not completed.';
comment on column runs.requests is 'Requests to the model. Null, as the tokens: not known.';
comment on column runs.cached_tokens is 'The part of input_tokens that the provider had cached.';
comment on column runs.cost_usd is 'Null if the price of the model is not known.';
comment on column runs.payer is 'The session whose budget pays; null: its own.';
comment on column runs.tools is 'Its tool calls; null: none.';
comment on column runs.occurrence is 'The execution of a job that it belongs to: job_runs.id.';
comment on column runs.heartbeat_run is 'The heartbeat run that it belongs to: heartbeat_runs.id.';
comment on column runs.sender is 'Who asked for it, channel/account/id or api. Also in runs started by it. Null: nobody did.';
comment on column runs.job is 'The job that it works for: cron_jobs.id. Also in runs started by it. Stays when the job is deleted.';
comment on column runs.call_key is 'The idempotency key of the tool call that waits for this run; null: none waits.';
comment on column runs.task is 'Prompt and label of a subagent whose result comes into a chat later; null: it is none.';
comment on column runs.follows is 'The earlier run of the same message, job, heartbeat, call or subagent that it continues.';
create index runs_newest on runs (started_at, id);
comment on index runs_newest is 'List of runs, and usage of a day.';
create index runs_of_session on runs (session, started_at, id);
comment on index runs_of_session is 'Runs of a session.';
create index runs_of_agent on runs (agent, started_at, id);
comment on index runs_of_agent is 'List of runs of an agent.';
create index runs_of_sender on runs (sender, started_at, id) where sender is not null;
comment on index runs_of_sender is 'List of runs that a person asked for.';
create index runs_of_trigger on runs (trigger, started_at, id);
comment on index runs_of_trigger is 'List of runs with a trigger.';
create index runs_not_completed on runs (outcome, started_at, id) where outcome <> 'completed';
comment on index runs_not_completed is 'List of runs with an outcome; most are completed and need no index.';
create index runs_active on runs (node, session) where outcome is null;
comment on index runs_active is 'Running runs of a node.';
create index runs_active_in_session on runs (session) where outcome is null;
comment on index runs_active_in_session is 'Running runs of a session.';
create index runs_talking on runs (agent) where outcome is null and trigger in ('chat', 'api');
comment on index runs_talking is 'Whether people talk to an agent: its heartbeat then waits.';
-- If the clock was set back, a run may end before it began.
create index runs_at_work on runs
    using gist (tstzrange(started_at, greatest(started_at, finished_at), '[]'))
    where finished_at is not null;
comment on index runs_at_work is 'Runs that were running at a given time.';
create index runs_paid on runs (payer, started_at) where payer is not null;
comment on index runs_paid is 'Usage of subagents and delegates, for the budget of the session that pays.';
create index runs_lost_subagents on runs (finished_at)
    where outcome in ('lost', 'interrupted') and trigger = 'subagent';
comment on index runs_lost_subagents is 'Subagents that a crash or shutdown interrupted.';
create index runs_of_occurrence on runs (occurrence) where occurrence is not null;
comment on index runs_of_occurrence is 'Runs of an execution of a job.';
create index runs_of_heartbeat_run on runs (heartbeat_run) where heartbeat_run is not null;
comment on index runs_of_heartbeat_run is 'Runs of a heartbeat run.';
create index runs_of_call on runs (call_key) where call_key is not null;
comment on index runs_of_call is 'Child runs of a tool call.';
-- The index includes all summed columns, so that the table is not read: its rows contain tool calls and
-- are ten times as large. A run is added to the index when it ends.
create index runs_used on runs (started_at)
    include (
        agent, job, sender, model, trigger, lane, outcome,
        requests, input_tokens, output_tokens, cached_tokens, cost_usd, submitted_at, first_text_at
    )
    where outcome is not null;
comment on index runs_used is 'Usage, waiting times and counts over months, from the index alone.';

create table run_steps (
    run_id  text     collate "C" not null references runs (id) on delete cascade,
    seq     integer  not null,
    kind    text     not null,
    payload bytea    not null,
    primary key (run_id, seq)
);
comment on table run_steps is 'What runs have done, step by step: a run that a crash interrupted continues from here.';
comment on column run_steps.kind is 'response: of a model; call, result: of a tool; taken: messages that joined the run; value: of an agent in Python; decision: of a person about a call.';
comment on column run_steps.payload is 'JSON. Large ones are stored outside of the table (TOAST).';

create table approvals (
    id         text        collate "C" primary key,
    run_id     text        collate "C" not null references runs (id) on delete cascade,
    root_run   text        collate "C" not null,
    session    text        collate "C" not null,
    agent      text        not null,
    call_id    text        not null,
    tool       text        not null,
    arguments  text        not null,
    uncertain  boolean     not null,
    members    boolean     not null,
    channel    text,
    account    text,
    chat       text,
    thread     text,
    asked_at   timestamptz not null,
    expires_at timestamptz not null,
    decision   text,
    decided_at timestamptz,
    decided_by text        not null default '',
    constraint approvals_target_is_whole
        check (num_nonnulls(channel, account, chat) in (0, 3)),
    constraint approvals_decided check ((decision is null) = (decided_at is null))
);
comment on table approvals is 'Questions of runs to people about their tool calls, and the answers.';
comment on column approvals.id is 'Named by the buttons.';
comment on column approvals.root_run is 'The run above it whose messages or job wait, or that is a background subagent: it is itself, if it is no other child.';
comment on column approvals.session is 'The session of root_run, or that pays for it.';
comment on column approvals.uncertain is 'The call was interrupted, and its outcome is unknown. Otherwise the question is whether it is allowed.';
comment on column approvals.members is 'In a group everybody may answer, not only owners.';
comment on column approvals.channel is 'The chat that is asked, with account, chat and thread; null: owners in their chats.';
comment on column approvals.decision is 'once, session, always, deny, happened, again, skip, expired, stopped. Null: no answer yet.';
create index approvals_newest on approvals (asked_at, id);
comment on index approvals_newest is 'List of questions.';
create index approvals_of_run on approvals (run_id);
comment on index approvals_of_run is 'Deletion with the run.';
create index approvals_of_root on approvals (root_run);
comment on index approvals_of_root is 'Questions for which the messages or the job of a run, or a subagent, wait.';
create index approvals_waiting_in_session on approvals (session) where decision is null;
comment on index approvals_waiting_in_session is 'Questions of a conversation.';
create index approvals_expiring on approvals (expires_at) where decision is null;
comment on index approvals_expiring is 'Questions whose time is over.';

create table tool_grants (
    agent      text        not null,
    session    text        collate "C" not null,
    tool       text        not null,
    granted_at timestamptz not null,
    granted_by text        not null,
    primary key (agent, session, tool)
);
comment on table tool_grants is 'Tools that a person has allowed for later calls too.';
comment on column tool_grants.session is 'The session in which that holds; empty: all.';
create index tool_grants_of_session on tool_grants (session);
comment on index tool_grants_of_session is 'What /new takes back.';

-- == Outgoing messages ==
-- Messages to chats until the channel has confirmed them, and drafts that show partial replies.

create table outbox (
    id                 bigint      generated always as identity primary key,
    channel            text        collate "C" not null,
    account            text        collate "C" not null,
    chat               text        collate "C" not null,
    session            text        collate "C",
    message            jsonb       not null,
    state              text        not null default 'pending',
    attempts           integer     not null default 0,
    possible_duplicate boolean     not null default false,
    owner              text        collate "C" references nodes (id),
    fence              bigint      not null default 0,
    created_at         timestamptz not null,
    next_attempt_at    timestamptz not null,
    finished_at        timestamptz,
    external_id        text,
    error              text,
    occurrence         text        collate "C",
    heartbeat_run      text        collate "C",
    alert              text        collate "C",
    constraint outbox_state check (state in ('pending', 'sending', 'sent', 'dead', 'dropped')),
    constraint outbox_owner check ((state = 'sending') = (owner is not null)),
    constraint outbox_ended
        check ((state in ('sent', 'dead', 'dropped')) = (finished_at is not null))
) with (autovacuum_vacuum_scale_factor = 0.02);
comment on table outbox is 'Outgoing messages. Those of a chat are sent in the order of their ids.';
comment on column outbox.session is 'The session that it belongs to; null: none.';
comment on column outbox.state is 'dead: it could not be delivered. dropped: an operator gave it up.';
comment on column outbox.possible_duplicate is 'A node ended while sending it: the chat may have it already.';
comment on column outbox.owner is 'The node that is sending it.';
comment on column outbox.fence is 'Fencing token: the result of a send with an older one is refused.';
comment on column outbox.external_id is 'The id that the channel gave it.';
comment on column outbox.error is 'Of the last attempt.';
comment on column outbox.occurrence is 'The execution of a job whose result it is: job_runs.id.';
comment on column outbox.heartbeat_run is 'The heartbeat run whose alert it is: heartbeat_runs.id.';
comment on column outbox.alert is 'Identifies an alert in its chat, so that it is not sent again too soon.';
create index outbox_unsent on outbox (channel, account, chat, id)
    where state in ('pending', 'sending');
comment on index outbox_unsent is 'Unsent messages of each chat, in order; the view outbox_heads.';
create index outbox_waiting on outbox (id) where state in ('pending', 'sending');
comment on index outbox_waiting is 'List of unsent messages.';
create index outbox_sending on outbox (owner) where owner is not null;
comment on index outbox_sending is 'What a node is sending.';
create index outbox_dead on outbox (id) where state = 'dead';
comment on index outbox_dead is 'List of dead messages.';
create index outbox_dropped on outbox (id) where state = 'dropped';
comment on index outbox_dropped is 'List of dropped messages.';
create index outbox_sent on outbox (finished_at) include (session) where state = 'sent';
comment on index outbox_sent is 'Number of delivered messages, from the index alone.';
create index outbox_of_run on outbox ((message ->> 'run_id'), id)
    where message ->> 'run_id' is not null;
comment on index outbox_of_run is 'Messages of a run.';
create index outbox_of_occurrence on outbox (occurrence) where occurrence is not null;
comment on index outbox_of_occurrence is 'Messages of an execution of a job.';
create index outbox_dead_results on outbox (finished_at)
    where state = 'dead' and occurrence is not null;
comment on index outbox_dead_results is 'Results of jobs that could not be delivered.';
create index outbox_of_heartbeat_run on outbox (heartbeat_run) where heartbeat_run is not null;
comment on index outbox_of_heartbeat_run is 'Messages of a heartbeat run.';
create index outbox_of_alert on outbox (alert) where alert is not null;
comment on index outbox_of_alert is 'Whether an alert was sent lately.';
create index outbox_dead_alerts on outbox (finished_at)
    where state = 'dead' and heartbeat_run is not null;
comment on index outbox_dead_alerts is 'Alerts of heartbeats that could not be delivered.';

create table message_counts (
    id       bigint      generated always as identity primary key,
    at       timestamptz not null,
    agent    text,
    received bigint      not null,
    sent     bigint      not null
);
comment on table message_counts is 'How many messages deleted rows of inbox and outbox were, for the usage of months. Rows are added, never changed, so nothing waits for a lock.';
comment on column message_counts.at is 'The start of a quarter of an hour: days of every time zone begin with one.';
comment on column message_counts.agent is 'Null: the message belonged to no session.';
create index message_counts_at on message_counts (at) include (agent, received, sent);
comment on index message_counts_at is 'Usage of months, from the index alone, and deletion after 90 days.';

-- It skips from chat to chat in the index, so a chat with a long queue costs no more than others.
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

create table drafts (
    run_id        text        collate "C" primary key,
    inbox         bigint[]    not null,
    channel       text        not null,
    account       text        not null,
    chat          text        not null,
    thread        text,
    external_id   text,
    opened_at     timestamptz not null,
    opened_by     text        collate "C",
    after_message text
) with (autovacuum_vacuum_scale_factor = 0.02);
comment on table drafts is 'Messages that show a growing reply. There is a row only during the run, or until the next run of its messages.';
comment on column drafts.run_id is 'The run that writes it. A repeated run takes the draft over.';
comment on column drafts.inbox is 'The messages that it answers.';
comment on column drafts.external_id is 'The id of the draft in the chat; null while it is not known.';
comment on column drafts.opened_by is 'The run that posted it: its stop button names that run.';
comment on column drafts.after_message is 'The channel''s id of the message that it answers: a lost draft is looked for behind it.';
create index drafts_of_inbox on drafts using gin (inbox) with (fastupdate = off);
comment on index drafts_of_inbox is 'Whether there is a draft for the messages of a run that begins.';

-- == Chats ==
-- Chats and topics: names, permissions, and whether they accept messages.

create table chats (
    channel        text        collate "C" not null,
    account        text        collate "C" not null,
    chat           text        collate "C" not null,
    peer           text        not null,
    name           text        not null default '',
    allowed        boolean,
    gone           text        not null default '',
    first_seen_at  timestamptz not null,
    last_seen_at   timestamptz not null,
    unmentioned_at timestamptz,
    primary key (channel, account, chat),
    constraint chats_peer check (peer in ('direct', 'group'))
);
comment on table chats is 'Chats from which messages came, or about which an owner decided.';
comment on column chats.allowed is 'What an owner decided about a group; null: nothing yet.';
comment on column chats.gone is 'Why it cannot be written to; empty: it can.';
comment on column chats.unmentioned_at is 'When the last message came that did not mention the bot.';
create index chats_by_sight on chats (last_seen_at, channel, account, chat);
comment on index chats_by_sight is 'List of chats, most recently seen first.';
create index chats_gone on chats (channel, account, chat) where gone <> '';
comment on index chats_gone is 'Chats that cannot be written to.';
create index chats_undecided on chats (channel, account, chat)
    where peer = 'group' and allowed is null and gone = '';
comment on index chats_undecided is 'Number of groups that wait for a decision.';
create index chats_marked on chats (channel, account, chat)
    where allowed is not null or gone <> '';
comment on index chats_marked is 'What every node reads repeatedly: decisions, and chats that cannot be written to.';

create table topics (
    channel  text    collate "C" not null,
    account  text    collate "C" not null,
    chat     text    collate "C" not null,
    thread   text    collate "C" not null,
    name     text    not null default '',
    gone     text    not null default '',
    notified boolean not null default false,
    primary key (channel, account, chat, thread),
    constraint topics_gone check (gone in ('', 'closed', 'deleted'))
);
comment on table topics is 'Topics of group chats.';
comment on column topics.thread is 'The id of the topic; empty: the general one.';
comment on column topics.gone is 'Why it does not accept messages; empty: it does.';
comment on column topics.notified is 'People were notified that its messages go elsewhere.';
create index topics_marked on topics (channel, account, chat, thread) where gone <> '';
comment on index topics_marked is 'What every node reads repeatedly: topics that do not accept messages.';

create table names (
    channel     text        collate "C" not null,
    account     text        collate "C" not null,
    id          text        collate "C" not null,
    name        text        not null,
    username    text,
    search_text text        not null,
    seen_at     timestamptz not null,
    kind        text        not null default 'seen',
    primary key (channel, account, id),
    constraint names_kind check (kind in ('seen', 'guessed', 'given'))
);
comment on table names is 'Names of chats and people, for display only.';
comment on column names.id is 'The id of a chat or a person in the channel.';
comment on column names.search_text is 'Name and user name, in small letters.';
comment on column names.seen_at is 'When it was seen last, within a day; old names are deleted.';
comment on column names.kind is 'seen: of a message. guessed, given: title of a conversation, from its first message or by a person; kept.';
create index names_by_age on names (seen_at) where kind = 'seen';
comment on index names_by_age is 'Deletion of old names.';

-- == People and access ==
-- Who may talk to agents, and pending access requests.

create table people (
    channel     text        collate "C" not null,
    account     text        collate "C" not null,
    sender_id   text        collate "C" not null,
    name        text        not null,
    username    text,
    role        text        not null,
    approved_at timestamptz not null,
    primary key (channel, account, sender_id),
    constraint people_role check (role in ('owner', 'guest'))
);
comment on table people is 'Approved people.';
comment on column people.sender_id is 'The person''s id in the channel.';
comment on column people.role is 'owner: may use owner commands. guest: may talk.';
create index people_newest on people (approved_at, channel, account, sender_id);
comment on index people_newest is 'List of people, most recently approved first.';

create table pairing_requests (
    channel    text        collate "C" not null,
    account    text        collate "C" not null,
    sender_id  text        collate "C" not null,
    name       text        not null,
    username   text,
    code_hash  text        collate "C" not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    id         text        collate "C" not null default gen_random_uuid()::text,
    chat       text        collate "C" not null default '',
    peer       text        not null default 'direct',
    messages   jsonb       not null default '[]',
    primary key (channel, account, sender_id)
);
comment on table pairing_requests is 'Requests for access, of people and of groups.';
comment on column pairing_requests.sender_id is 'The person who asks; of a group the id of its chat.';
comment on column pairing_requests.code_hash is 'Hash of the pairing code. Groups have no code.';
comment on column pairing_requests.id is 'Named by the buttons that owners get.';
comment on column pairing_requests.peer is 'direct: a person asks. group: access for a group.';
comment on column pairing_requests.messages is 'What was written meanwhile, with session, agent and kind: enqueued on approval.';
-- Not unique: two people may get the same random code, and neither may lose a message.
create index pairing_requests_by_code on pairing_requests (code_hash);
comment on index pairing_requests_by_code is 'The request with a pairing code.';
create unique index pairing_requests_by_id on pairing_requests (id);
comment on index pairing_requests_by_id is 'The request that a button names.';

create table web_links (
    link_hash   text        collate "C" primary key,
    channel     text        collate "C" not null,
    account     text        collate "C" not null,
    sender_id   text        collate "C" not null,
    created_at  timestamptz not null,
    expires_at  timestamptz not null,
    used_at     timestamptz,
    cookie_hash text        collate "C",
    foreign key (channel, account, sender_id) references people on delete cascade,
    constraint web_links_used check ((used_at is null) = (cookie_hash is null))
);
comment on table web_links is 'Personal links to the web chat, and the browsers that used them.';
comment on column web_links.link_hash is 'Hash of the secret in the link.';
comment on column web_links.channel is 'The invited person, with account and sender_id.';
comment on column web_links.expires_at is 'When the unused link expires, or the sign-in of the browser.';
comment on column web_links.cookie_hash is 'Hash of the cookie of the browser that used the link.';
create unique index web_links_of_cookie on web_links (cookie_hash);
comment on index web_links_of_cookie is 'The browser with a cookie.';
create index web_links_of_person on web_links (channel, account, sender_id);
comment on index web_links_of_person is 'Deletion with the person.';

-- == Jobs ==
-- Scheduled jobs, their executions, and queues of work for them.

create table cron_jobs (
    id          text        collate "C" primary key,
    owner       text        collate "C" not null,
    slug        text        collate "C" not null,
    name        text        not null,
    search_text text        not null,
    agent       text        collate "C" not null,
    kind        text        not null,
    spec        jsonb       not null,
    maker       text        not null,
    creator     text        collate "C" not null default '',
    notify      text        not null,
    channel     text        collate "C",
    account     text        collate "C",
    chat        text        collate "C",
    state       text        not null,
    revision    integer     not null,
    created_at  timestamptz not null,
    updated_at  timestamptz not null,
    next_run_at timestamptz,
    running     text        collate "C",
    last_run_at timestamptz,
    last_status text        not null default '',
    last_error  text        not null default '',
    failures    integer     not null default 0,
    runs        bigint      not null default 0,
    coalesced   bigint      not null default 0,
    delivers    text        collate "C",
    forgets     boolean     not null default false,
    constraint cron_jobs_named unique (owner, slug),
    constraint cron_jobs_kind check (kind in ('at', 'every', 'cron')),
    constraint cron_jobs_state
        check (state in ('active', 'paused', 'completed', 'failed', 'disabled')),
    constraint cron_jobs_target_is_whole check (num_nonnulls(channel, account, chat) in (0, 3))
) with (autovacuum_vacuum_scale_factor = 0.02);
comment on table cron_jobs is 'Scheduled jobs.';
comment on column cron_jobs.owner is 'Who or what it belongs to; slugs and limits count within an owner.';
comment on column cron_jobs.slug is 'Name in commands, unique for the owner.';
comment on column cron_jobs.name is 'Title for people.';
comment on column cron_jobs.search_text is 'Slug and name, normalised for the search.';
comment on column cron_jobs.kind is 'Kind of the schedule.';
comment on column cron_jobs.spec is 'The whole definition. Columns that are searched repeat a part of it.';
comment on column cron_jobs.maker is 'What created it, for example a person or the model; decides what it may do.';
comment on column cron_jobs.creator is 'Who asked for it in a chat, channel/account/sender; may cancel its runs there. Empty: nobody.';
comment on column cron_jobs.notify is 'When its result is sent.';
comment on column cron_jobs.channel is 'Where its results go, with account and chat; null: nowhere.';
comment on column cron_jobs.revision is 'Grows with every change by people.';
comment on column cron_jobs.next_run_at is 'Null: no upcoming run.';
comment on column cron_jobs.running is 'The execution in progress: job_runs.id.';
comment on column cron_jobs.failures is 'Failed executions since the last success.';
comment on column cron_jobs.runs is 'Executions so far.';
comment on column cron_jobs.coalesced is 'Due times that were skipped because a later one covered them.';
comment on column cron_jobs.delivers is 'The execution whose delivery deletes this job, which runs once.';
comment on column cron_jobs.forgets is 'Its executions are deleted with it.';
comment on index cron_jobs_named is 'Jobs of an owner by slug.';
create index cron_jobs_by_slug on cron_jobs (slug);
comment on index cron_jobs_by_slug is 'Jobs of all owners by slug.';
create index cron_jobs_due on cron_jobs (next_run_at, id)
    where state = 'active' and running is null and next_run_at is not null;
comment on index cron_jobs_due is 'Due jobs, and the next time one is due.';
create index cron_jobs_in_order on cron_jobs (next_run_at, created_at, id);
comment on index cron_jobs_in_order is 'List of jobs, in the order of their next runs.';
create index cron_jobs_of_owner on cron_jobs (owner, next_run_at, created_at, id);
comment on index cron_jobs_of_owner is 'The same for one owner.';
create index cron_jobs_not_active on cron_jobs (state, next_run_at, created_at, id)
    where state <> 'active';
comment on index cron_jobs_not_active is 'The same for one state; most jobs are active.';
create index cron_jobs_delivering on cron_jobs (id) where delivers is not null;
comment on index cron_jobs_delivering is 'Jobs that wait for the delivery of their result.';
create index cron_jobs_over on cron_jobs (greatest(updated_at, last_run_at))
    where state in ('completed', 'failed');
comment on index cron_jobs_over is 'Deletion of jobs that ended long ago.';

create table job_runs (
    id            text        collate "C" primary key,
    job           text        collate "C" not null,
    slug          text        collate "C" not null,
    owner         text        collate "C" not null,
    scheduled_at  timestamptz not null,
    claimed_at    timestamptz not null,
    started_at    timestamptz,
    finished_at   timestamptz,
    status        text        not null,
    reason        text,
    attempts      integer     not null default 0,
    claims        integer     not null default 1,
    manual        boolean     not null default false,
    interrupted   boolean     not null default false,
    node          text        collate "C" references nodes (id),
    output        text        not null default '',
    error         text        not null default '',
    requests      bigint,
    input_tokens  bigint,
    output_tokens bigint,
    cached_tokens bigint,
    cost_usd      numeric,
    definition    jsonb       not null,
    notified_at       timestamptz,
    waits_for     text        collate "C",
    constraint job_runs_status check (status in (
        'running', 'waiting', 'ok', 'failed', 'timed_out', 'cancelled', 'skipped', 'interrupted',
        'lost', 'no_route', 'undelivered')),
    constraint job_runs_claimed check ((status = 'running') = (node is not null)),
    constraint job_runs_ended check (node is null or finished_at is null),
    constraint job_runs_waiting check (status <> 'waiting' or waits_for is not null),
    constraint job_runs_usage_is_whole
        check (num_nonnulls(requests, input_tokens, output_tokens, cached_tokens) in (0, 4))
) with (autovacuum_vacuum_scale_factor = 0.02);
comment on table job_runs is 'Executions of jobs, one for each due time. They may outlive their job.';
comment on column job_runs.job is 'cron_jobs.id, with its slug and owner.';
comment on column job_runs.scheduled_at is 'The time at which it was due.';
comment on column job_runs.claimed_at is 'When a node claimed it.';
comment on column job_runs.status is 'waiting: another node has the session that it needs, or its run has asked a person (reason approval). no_route: its result had no target. undelivered: the chat refused it.';
comment on column job_runs.reason is 'Why it was skipped or cancelled, or what it waits for.';
comment on column job_runs.attempts is 'Runs that began for it, without those that a shutdown interrupted.';
comment on column job_runs.claims is 'How often it was claimed: again after a crash.';
comment on column job_runs.manual is 'Started by a person, not by the schedule.';
comment on column job_runs.interrupted is 'A shutdown interrupted it, and it was claimed again.';
comment on column job_runs.node is 'The node that has claimed it, while it is running.';
comment on column job_runs.requests is 'Usage of all of its runs. Null: not known.';
comment on column job_runs.definition is 'The job as it was when it was claimed.';
comment on column job_runs.notified_at is 'When people were notified that its result was not delivered.';
comment on column job_runs.waits_for is 'The session that it waits for or has waited for: that of its run, if this has asked a person.';
create unique index job_runs_open on job_runs (job, scheduled_at)
    where not manual and finished_at is null;
comment on index job_runs_open is 'A due time is claimed once; a node that recovers it continues its row.';
create index job_runs_of_job on job_runs (job, scheduled_at, id);
comment on index job_runs_of_job is 'Executions of a job.';
create index job_runs_newest on job_runs (scheduled_at, id);
comment on index job_runs_newest is 'List of executions.';
create index job_runs_with_status on job_runs (status, scheduled_at, id);
comment on index job_runs_with_status is 'List of executions with a status.';
create index job_runs_of_node on job_runs (node) where node is not null;
comment on index job_runs_of_node is 'Executions in progress on a node.';
create index job_runs_not_notified on job_runs (job, scheduled_at, id)
    where notified_at is null and status in ('no_route', 'undelivered');
comment on index job_runs_not_notified is 'Results that were not delivered, of which people were not notified.';
create index job_runs_waiting on job_runs (waits_for) where status = 'waiting';
comment on index job_runs_waiting is 'Executions that wait for a session or an answer.';

create table owner_zones (
    owner text collate "C" primary key,
    zone  text not null
);
comment on table owner_zones is 'Time zones that owners of jobs have chosen.';
comment on column owner_zones.owner is 'As in cron_jobs.owner.';
comment on column owner_zones.zone is 'Name in the IANA database, for example Europe/Berlin.';

create table work_items (
    id         bigint      generated always as identity primary key,
    queue      text        collate "C" not null,
    title      text        not null,
    body       text        not null default '',
    url        text        not null default '',
    state      text        collate "C" not null default 'open'
               check (state in ('open', 'taken', 'done', 'failed')),
    taken_by   text        collate "C",
    taken_at   timestamptz,
    takes      integer     not null default 0,
    ended_at   timestamptz,
    outcome    text        not null default '',
    -- Only for people and never compared, so the clock of the server may be used.
    created_at timestamptz not null default clock_timestamp(),
    check (state <> 'taken' or taken_by is not null and taken_at is not null)
);
comment on table work_items is 'Queues of work for jobs. Other programs may insert rows with queue, title, body and url.';
comment on column work_items.id is 'Items of a queue are processed in this order.';
comment on column work_items.taken_by is 'The job that works on it, or did: cron_jobs.id.';
comment on column work_items.takes is 'How often a job took it.';
comment on column work_items.outcome is 'What the job reported.';
create index work_items_waiting on work_items (queue, id) where state in ('open', 'taken');
comment on index work_items_waiting is 'The next item of a queue.';

-- == Heartbeat ==
-- Heartbeats of agents, their runs, and events for the next run.

create table heartbeats (
    agent         text        collate "C" primary key,
    interval_us   bigint,
    anchor        timestamptz,
    next_at       timestamptz,
    wake_at       timestamptz,
    wake_kind     text,
    switched      boolean,
    muted_until   timestamptz,
    began_at      timestamptz,
    failures      integer     not null default 0,
    heartbeat_run text        collate "C",
    node          text        collate "C" references nodes (id),
    constraint heartbeats_interval check (interval_us > 0),
    constraint heartbeats_wake_is_whole check (num_nonnulls(wake_at, wake_kind) in (0, 2)),
    constraint heartbeats_claimed check (node is null or heartbeat_run is not null)
-- It changes with every heartbeat run. The changed columns have no index, so the new row version fits on
-- the same page; reading all rows costs less than maintaining an index.
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
comment on table heartbeats is 'The heartbeat of each agent.';
comment on column heartbeats.interval_us is 'Microseconds between two heartbeat runs; null: it is off.';
comment on column heartbeats.anchor is 'Runs are due at anchor + n × interval.';
comment on column heartbeats.next_at is 'The next time by that schedule.';
comment on column heartbeats.wake_at is 'A run outside the schedule was requested for this time.';
comment on column heartbeats.wake_kind is 'What requested it.';
comment on column heartbeats.switched is 'Turned on or off by a person; null: as configured.';
comment on column heartbeats.muted_until is 'No runs until then.';
comment on column heartbeats.began_at is 'When the last run was claimed.';
comment on column heartbeats.failures is 'Failed runs since the last success.';
comment on column heartbeats.heartbeat_run is 'The run in progress: heartbeat_runs.id.';
comment on column heartbeats.node is 'The node that executes it; null: it can be claimed.';

create table heartbeat_runs (
    id            text        collate "C" primary key,
    agent         text        collate "C" not null,
    kind          text        not null,
    due_at        timestamptz not null,
    claimed_at    timestamptz not null,
    started_at    timestamptz,
    finished_at   timestamptz,
    status        text        not null,
    skip          text,
    detail        text        not null default '',
    reply         text        not null default '',
    channel       text        collate "C",
    account       text        collate "C",
    chat          text        collate "C",
    thread        text,
    attempts      integer     not null default 0,
    node          text        collate "C", -- Only while it is open: a foreign key would need an index.
    requests      bigint,
    input_tokens  bigint,
    output_tokens bigint,
    cached_tokens bigint,
    cost_usd      numeric,
    notified_at       timestamptz,
    constraint heartbeat_runs_status check (status in (
        'running', 'deferred', 'ok', 'alerted', 'duplicate', 'no_route', 'skipped', 'cancelled',
        'failed', 'lost')),
    constraint heartbeat_runs_ended
        check ((finished_at is null) = (status in ('running', 'deferred'))),
    constraint heartbeat_runs_claimed check (
        case status when 'running' then node is not null when 'deferred' then true
        else node is null end),
    constraint heartbeat_runs_target_is_whole
        check (num_nonnulls(channel, account, chat) in (0, 3)),
    constraint heartbeat_runs_usage_is_whole
        check (num_nonnulls(requests, input_tokens, output_tokens, cached_tokens) in (0, 4))
) with (autovacuum_vacuum_scale_factor = 0.02);
comment on table heartbeat_runs is 'Heartbeat runs, also those that were skipped.';
comment on column heartbeat_runs.kind is 'interval: by the schedule. Otherwise what requested it.';
comment on column heartbeat_runs.due_at is 'The time at which it was due.';
comment on column heartbeat_runs.claimed_at is 'When a node claimed it.';
comment on column heartbeat_runs.status is 'ok: nothing to report. alerted: a message was sent. duplicate: the same alert was sent lately. deferred: it waits.';
comment on column heartbeat_runs.skip is 'Why it was skipped; null: it was not.';
comment on column heartbeat_runs.detail is 'More about status or skip, for people.';
comment on column heartbeat_runs.reply is 'What the agent answered.';
comment on column heartbeat_runs.channel is 'Where its alert went, with account, chat and thread.';
comment on column heartbeat_runs.attempts is 'Runs that began for it, without those that a shutdown interrupted.';
comment on column heartbeat_runs.node is 'The node that executes it, while it is open.';
comment on column heartbeat_runs.requests is 'Usage of all of its runs. Null: none, or not known.';
comment on column heartbeat_runs.notified_at is 'When people were notified that its alert was not delivered.';
create index heartbeat_runs_of_agent on heartbeat_runs (agent, claimed_at, id);
comment on index heartbeat_runs_of_agent is 'Heartbeat runs of an agent, and their usage.';
create index heartbeat_runs_newest on heartbeat_runs (claimed_at, id);
comment on index heartbeat_runs_newest is 'List of heartbeat runs, and deletion of old ones.';
create index heartbeat_runs_with_status on heartbeat_runs (status, claimed_at, id);
comment on index heartbeat_runs_with_status is 'List of heartbeat runs with a status.';
create index heartbeat_runs_skipped on heartbeat_runs (skip, claimed_at, id)
    where skip is not null;
comment on index heartbeat_runs_skipped is 'List of those that were skipped for one reason.';

create table heartbeat_events (
    id    bigint      generated always as identity primary key,
    agent text        collate "C" not null,
    text  text        not null,
    at    timestamptz not null
);
comment on table heartbeat_events is 'Events for the next heartbeat run of an agent, which deletes them.';
create index heartbeat_events_of_agent on heartbeat_events (agent, id);
comment on index heartbeat_events_of_agent is 'Events of an agent, oldest first.';

create table heartbeat_items (
    agent   text        collate "C" not null,
    key     text        collate "C" not null,
    done_at timestamptz not null,
    primary key (agent, key)
);
comment on table heartbeat_items is 'When checklist items with an interval of their own were last in a heartbeat run.';
comment on column heartbeat_items.key is 'Identifies the item in its checklist.';

-- == Operations ==
-- What operators were notified of. Backups have no table of their own: they are copies of all tables.

create table incidents (
    key   text        collate "C" primary key,
    text  text        not null,
    since timestamptz not null
);
comment on table incidents is 'Problems that last and that operators were notified of, so that they are notified once.';
comment on column incidents.key is 'Kind and subject of the problem.';
comment on column incidents.text is 'The problem, for people.';

create table setting_edits (
    id        bigint      generated always as identity primary key,
    path      text        collate "C" not null,
    value     text,
    before    text,
    after     text,
    source    text        not null,
    edited_at timestamptz not null
);
comment on table setting_edits is 'Edits of settings at run time. The newest one of a setting is in effect, the others are history.';
comment on column setting_edits.path is 'The key of the setting, such as lanes.main.size.';
comment on column setting_edits.value is 'The value as in an environment variable; null: the value of the settings file again.';
comment on column setting_edits.before is 'The value that was in effect, for people; null: it was not set.';
comment on column setting_edits.after is 'The value in effect from then on, for people; null: it is not set.';
comment on column setting_edits.source is 'From where the edit came: dashboard, API or command line.';
create index setting_edits_of_path on setting_edits (path, id);
comment on index setting_edits_of_path is 'The newest edit of a setting.';
