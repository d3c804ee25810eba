-- What a doctor asks of a server.

-- name: server
-- Says what the server is, what time it is there, and what we may do. The clock of the server is
-- what is asked for here; nothing is stored of it.
select
    current_setting('server_version_num')::int as version,
    statement_timestamp() as at,
    pg_is_in_recovery() as is_standby,
    current_setting('transaction_read_only')::boolean as is_read_only,
    coalesce(has_schema_privilege(current_schema(), 'create'), false) as may_create,
    pg_encoding_to_char(d.encoding) as encoding,
    current_setting('max_connections')::int as most,
    (select sum(numbackends) from pg_stat_database)::int as used
from pg_database as d
where d.datname = current_database();

-- name: tell
-- Sends a notice on a channel of our own.
select pg_notify($1, '');
