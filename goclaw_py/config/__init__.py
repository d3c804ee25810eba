"""Level 3: settings from file and environment."""
