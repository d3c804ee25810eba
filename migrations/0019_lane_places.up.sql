-- The lines of lanes that all nodes share: who has a place in one, and who waits for one.
create table lane_places (
    id         bigint      generated always as identity primary key,
    lane       text        collate "C" not null,
    node       text        collate "C" not null references nodes (id) on delete cascade,
    granted    boolean     not null default false
);
create index lane_places_in_line on lane_places (lane, granted, id);
create index lane_places_of_node on lane_places (node);
