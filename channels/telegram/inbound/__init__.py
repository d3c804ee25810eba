"""Parses updates of the Bot API. Start at ``reader``."""
