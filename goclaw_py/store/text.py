"""Texts as PostgreSQL stores and compares them."""

from __future__ import annotations

from string import ascii_lowercase, ascii_uppercase

from goclaw_py.core.storable import storable

__all__ = ["folded", "storable"]

_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)


def folded(text: str) -> str:
    """Return a text with A to Z in small letters, as ``lower`` does with the collation C."""
    return text.translate(_SMALL)
