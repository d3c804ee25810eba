"""Scheduled work: what is due is claimed, run, tried again, ended or given back.

One engine for occurrences of jobs and for heartbeat runs; both supply what they decide.
Start with ``engine``: its docstring has the life cycle of a claim. ``poller`` finds what is due,
``agent_runs`` lets agents do it.
"""
