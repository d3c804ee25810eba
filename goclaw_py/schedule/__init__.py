"""Scheduled work: what is due is claimed, run, retried, and ended or released.

One engine for job occurrences (``jobs``) and heartbeat runs (``heartbeat``), which supply the
decisions. ``cron`` parses cron expressions, ``sources`` finds work for jobs. Start with
``engine``: its docstring has the life cycle of a claim. ``poller`` finds what is due,
``agent_runs`` runs agents. ``forecast`` computes what will come, by the same decisions.
"""
