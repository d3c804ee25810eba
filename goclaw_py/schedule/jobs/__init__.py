"""Scheduled jobs, from their definition to the end of every occurrence.

Start at ``decisions`` (pure: does a due occurrence run, and what follows an attempt?) and
``service`` (what API, CLI, chat and tools call). ``poller`` claims what is due, ``executions``
keeps claims until their end, ``executor`` runs them, ``notifications`` notifies people.
``embedded`` is the same for other programs.
"""
