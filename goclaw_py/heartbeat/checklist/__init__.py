"""HEARTBEAT.md: its items, their intervals and their ticks (SPEC HB-3). Start at ``checklist``."""
