-- The lines of lanes that all nodes share.

-- name: lock
-- One at a time gives out places of a lane, to a node that exists.
select pg_advisory_xact_lock(11, hashtext($1)), id
from nodes
where id = $2
for key share;

-- name: release
-- Release slots of a node.
delete from lane_slots
where (node = $1) is true and id = any ($2::bigint[]);

-- name: used
-- Return how many slots of a lane are used, and how many of them by other nodes.
select count(*) as taken, count(*) filter (where node <> $2) as elsewhere
from lane_slots
where lane = $1 and granted;

-- name: own
-- A node's places in a lane, and those that wait, in the order of the line.
select id, granted
from lane_slots
where lane = $1 and node = $2
order by id;

-- name: enqueue_run
-- Lets so many more wait.
insert into lane_slots (lane, node)
select $1, $2
from generate_series(1, $3::integer);

-- name: grant
-- Gives so many free places to those who wait for longest; tells whose they are. A node whose lease
-- has ended would hold one idle, until it is back or its recovery: it is passed over.
update lane_slots
set granted = true
where id = any (array(
    select p.id
    from lane_slots as p
    where p.lane = $1 and p.granted = false
      and (select n.lease_until from nodes as n where n.id = p.node) > $3
    order by p.lane, p.granted, p.id
    limit $2
))
returning id, node;
