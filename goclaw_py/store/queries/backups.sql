-- name: tables
-- Return which of some tables exist, with their columns except generated ones.
select c.relname as name, array_agg(a.attname::text order by a.attnum) as columns
from pg_class as c
join pg_attribute as a on a.attrelid = c.oid
where c.oid = to_regclass(quote_ident(c.relname))
  and c.relname = any ($1::text[]) and c.relkind = 'r'
  and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
group by c.relname;

-- name: references
-- Return the foreign keys between some tables.
select c.relname as child, p.relname as parent
from pg_constraint as f
join pg_class as c on c.oid = f.conrelid
join pg_class as p on p.oid = f.confrelid
where f.contype = 'f' and c.oid <> p.oid
  and c.oid = any (select to_regclass(quote_ident(name)) from unnest($1::text[]) as name)
  and p.oid = any (select to_regclass(quote_ident(name)) from unnest($1::text[]) as name);

-- name: identities
-- Return the identity columns of some tables, each with its sequence, quoted for SQL.
select c.relname as table, a.attname as column,
       pg_get_serial_sequence(quote_ident(c.relname), a.attname) as sequence
from pg_class as c
join pg_attribute as a on a.attrelid = c.oid
where c.oid = to_regclass(quote_ident(c.relname))
  and c.relname = any ($1::text[]) and c.relkind = 'r'
  and a.attnum > 0 and not a.attisdropped and a.attidentity <> ''
order by c.relname, a.attname;

-- name: live_nodes
-- Return the nodes whose lease has not expired.
select id, host, pid, lease_until
from nodes
where lease_until > $1
order by started_at, id;

-- name: end_leases
-- Expire all leases, so that the next node that starts takes over the work.
update nodes
set lease_until = $1
where lease_until > $1;

-- name: sizes
-- How many bytes each table takes, without indexes: for a progress display.
select c.relname as name, pg_table_size(c.oid) as bytes
from pg_class as c
where c.oid = any (select to_regclass(quote_ident(name)) from unnest($1::text[]) as name);
