"""Heartbeats: an agent regularly checks its checklist, and reports only what needs attention.

Start at ``decisions`` (pure: does a due run happen?) and ``service`` (what API, CLI, chat and
tools call). ``poller`` claims due runs, ``executions`` keeps claims until their end, ``executor``
runs the agent, ``alerts`` sends what needs attention to the chat that ``alert_targets`` finds.
"""
