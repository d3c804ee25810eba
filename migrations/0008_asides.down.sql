-- Nothing is lost.
drop index inbox_commands;
drop index outbox_asides;
