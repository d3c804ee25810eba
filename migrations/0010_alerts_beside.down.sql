drop index outbox_asides;
create index outbox_asides on outbox (channel, account, chat, id)
    where state = 'sent' and message ->> 'run_id' is null and occurrence is null
        and heartbeat_run is null and alert is null;
comment on index outbox_asides is 'Messages of a chat that no run, job or heartbeat has written, in order.';
