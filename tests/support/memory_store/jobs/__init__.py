"""Jobs and their occurrences."""
