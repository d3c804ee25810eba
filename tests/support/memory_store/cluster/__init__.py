"""Nodes, their leases and calls; shared lanes; moves of chats."""
