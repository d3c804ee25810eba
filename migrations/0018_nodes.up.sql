-- What a node tells of itself, and what nodes ask each other (docs/adr/0020).
alter table nodes add column state jsonb not null default '{}';

create table node_calls (
    id       bigint      generated always as identity primary key,
    node     text        collate "C" not null references nodes (id) on delete cascade,
    question text        not null,
    asked_at timestamptz not null,
    answer   text
);
create index node_calls_open on node_calls (node, id) where answer is null;
create index node_calls_by_age on node_calls (asked_at);
