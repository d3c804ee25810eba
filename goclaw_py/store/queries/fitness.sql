-- Checks whether a database meets the requirements.

-- name: server
-- Return the properties of the server, its time, and our privileges. The time is only compared, and
-- not stored.
select
    current_setting('server_version_num')::int as version,
    statement_timestamp() as at,
    pg_is_in_recovery() as is_standby,
    current_setting('transaction_read_only')::boolean as is_read_only,
    quote_ident(current_user) as us,
    quote_ident(coalesce(current_schema(), 'public')) as schema,
    coalesce(has_schema_privilege(current_schema(), 'create'), false) as may_create,
    pg_encoding_to_char(d.encoding) as encoding,
    current_setting('max_connections')::int as most,
    (select sum(numbackends) from pg_stat_database)::int as used,
    current_setting('autovacuum')::boolean and current_setting('track_counts')::boolean
        as vacuums
from pg_database as d
where d.datname = current_database();

-- name: rights
-- Return, for the existing tables, our missing privileges, the owners if that is another user, and
-- whether autovacuum skips them.
select
    c.relname as name,
    array(
        select p.name
        from unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE']) with ordinality as p (name, place)
        where not has_table_privilege(c.oid, p.name)
        order by p.place
    ) as lacking,
    case when not pg_has_role(c.relowner, 'usage')
        then quote_ident(pg_get_userbyid(c.relowner)) end as owner,
    exists (
        select from pg_options_to_table(c.reloptions)
        where option_name = 'autovacuum_enabled' and not option_value::boolean
    ) as is_skipped
from unnest($1::text[]) as wanted (name)
join pg_class as c on c.oid = to_regclass(quote_ident(wanted.name))
order by c.relname;

-- name: backend
-- Return the process id of the server session that this connection uses now.
select pg_backend_pid() as pid;

-- name: may_write
-- Return whether the server accepts changes, and if not, why. A commit that waits for a standby for
-- seconds waits for one that does not answer.
select pg_is_in_recovery() as is_standby,
       current_setting('transaction_read_only')::boolean as is_read_only,
       exists (
           select from pg_stat_activity
           where datname = current_database() and usename = current_user and wait_event = 'SyncRep'
             and statement_timestamp() - query_start > interval '2 seconds'
       ) as waits_for_standby;
