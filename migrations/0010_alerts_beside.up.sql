-- Alerts and requests for access stand beside the history, too: of all alerts only questions about
-- tools are shown elsewhere. Each condition is as in the statement, or the index is not used.
drop index outbox_asides;
create index outbox_asides on outbox (channel, account, chat, id)
    where state = 'sent' and message ->> 'run_id' is null and occurrence is null
        and heartbeat_run is null and (alert is null or alert not like 'approval:%');
comment on index outbox_asides is 'Messages of a chat that no run, job or heartbeat has written, in order.';
