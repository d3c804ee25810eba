"""The store in memory, with the same promises as the one on PostgreSQL but for surviving."""

from goclaw_py.store.memory.store import MemoryStore
from goclaw_py.store.memory.tables import MemoryDatabase

__all__ = ["MemoryDatabase", "MemoryStore"]
