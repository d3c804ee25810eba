"""Level 2: what the parts of level 3 offer and need."""
