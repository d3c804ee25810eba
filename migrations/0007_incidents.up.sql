-- Troubles that last and that operators have been told about, so that nobody is told twice.

create table incidents (
    key   text        collate "C" primary key,
    text  text        not null,
    since timestamptz not null
);
