-- What a doctor asks of a server, beside its fitness.

-- name: tell
-- Sends a notice on a channel of our own.
select pg_notify($1, '');
