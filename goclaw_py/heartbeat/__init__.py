"""Heartbeats."""
