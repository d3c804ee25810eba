-- Back to an empty database.

drop table pairing_requests;
drop table people;
drop view outbox_heads;
drop table outbox;
drop table runs;
drop table inbox;
drop table history;
drop table sessions;
drop table leases;
drop table nodes;
