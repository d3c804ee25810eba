-- Requests between nodes.

-- name: forget
-- Delete the requests from before an instant.
delete from node_calls
where asked_at < $1;

-- name: add
-- Store a request to a live node, and notify all listeners.
with entered as (
    insert into node_calls (node, question, asked_at)
    select id, $2::text, $3
    from nodes
    where id = $1 and lease_until > $3
    for key share
    returning id
)
select id, pg_notify($4, '')
from entered;

-- name: unanswered
-- Return the requests that a node has not answered.
select id, question, asked_at
from node_calls
where node = $1 and answer is null
order by id;

-- name: answer
-- Store the answer to a request, and notify all listeners.
with answered as (
    update node_calls
    set answer = $2::text
    where id = $1
    returning id
)
select pg_notify($3, '')
from answered;

-- name: answer_to
-- Return the answer to a request.
select answer
from node_calls
where id = $1;
