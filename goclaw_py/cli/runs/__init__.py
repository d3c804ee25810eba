"""The ``lanes`` and ``why`` commands, and what ``runs follow`` shows."""
