"""The store in memory, with all promises of the PostgreSQL store except durability."""

from goclaw_py.store.memory.store import GatewayMemoryStore as MemoryStore
from goclaw_py.store.memory.tables import MemoryDatabase

__all__ = ["MemoryDatabase", "MemoryStore"]
