"""Clocks, zones, moments and durations: read, computed and shown to people."""
