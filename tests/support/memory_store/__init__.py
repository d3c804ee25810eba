"""The store in memory, with all promises of the PostgreSQL store except durability."""

from tests.support.memory_store.store import GatewayMemoryStore as MemoryStore
from tests.support.memory_store.tables import MemoryDatabase

__all__ = ["MemoryDatabase", "MemoryStore"]
