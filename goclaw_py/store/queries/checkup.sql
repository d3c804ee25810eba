-- Queries of ``goclaw doctor``, in addition to those of ``fitness``.

-- name: tell
-- Send a notification on a channel of our own.
select pg_notify($1, '');
