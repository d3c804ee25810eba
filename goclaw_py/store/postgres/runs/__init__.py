"""Runs from start to end, and their records."""
