"""Backup and restore of a gateway (SPEC DB-5): ``backup`` writes, ``restore`` reads.

``workspaces`` has the agents' files. The format of the archive is in ``store.backup``.
"""
