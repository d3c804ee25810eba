"""Simulated time: what jobs and heartbeats would do (SPEC OPS-6)."""
