"""Backup and restore of a gateway (SPEC DB-5)."""
