"""Backup and restore of a gateway (SPEC DB-5): ``backup`` writes, ``restore`` reads.

``workspaces`` handles the agents' files. ``store.backup`` defines the archive format.
"""
