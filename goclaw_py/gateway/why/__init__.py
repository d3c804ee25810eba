"""Explains why something did or did not happen, from what is stored (SPEC OPS-4)."""
