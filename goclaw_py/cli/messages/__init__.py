"""The ``queue`` command, and how commands show messages."""
