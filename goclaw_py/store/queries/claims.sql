-- What occurrences of jobs and heartbeat runs have in common.

-- name: lock_node
-- Keeps a node from being recovered; returns no row if it was declared dead.
select id
from nodes
where id = $1
for key share;
