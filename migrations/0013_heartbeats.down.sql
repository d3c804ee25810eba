-- Heartbeats are forgotten, with all that is known of them.

drop index inbox_waiting;
drop index runs_talking;
drop index outbox_dead_beats;
drop index outbox_of_alert;
drop index outbox_of_beat;
drop index runs_of_beat;
alter table outbox drop column alert, drop column beat;
alter table runs drop column beat;

drop table heartbeat_items;
drop table heartbeat_events;
drop table heartbeat_run_logs;
drop table heartbeats;
