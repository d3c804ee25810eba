drop table node_calls;
alter table nodes drop column state;
