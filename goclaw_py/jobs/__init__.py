"""Scheduled jobs, from their definition to the end of every occurrence.

Start at ``decisions`` (pure: does a due occurrence run, and what follows an attempt?) and
``service`` (what API, CLI, chat and tools call). ``poller`` claims what is due, ``executor`` runs
it, ``execution_ends`` stores the end, ``notifications`` tells people. ``embedded`` is the same
for other programs, ``cron`` reads cron expressions.
"""
