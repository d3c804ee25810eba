"""The store on PostgreSQL: a pool, a listener, and one part for each noun of the port."""

from goclaw_py.store.postgres.address import Address
from goclaw_py.store.postgres.pool import Connection
from goclaw_py.store.postgres.store import PostgresStore, connection

__all__ = ["Address", "Connection", "PostgresStore", "connection"]
