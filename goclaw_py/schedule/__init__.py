"""Scheduled work: what is due is claimed, run, retried, and ended or released.

One engine for job occurrences and heartbeat runs, which supply the decisions. Start with
``engine``: its docstring has the life cycle of a claim. ``poller`` finds what is due,
``agent_runs`` runs agents.
"""
