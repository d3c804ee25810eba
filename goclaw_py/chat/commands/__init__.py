"""Chat commands: ``handlers`` has most of them, ``jobs`` and ``heartbeat`` the rest."""
