"""Lanes and session queues."""
