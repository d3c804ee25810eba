"""Heartbeats: agents that look after things without being asked (SPEC section 7)."""
