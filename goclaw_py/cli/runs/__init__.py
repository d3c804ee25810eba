"""The ``runs``, ``usage``, ``lanes`` and ``why`` commands."""
