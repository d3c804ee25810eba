"""The ``heartbeat`` and ``event`` commands."""
