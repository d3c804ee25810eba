"""Level 3: the database."""
