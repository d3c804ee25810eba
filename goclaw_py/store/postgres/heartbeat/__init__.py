"""Heartbeats and their runs."""
