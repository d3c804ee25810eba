"""Runs of agents, from beginning to end, and what is recorded of them."""
