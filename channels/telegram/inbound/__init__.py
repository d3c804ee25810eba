"""From an update of the Bot API to what it says. Start at ``reader``."""
