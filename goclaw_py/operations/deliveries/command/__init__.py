"""The commands ``goclaw outbox`` and ``goclaw inbox``."""
