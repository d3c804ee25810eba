"""HEARTBEAT.md: its items, their intervals and check marks (SPEC HB-3).

Start at ``checklist``.
"""
