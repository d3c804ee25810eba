"""Values that every feature shares."""
