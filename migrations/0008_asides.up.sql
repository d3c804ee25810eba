-- What stands in a chat beside the history of its session: commands, and messages that no run has
-- written. Both are few, so the indexes are small.
create index inbox_commands on inbox (session, id) where state = 'done' and kind = 'command';
comment on index inbox_commands is 'Commands of a session, in order.';
create index outbox_asides on outbox (channel, account, chat, id)
    where state = 'sent' and message ->> 'run_id' is null and occurrence is null
        and heartbeat_run is null and alert is null;
comment on index outbox_asides is 'Messages of a chat that no run, job or heartbeat has written, in order.';
