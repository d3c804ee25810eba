"""The ``why`` command, and what ``runs follow`` shows."""
