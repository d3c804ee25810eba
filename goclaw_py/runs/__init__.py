"""One run of an agent."""
