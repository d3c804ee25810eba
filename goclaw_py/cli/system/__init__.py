"""The gateway itself: ``init``, ``run``, ``config``, ``nodes``, ``backup``, ``migrate``."""
