"""Nodes, their leases and calls; shared lanes; transfers of sessions."""
